package report

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/inventory"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// checkVersions is Kind.Check of versions.
func checkVersions(body []byte) ([]byte, error) {
	_, err := message.DecodeVersions(body)
	return body, err
}

// changedVersions compares two reports of versions. What was reported before and cannot be read
// counts as no report.
func changedVersions(before, after []byte) (r v1.VersionReport) {
	was, err := message.DecodeVersions(before)
	if err != nil {
		return r
	}
	now, _ := message.DecodeVersions(after) // It was checked.
	r.Changes = v1.CompareVersions(was, now)
	r.Changed = len(r.Changes)
	size := 0
	for i, c := range r.Changes {
		if size += changeSize + len(c.Package) + len(c.From) + len(c.To); size > maxChanges {
			r.Changes = r.Changes[:i]
			break
		}
	}
	return r
}

func showVersions(k Kept, on *v1.Host) error {
	on.Reports = k.History
	return nil
}

func checkPlan(packed []byte) ([]byte, error) {
	_, err := message.UnpackPlan(packed)
	return packed, err
}

// maxSummaryReboot bounds the reason for a reboot in a summary, in bytes.
const maxSummaryReboot = 200

func summarizePlan(packed []byte) (any, error) {
	plan, err := message.UnpackPlan(packed)
	return v1.OfferSummary{
		Changes: len(plan.Changes), Held: len(plan.Held), DownloadBytes: plan.Download, Reboot: text.Fit(plan.Reboot, maxSummaryReboot, "..."), Release: releaseOf(plan),
	}, err
}

// releaseOf returns the release that an offer was made by; nil for none.
func releaseOf(plan message.ChangeSet) *v1.RunRelease {
	ref, _ := release.ParseRef(plan.Release) // It was checked.
	return v1.ReleaseOf(ref)
}

// HostPlan returns the plan of an offer or of a run as the API shows it.
func (k Kept) HostPlan() (v1.HostPlan, error) {
	plan, err := message.UnpackPlan(k.Body)
	if err != nil {
		return v1.HostPlan{}, damaged(err)
	}
	shown := v1.HostPlan{At: k.At, Changes: make([]v1.VersionChange, 0, len(plan.Changes)), DownloadBytes: plan.Download, Reboot: plan.Reboot, Release: releaseOf(plan)}
	for _, c := range plan.Changes {
		shown.Changes = append(shown.Changes, v1.VersionChange{Package: c.Name, From: c.From, To: c.To})
	}
	for _, h := range plan.Held {
		shown.Held = append(shown.Held, v1.HeldPackage{Package: h.Name, Version: h.Version, Offered: h.Offered, Reason: h.Reason})
	}
	return shown, nil
}

func checkInventory(body []byte) ([]byte, error) {
	_, err := inventory.Decode(body)
	return body, err
}

func showInventory(k Kept, on *v1.Host) error {
	read, err := inventory.Decode(k.Body)
	if err != nil {
		return damaged(err)
	}
	on.Inventory = &v1.HostInventory{At: k.At, Inventory: read}
	return nil
}

func cleanOutput(printed []byte) ([]byte, error) { return message.CleanOutput(printed), nil }

// Summary is the summary of a report that is kept.
type Summary struct {
	At   time.Time
	JSON string
}
