package decide

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// KeptPlan is the file with the plan of the newest run that this host has prepared. It is
// on disk before the reply to prepare: each later action goes by it, and done is
// proved by it, whatever a power cut has taken from the package database.
type KeptPlan struct {
	// Run and RunAt are those of the journal: they tell the plan of one run from that
	// of another, also when the log has got another identity.
	Run   uint64            `json:"run"`
	RunAt time.Time         `json:"run-at,omitzero"`
	Plan  message.ChangeSet `json:"plan"`
}

// planMember is the member of a plan file that holds the plan.
const planMember = "prepared"

// DecodePlan reads a plan file, of whatever run.
func DecodePlan(body []byte) (kept KeptPlan, err error) {
	if err := format.Plan.DecodeSummed(body, planMember, &kept); err != nil {
		return kept, err
	}
	return kept, kept.Plan.Check()
}

// Encode returns the content of the plan file.
func (k KeptPlan) Encode() ([]byte, error) { return format.Plan.EncodeSummed(planMember, k) }

// installs returns the versions that the plan of a journal's run installs. Without its plan
// an upgrade does not begin.
func (k KeptPlan) installs(j Journal) (versions []string) {
	if !k.IsOf(j) {
		return nil
	}
	for _, c := range k.Plan.Changes {
		if c.To != "" {
			versions = append(versions, c.To)
		}
	}
	return versions
}

// IsOf reports whether the plan is that of the run of a journal.
func (k KeptPlan) IsOf(j Journal) bool { return k.Run == j.Run && k.RunAt.Equal(j.RunAt) }
