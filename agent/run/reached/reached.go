// Package reached decides where the next run of an environment goes on, and what earlier runs have done for
// it: steps that are done stay done, hosts that are upgraded are left out, and each host keeps the stage that
// it had in the first of these runs.
//
// This begins with a run of all hosts whose rollout has steps, or that is to end after a stage (start
// --until): after other runs the next one begins with the first stage. It is over when a run of all hosts has
// passed the last stage, whatever has failed on the way: else one host that always fails would keep all
// others from their next upgrade. It is also over when no step is left, and of the hosts only silent ones.
// And the next run begins with the first stage if it goes to another release, or if a stage was added, removed,
// renamed or moved, because then nobody can tell what of the new order is done. Whatever else is edited, such as
// the script of a step that has failed, the next run goes on.
//
// A run of chosen hosts, such as a retry, takes no step of runs that go on like this, and never begins or
// ends them. The hosts that it upgrades are done.
//
// If a run ended before a stage had soaked, the next one waits for the rest of the soak before it begins the
// first stage after that one.
//
// A retry goes on also after they are over, and after a run of chosen hosts that has taken steps: it takes
// none of them again that is done, and its hosts get their outputs. It takes those that failed: nobody else goes
// on from there.
//
// It is pure: the log keeps in `opened` how far the runs have come (message.Reached), and package run
// folds it.
package reached

import (
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// Course says how a run goes through its stages.
type Course struct {
	// Before is how far the runs before have come; nil if the run begins with the first stage, as it does
	// after they have ended, unless it is a retry.
	Before *message.Reached
	// Release is the digest of the release to which the run goes; empty if it has none.
	Release string
	// Until is the stage after which the run ends; empty if it goes on to the last one.
	Until string
	// Chosen means that somebody has chosen the hosts of the run.
	Chosen bool
	// RetryOf is the run of which all that is left is retried; 0 for none.
	RetryOf uint64
}

// TakesSteps reports whether the run takes the steps that are not done. One of chosen hosts leaves them to the
// next run that goes on, unless it is a retry and no other run does.
func (c Course) TakesSteps(r *message.Reached) bool {
	return !c.Chosen || !GoesOn(r) || r.Ended && r.Since <= c.RetryOf
}

// Begin returns what a run of declared stages is opened with; nil if no run goes on where it ends.
func (c Course) Begin(stages []rollout.Stage) *message.Reached {
	switch {
	case fits(c.Before, stages) && c.Before.Release == c.Release:
		return c.Before
	case !slices.ContainsFunc(stages, hasStep) && (c.Chosen || c.Until == ""):
		return nil
	}
	r := &message.Reached{Release: c.Release, Ended: c.Chosen}
	for _, s := range stages {
		r.Stages = append(r.Stages, message.ReachedStage{Name: s.Name, Step: s.Step != nil})
	}
	return r
}

func hasStep(s rollout.Stage) bool { return s.Step != nil }

// fits reports whether earlier runs had stages with these names and steps, in this order.
func fits(r *message.Reached, stages []rollout.Stage) bool {
	return r != nil && slices.EqualFunc(r.Stages, stages, func(a message.ReachedStage, b rollout.Stage) bool {
		return a.Name == b.Name && a.Step == (b.Step != nil)
	})
}

// GoesOn reports whether earlier runs have done something.
func GoesOn(r *message.Reached) bool { return r != nil && r.Since != 0 }

// Hosts are the stages of the hosts that earlier runs have met.
type Hosts map[string]Host

// Host is where a host is.
type Host struct {
	Stage string
	// Done means that it was upgraded.
	Done bool
}

// HostsOf returns where the hosts are.
func HostsOf(r *message.Reached) Hosts {
	if r == nil {
		return nil
	}
	all := Hosts{}
	for _, s := range r.Stages {
		for _, host := range s.Done {
			all[host] = Host{Stage: s.Name, Done: true}
		}
		for _, host := range s.Left {
			all[host] = Host{Stage: s.Name}
		}
	}
	return all
}

// Meet returns r with further hosts in its stages, by name: they keep these from then on.
func Meet(r *message.Reached, hosts map[string][]string) *message.Reached {
	if r == nil || len(hosts) == 0 {
		return r
	}
	met := *r
	met.Stages = slices.Clone(r.Stages)
	for i := range met.Stages {
		if s := &met.Stages[i]; len(hosts[s.Name]) > 0 {
			s.Left = union(s.Left, hosts[s.Name])
		}
	}
	return &met
}

// StepDone reports whether the step of a stage is done.
func StepDone(r *message.Reached, stage string) bool {
	of := r.Stage(stage)
	return of != nil && of.Step && of.Run != 0
}

// After returns how far the runs have come after one that was opened with that and has done more; nil if
// no run goes on from there. over means that the run had all hosts and has passed the last stage.
func After(opened *message.Reached, run message.Reached, over bool) *message.Reached {
	if opened == nil {
		return nil
	}
	after := *opened
	after.Ended, after.Stages = opened.Ended || over, slices.Clone(opened.Stages)
	some := opened.Since != 0
	for i := range after.Stages {
		if did := run.Stage(after.Stages[i].Name); did != nil {
			after.Stages[i] = added(after.Stages[i], *did)
			some = some || did.Run != 0
		}
	}
	switch {
	case !some:
		return nil
	case after.Since == 0:
		after.Since = run.Since
	}
	return &after
}

// SoakBefore returns the soak for which a run that goes on has to wait before it begins a stage, and its stage:
// of the soaks of the stages before, the one that ends last. It is zero if none soaks.
func SoakBefore(r *message.Reached, stage string) (of string, soak message.Soak) {
	if r == nil {
		return "", soak
	}
	for _, s := range r.Stages {
		if s.Name == stage {
			break
		}
		if s.Soaks != nil && s.Soaks.Until.After(soak.Until) {
			of, soak = s.Name, *s.Soaks
		}
	}
	return of, soak
}

// Soaking returns r with no soak that is over at a time, or that no later stage waits for.
func Soaking(r *message.Reached, at time.Time) *message.Reached {
	return withSoaks(r, func(i int, s message.Soak) *message.Soak {
		if i+1 == len(r.Stages) || !s.Until.After(at) {
			return nil
		}
		return &s
	})
}

// SetBack returns r after the clock of the log was set back to now: no soak lasts longer than it is long.
func SetBack(r *message.Reached, now time.Time) *message.Reached {
	return withSoaks(r, func(_ int, s message.Soak) *message.Soak { return new(s.SetBack(now)) })
}

// withSoaks returns r with other soaks.
func withSoaks(r *message.Reached, change func(stage int, s message.Soak) *message.Soak) *message.Reached {
	if r == nil || !slices.ContainsFunc(r.Stages, func(s message.ReachedStage) bool { return s.Soaks != nil }) {
		return r
	}
	changed := *r
	changed.Stages = slices.Clone(r.Stages)
	for i := range changed.Stages {
		if s := &changed.Stages[i]; s.Soaks != nil {
			s.Soaks = change(i, *s.Soaks)
		}
	}
	return &changed
}

// added returns a stage with what a run has done in it.
func added(s, did message.ReachedStage) message.ReachedStage {
	if did.Run != 0 {
		s.Run, s.Outputs = did.Run, did.Outputs
	}
	if s.Closed.IsZero() {
		s.Closed = did.Closed
	}
	if did.Soaks != nil {
		s.Soaks = did.Soaks
	}
	s.Done = union(s.Done, did.Done)
	s.Left = slices.DeleteFunc(slices.Clone(s.Left), func(host string) bool {
		_, done := slices.BinarySearch(s.Done, host)
		return done
	})
	return s
}

// union returns the hosts of both lists, sorted; it changes none of them.
func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}
