package image

import (
	"fmt"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Systems are the versions of a host with more than one bootable system, such as two
// slots or several deployments. They decide what a plan of one change has come to.
type Systems struct {
	// Name is the name of the system in plans and versions.
	Name string
	// Running is the version that runs.
	Running string
	// Next is the version that starts next in place of it; empty if the one that runs
	// starts again.
	Next string
	// Unnamed means that a system starts next whose version its tool does not know: one that the
	// factory wrote. It proves itself when it runs.
	Unnamed bool
	// Failed is the version that was to start, and that the machine gave up by itself.
	Failed string
}

// Versions returns what is published: the version that runs, and the one that starts next if there is one.
func (s Systems) Versions() map[string]string {
	versions := map[string]string{s.Name: s.Running}
	if s.Next != "" {
		versions[s.Name+"-next"] = s.Next
	}
	return versions
}

// Plan returns what a version changes. reboot says why it takes a reboot.
func (s Systems) Plan(version string, download int64, reboot string, rejected message.Rejected) message.ChangeSet {
	if version == s.Running {
		return message.ChangeSet{}
	}
	plan := message.ChangeSet{Changes: []message.Change{{Name: s.Name, From: s.Running, To: version}}, Download: download, Reboot: reboot}.
		Withhold(rejected, "it was rolled back on this host")
	if len(plan.Changes) == 0 {
		plan.Download, plan.Reboot = 0, ""
	}
	return plan
}

// Outcome returns what an upgrade has come to. NotDone means that it is yet to be done.
func (s Systems) Outcome(plan message.ChangeSet) strategy.Outcome {
	outcome := strategy.Done
	for _, c := range plan.Changes {
		switch c.To {
		case s.Running:
		case s.Next:
			outcome = strategy.RebootRequired
		default:
			return strategy.NotDone
		}
	}
	return outcome
}

// Resumed is Outcome after a crash or a start of the machine. A version that the machine
// has given up is an error: it must not be tried again and again.
func (s Systems) Resumed(plan message.ChangeSet) (strategy.Outcome, error) {
	if outcome := s.Outcome(plan); outcome != strategy.NotDone {
		return outcome, nil
	}
	for _, c := range plan.Changes {
		if c.To == s.Failed {
			return 0, s.wentBack()
		}
	}
	return strategy.NotDone, nil
}

// Missing returns the changes of a job's plan that the host does not have. Before the reboot
// what starts next counts, and not what runs.
func (s Systems) Missing(job strategy.Job) (missing []message.Change) {
	has := s.Running
	switch {
	case job.Staged && s.Unnamed && job.Reversed:
		return nil
	case job.Staged && s.Next != "":
		has = s.Next
	}
	for _, c := range job.Plan.Changes {
		if c.To != has {
			missing = append(missing, message.Change{Name: c.Name, From: has, To: c.To})
		}
	}
	return missing
}

// Undo returns what of a job's plan is to be undone: a version that runs, or that starts next.
func (s Systems) Undo(job strategy.Job) strategy.Undo {
	reversed := strategy.Job{Plan: message.ChangeSet{Changes: strategy.Reversed(job.Plan.Changes)}}
	differs := s.Missing(reversed)
	reversed.Staged = true
	return strategy.ToUndo(job.Plan.Changes, append(differs, s.Missing(reversed)...))
}

// Verify returns an error unless the version of a plan runs.
func (s Systems) Verify(plan message.ChangeSet) error {
	for _, c := range plan.Changes {
		switch c.To {
		case s.Running:
		case s.Failed:
			return s.wentBack()
		default:
			return strategy.Fail(message.Verify, fmt.Errorf("%s is %s, not %s", s.Name, s.Running, c.To))
		}
	}
	return nil
}

// Boot returns what the last start of the machine came to.
func (s Systems) Boot() strategy.Boot { return strategy.Boot{Running: s.Running, Failed: s.Failed} }

func (s Systems) wentBack() error {
	return strategy.Fail(message.Boot, fmt.Errorf("%s %s did not start: the machine went back by itself to %s", s.Name, s.Failed, s.Running))
}

// WayBack is what undoes a plan.
type WayBack int

const (
	// Discard means that the old system runs, and the one of the plan must not start.
	Discard WayBack = iota + 1
	// UnderWay means that the old system starts next.
	UnderWay
	// Restore means that the old system is to be made the one that starts next.
	Restore
)

// Back returns what undoes a change of a plan.
func (s Systems) Back(c message.Change) WayBack {
	switch {
	case s.Running != c.To:
		return Discard
	case s.Next != "" && s.Next == c.From:
		return UnderWay
	default:
		return Restore
	}
}
