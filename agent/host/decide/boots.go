package decide

import (
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Boots is what a worker remembers of the starts of its machine, over runs: a host with
// more than one bootable system confirms the one that runs after each start, and does
// not go to a version again that its machine gave up.
type Boots struct {
	// Judged is the id of the last boot whose system was confirmed, or was left
	// unconfirmed because it failed its verify. One that is on trial is not judged yet.
	Judged string `json:"judged,omitempty"`
	// Noted is the id of the last boot for which it is on disk that the machine gave a version up.
	Noted string `json:"noted,omitempty"`
	// Rejected are the versions that the machine gave up, oldest first.
	Rejected []Rejected `json:"rejected,omitempty"`
	// Trial is what waits for the checks of a rollout; nil when nothing does.
	Trial *Trial `json:"trial,omitempty"`
}

// Rejected is a version that the machine of a host gave up by itself.
type Rejected struct {
	// Name is what the version is of, as the plan named it; empty when no plan did.
	Name    string `json:"name,omitempty"`
	Version string `json:"version"`
	// Running is the version that the machine went back to, At when that was noticed.
	Running string    `json:"running"`
	At      time.Time `json:"at"`
}

// maxRejected bounds the versions that are remembered: the newest.
const maxRejected = 20

// bootsMember is the member of its file, and of that of accepted, that holds what is summed.
const bootsMember = "boots"

// DecodeBoots reads the file with what a worker remembers of the starts of its machine.
func DecodeBoots(body []byte) (b Boots, err error) {
	err = format.Boots.DecodeSummed(body, bootsMember, &b)
	return b, err
}

// Encode returns the content of that file.
func (b Boots) Encode() ([]byte, error) { return format.Boots.EncodeSummed(bootsMember, b) }

// Equal reports whether boots are the same on disk.
func (b Boots) Equal(o Boots) bool {
	return b.Judged == o.Judged && b.Noted == o.Noted && b.Trial == o.Trial && slices.Equal(b.Rejected, o.Rejected)
}

// reject returns the boots after the machine gave up a version.
func (b Boots) reject(r Rejected) Boots {
	same := func(other Rejected) bool { return other.Name == r.Name && other.Version == r.Version }
	b.Rejected = append(slices.DeleteFunc(slices.Clone(b.Rejected), same), r)
	b.Rejected = b.Rejected[max(0, len(b.Rejected)-maxRejected):]
	return b.withoutTrialOf(r.Version)
}

// ByName returns the versions that a plan holds back, by their names.
func ByName(rejected []Rejected) message.Rejected {
	versions := make(message.Rejected, len(rejected))
	for _, r := range rejected {
		versions[r.Name] = append(versions[r.Name], r.Version)
	}
	return versions
}
