package run

import (
	"fmt"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Change is a write of a part of a tenant's configuration: its configuration, its rollout, a calendar,
// an environment or a disruption budget.
type Change struct {
	// Environment is the environment that is written, by its name for people; empty for what is the
	// tenant's.
	Environment string
	// Holds tells that the write can only hold runs: it pauses them, or closes windows.
	Holds bool
}

// Frozen refuses a change while a run under way freezes changes: an environment is frozen by its own
// run, what is the tenant's by the run of any environment. The rollout with which a run was opened
// decides whether it freezes changes, from its first stage to its end.
func (l *Ledger) Frozen(c Change) error {
	for _, env := range l.underWay {
		current := env.Current()
		if c.Holds || current == nil || !current.rollout.FreezeChanges || current.Phase != Upgrading {
			continue
		}
		name := env.Name
		if name == "" {
			name = v1.DefaultEnvironment
		}
		if c.Environment != "" && c.Environment != name {
			continue
		}
		in := name
		if l.alone() {
			in = ""
		}
		return frozen(current.Key(), in)
	}
	return nil
}

// frozen is the refusal of a change by a run. in names its environment in commands; empty if there is no
// other.
func frozen(id uint64, in string) *Refused {
	of := ""
	if in != "" {
		of = " of environment " + in
	}
	return &Refused{Run: id, Frozen: true, Message: fmt.Sprintf(
		"run %d%s freezes changes of the configuration until it ends, because its rollout has freeze-changes; wait for its end, or end it: %s; a freeze can be added, and runs can be paused",
		id, of, TypedIn(in, "abort"))}
}
