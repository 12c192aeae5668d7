package rauc

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/image"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// unknown is the version of a slot whose image says none: the one that the factory
// wrote, if RAUC was not told.
const unknown = "unknown"

// slot is what RAUC says about a slot. A text that it does not give is empty.
type slot struct {
	name      string // such as "rootfs.0"
	class     string
	bootname  string // empty if the boot loader does not start it
	parent    string // the slot that this one belongs to
	state     string // "booted", "active" or "inactive"
	boot      string // the boot loader's opinion: "good" or "bad"
	status    string // of the last installation: "ok", "pending", "failed"
	version   string
	activated time.Time
}

// system is what RAUC says about the host.
type system struct {
	compatible string
	// version is what the running system says of itself; empty if it says nothing.
	version string
	// primary is the name of the slot that starts next; empty if the boot loader has
	// none, as when each has been tried.
	primary string
	slots   []slot
}

// running returns the slot that runs.
func (s system) running() (slot, error) {
	for _, one := range s.slots {
		if one.state == "booted" {
			if one.version == "" {
				one.version = cmp.Or(s.version, unknown)
			}
			return one, nil
		}
	}
	return slot{}, errors.New("RAUC knows no slot that runs; see whether rauc status names one as booted")
}

// others returns the slots that could start in place of the one that runs.
func (s system) others(running slot) (others []slot) {
	for _, one := range s.slots {
		if one.class == running.class && one.bootname != "" && one.name != running.name {
			others = append(others, one)
		}
	}
	return others
}

// Check implements image.State: an upgrade takes two slots.
func (s system) Check() error {
	running, err := s.running()
	switch {
	case err != nil:
		return err
	case running.bootname == "":
		return fmt.Errorf("the slot that runs, %s, has no bootname in RAUC's system.conf, so another could not start in its place", running.name)
	case len(s.others(running)) == 0:
		return fmt.Errorf("RAUC knows no other slot of class %s with a bootname; an upgrade needs two", running.class)
	}
	return nil
}

// Versions implements image.State: the system that runs is published under the class of
// its slot, and each slot whose version is known under its own name.
func (s system) Versions() (map[string]string, error) {
	running, err := s.running()
	if err != nil {
		return nil, err
	}
	versions := map[string]string{running.class: running.version}
	for _, one := range s.slots {
		if one.version != "" {
			versions[one.name] = one.version
		}
	}
	return versions, nil
}

// Compatible implements image.State.
func (s system) Compatible() string { return s.compatible }

// chosen returns the slot that was chosen last to be started. RAUC notes the second in
// which it makes a slot primary; no two choices are in one second, see pause.
func (s system) chosen(running slot) slot {
	last := running
	for _, one := range s.others(running) {
		if one.activated.After(last.activated) {
			last = one
		}
	}
	return last
}

// staged returns the slot that was chosen to start next in place of the one that runs,
// and that the boot loader takes. ok is false if there is none.
func (s system) staged(running slot) (staged slot, ok bool) {
	for _, one := range s.others(running) {
		// RAUC chooses a slot when all of its images are written. An installation that
		// breaks off leaves the slot bad, or without the status. Between a start and its
		// mark the one that runs counts as tried, and the other is primary, though it was
		// not chosen.
		if one.name == s.chosen(running).name && one.name == s.primary && one.boot != "bad" && one.whole() {
			return one, true
		}
	}
	return slot{}, false
}

// whole reports whether all that RAUC has begun to write to a slot is there. A slot
// that the factory wrote has no status.
func (one slot) whole() bool { return one.status == "" || one.status == "ok" }

// givenUp returns the slot that was chosen to start in place of the one that runs, and
// that the boot loader does not take any more. ok is false if there is none.
func (s system) givenUp(running slot) (gone slot, ok bool) {
	one := s.chosen(running)
	if _, isStaged := s.staged(running); isStaged || one.name == running.name || one.version == "" || !one.whole() {
		return slot{}, false
	}
	return one, true
}

// Systems implements image.State.
func (s system) Systems() (image.Systems, error) {
	running, err := s.running()
	if err != nil {
		return image.Systems{}, err
	}
	all := image.Systems{Name: running.class, Running: running.version}
	if staged, found := s.staged(running); found {
		all.Next, all.Unnamed = staged.version, staged.version == ""
	}
	if gone, found := s.givenUp(running); found {
		all.Failed = gone.version
	}
	return all, nil
}

// mark is a call of RAUC that changes what starts.
type mark struct {
	state string // "good", "bad" or "active"
	slot  string
}

// confirm returns the marks that keep what a start came to: with boot counting both
// slots count as tried after a way back, and unless the one that runs is good and the
// other bad, the next start takes the bad one again.
func (s system) confirm(failed string) ([]mark, error) {
	running, err := s.running()
	if err != nil {
		return nil, err
	}
	marks := []mark{{"good", running.name}}
	if failed == "" {
		return marks, nil
	}
	for _, one := range s.others(running) {
		if one.version == failed {
			marks = append(marks, mark{"bad", one.name})
			marks = append(marks, s.keep(running)...)
		}
	}
	return marks, nil
}

// keep returns the mark that chooses the slot that runs, unless it is chosen. Without
// it a slot that failed would be told again, and one that is written to would look as
// if it had failed. What RAUC notes may be wrong, since clocks are set: the slot that the
// boot loader takes counts as well.
func (s system) keep(running slot) []mark {
	if s.chosen(running).name == running.name && (s.primary == running.name || s.primary == "") {
		return nil
	}
	return []mark{{"active", running.name}}
}

// resolution is that of the times that RAUC notes.
const resolution = time.Second

// pause returns how long to wait until RAUC notes a later time for a choice than for
// those before. Of two choices in one second nobody could tell which was the last: a
// slot that failed would not be told.
func (s system) pause(now time.Time) time.Duration {
	var last time.Time
	for _, one := range s.slots {
		if one.activated.After(last) {
			last = one.activated
		}
	}
	return max(0, last.Add(resolution).Sub(now))
}

// longestPause is for clocks that were set back a little, as by a time server.
const longestPause = 10 * time.Second

// checkClock returns an error if the clock was set back so far that a choice would seem
// to be before the last one.
func (s system) checkClock(now time.Time) error {
	behind := s.pause(now)
	if behind <= longestPause {
		return nil
	}
	return strategy.Fail(message.Transient, fmt.Errorf("the clock of this machine is at %s, %s before RAUC last chose a slot, so it could not be told which slot was chosen last; set the clock",
		now.UTC().Format(time.RFC3339), (behind-resolution).Round(resolution)))
}

// restore returns the mark that chooses the slot with the system from before. RAUC knows
// no version of one that the factory wrote, though that system may have told its own when
// it ran.
func (s system) restore(version string) ([]mark, error) {
	running, err := s.running()
	if err != nil {
		return nil, err
	}
	others := s.others(running)
	for _, want := range []string{version, ""} {
		if i := slices.IndexFunc(others, func(o slot) bool { return o.whole() && o.version == want }); i >= 0 {
			return []mark{{"active", others[i].name}}, nil
		}
	}
	return nil, strategy.Fail(message.Install, fmt.Errorf("no other slot has the system from before, version %s: %s; rauc status --detailed shows more", version, describe(others)))
}

func describe(slots []slot) string {
	texts := make([]string, 0, len(slots))
	for _, one := range slots {
		texts = append(texts, fmt.Sprintf("%s has version %s and status %s", one.name, cmp.Or(one.version, unknown), cmp.Or(one.status, unknown)))
	}
	return strings.Join(texts, ", ")
}
