// Package rollback decides what a rollback undoes: which runs belong together, which of their steps
// and hosts go back, in which stages, and when there is no way back.
//
// A rollback is an ordinary run in reverse. Its stages are those of the runs that it rolls back, the last
// one first. A host is a member if one of these runs was the last to change it, and a step is undone if one
// of them was the last to do it. So a rollback that ended half-way goes on when it is asked for again, and a
// rollback is rolled back like any other run.
//
// It is pure: the runs come from the history of the site, and the last run of each host from what the site
// knows of it.
package rollback

import (
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Together returns the runs that are rolled back with one of them: those that it went on from, and those
// just before it that went to the same release or rolled back the same runs. earlier are the runs of its
// environment before it, the newest first.
func Together(of v1.Run, earlier []v1.Run) message.Interval {
	runs := message.Interval{Since: of.ID, Of: of.ID}
	for _, r := range earlier {
		if r.ID != of.GoesOnSince && !sameWay(of, r) {
			if of.GoesOnSince == 0 || r.ID < of.GoesOnSince {
				break
			}
			continue
		}
		runs.Since = r.ID
	}
	return runs
}

// sameWay reports whether two runs went to the same release, or rolled back the same runs.
func sameWay(a, b v1.Run) bool {
	if a.RollbackOf != 0 || b.RollbackOf != 0 {
		return a.RollbackOf == b.RollbackOf
	}
	return a.Release != nil && b.Release != nil && a.Release.Digest == b.Release.Digest
}

// Scope is what a rollback undoes.
type Scope struct {
	Runs message.Interval
	// Rollout is that of the newest of the runs, without stages. Members, MaxFailures and MinPrepared are
	// those of the run that had the most members.
	Rollout rollout.Resolved
	Members int
	// Stages are the stages of all the runs in the order in which they went. Steps are what is done with
	// the steps among them: true undoes one, false does one again that was undone.
	Stages []rollout.ResolvedStage
	Steps  map[string]bool
	// Outputs are those of the steps that the runs have done, and that nobody has undone.
	Outputs []message.StepOutputs
	// Hosts are the stages of the hosts that the runs had as members, Changed are those that they have
	// changed.
	Hosts   map[string]string
	Changed map[string]bool
}

// ScopeOf returns what a rollback of some runs undoes. They come oldest first and with their hosts; newer
// are the later runs of their environment, without. The error is a *run.Refused.
func ScopeOf(runs, newer []v1.Run) (Scope, error) {
	of := runs[len(runs)-1]
	scope := Scope{Runs: message.Interval{Since: runs[0].ID, Of: of.ID}, Steps: map[string]bool{}, Hosts: map[string]string{}, Changed: map[string]bool{}}
	if stage, at := closed(scope.Runs, runs, newer); !at.IsZero() {
		return scope, &run.Refused{Run: of.ID, Message: fmt.Sprintf(
			"%s cannot be rolled back any more since stage %s, the point of no return, began at %s", scope.Runs.Runs(), stage, at.UTC().Format(time.RFC3339))}
	}
	for _, r := range runs {
		if r.Pinned == nil {
			return scope, &run.Refused{Run: of.ID, Message: fmt.Sprintf("run %d cannot be rolled back: a version of the site that knew no rollbacks has kept it without its rollout", r.ID)}
		}
		scope.add(r)
	}
	scope.addSteps(runs, newer)
	scope.Outputs = outputs(runs, newer)
	return scope, nil
}

// closed returns the stage that closes the way back of some runs, and when it has begun; a zero time if
// none has. A later run that goes on from them closes it, too.
func closed(of message.Interval, runs, newer []v1.Run) (stage string, at time.Time) {
	for _, r := range slices.Concat(runs, newer) {
		if w := r.WayBack; w != nil && w.Closed != nil && (of.Has(r.ID) || of.Has(r.GoesOnSince)) {
			return w.Until, *w.Closed
		}
	}
	return "", time.Time{}
}

// add adds a run that is newer than those before.
func (scope *Scope) add(r v1.Run) {
	members, most, least := scope.Members, scope.Rollout.MaxFailures, scope.Rollout.MinPrepared
	scope.Rollout = r.Pinned.Rollout
	scope.Rollout.Stages, scope.Rollout.Paused = nil, false
	scope.order(r.Pinned.Rollout.Stages)
	if size := sizeOf(r.Pinned.Rollout); size >= members {
		members, most, least = size, scope.Rollout.MaxFailures, scope.Rollout.MinPrepared
	}
	scope.Members, scope.Rollout.MaxFailures, scope.Rollout.MinPrepared = members, most, least
	for _, h := range r.Hosts {
		if h.Stage == "" {
			continue
		}
		scope.Hosts[h.Hostname] = h.Stage
		if h.Status == string(run.Upgraded) && !h.UpToDate {
			scope.Changed[h.Hostname] = true
		}
	}
}

func sizeOf(r rollout.Resolved) (n int) {
	for _, s := range r.Stages {
		n += s.Size
	}
	return n
}

// order takes in the stages of a newer run: their order counts, also if the rollout was edited in between.
// Those that it does not have stay before and after those that they were next to: a run that goes on from
// others has none that they have done.
func (scope *Scope) order(stages []rollout.ResolvedStage) {
	before := scope.Stages
	scope.Stages = slices.Clone(stages)
	for i, s := range before {
		if scope.place(s.Name) >= 0 {
			continue
		}
		at := 0
		for _, later := range before[i+1:] {
			if n := scope.place(later.Name); n >= 0 {
				at = n
				break
			}
		}
		for _, earlier := range before[:i] {
			at = max(at, scope.place(earlier.Name)+1)
		}
		scope.Stages = slices.Insert(scope.Stages, at, s)
	}
}

// place is where a stage is; -1 for nowhere.
func (scope *Scope) place(stage string) int {
	return slices.IndexFunc(scope.Stages, func(s rollout.ResolvedStage) bool { return s.Name == stage })
}

// addSteps decides which steps are undone: those that the runs have done, unless a newer run has done
// or undone them since, or they have no undo, or the stage has hosts by now.
func (scope *Scope) addSteps(runs, newer []v1.Run) {
	since := map[string]bool{}
	for _, r := range newer {
		for _, s := range stepsDone(r) {
			since[s.Name] = true
		}
	}
	for _, r := range runs {
		for _, s := range stepsDone(r) {
			scope.Steps[s.Name] = !s.Step.Undo
		}
	}
	for _, s := range scope.Stages {
		undo, done := scope.Steps[s.Name]
		if !done || s.Step == nil || since[s.Name] || undo && s.Step.Undo == nil {
			delete(scope.Steps, s.Name)
		}
	}
}

// outputs returns the outputs of the steps that some runs have done, in the order in which they gave them, also
// of steps that stay done: what is undone, or done again, may have used them. Those of a step that was undone
// are gone.
func outputs(runs, newer []v1.Run) (all []message.StepOutputs) {
	without := func(stage string) {
		all = slices.DeleteFunc(all, func(o message.StepOutputs) bool { return o.Stage == stage })
	}
	undone := func(r v1.Run) {
		for _, s := range stepsDone(r) {
			if s.Step.Undo {
				without(s.Name)
			}
		}
	}
	for _, r := range runs {
		for _, o := range r.Pinned.Outputs {
			without(o.Stage)
			all = append(all, message.StepOutputs{Stage: o.Stage, Outputs: message.Outputs{Names: o.Names, Sealed: o.Sealed}})
		}
		undone(r)
	}
	for _, r := range newer {
		undone(r)
	}
	return all
}

// stepsDone returns the stages whose step a run has done or undone.
func stepsDone(r v1.Run) (done []v1.RunStage) {
	for _, s := range r.Stages {
		if s.Step != nil && s.Phase == v1.StageDone && s.DoneIn == 0 {
			done = append(done, s)
		}
	}
	return done
}
