package oracle

import (
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// soFar is what the runs of an environment have done of the stages of their rollout (invariant 15). Nil
// means that the next run begins with the first stage.
type soFar struct {
	// ended means that only a retry goes on.
	ended bool
	// since is the run that began.
	since uint64
	// stages are the stages in their order, as declared says.
	stages string
	// steps are the steps that are done, hosts the hosts that some run has met.
	steps map[string]bool
	hosts map[string]place
	// outputs are the sealed outputs of steps, closed is when a stage has begun that is the point of no
	// return.
	outputs map[string]string
	closed  map[string]time.Time
}

// place is the stage that a host had in the first of the runs; done means that it was upgraded.
type place struct {
	stage string
	done  bool
}

// declared tells one order of stages, to one release, from any other.
func declared(r *message.Reached) string {
	all := []string{"to " + r.Release}
	for _, s := range r.Stages {
		if s.Step {
			s.Name = "step " + s.Name
		}
		all = append(all, s.Name)
	}
	return strings.Join(all, ", ")
}

// goesOn judges that a run goes on where the runs before have ended: it takes no step that is done and has
// no host that is done, and each host has the stage that it had (invariant 15).
func (o *Oracle) goesOn(r message.Decoded, e message.Opened) {
	before := o.soFar[e.Environment]
	if !e.RollsBack().IsZero() { // It leaves that to the next run.
		if (e.Reached == nil) != (before == nil) {
			o.violated("invariant 15: record %d opens a rollback as if the runs had done %+v, and they have done %+v", r.Seq, e.Reached, before)
		} else if before != nil {
			o.sameReached(r.Seq, e.Reached, before)
		}
		return
	}
	if digest := digestOf(e); e.Reached != nil && e.Reached.Release != digest {
		o.violated("invariant 15: record %d opens a run of release %q as one of runs to release %q", r.Seq, digest, e.Reached.Release)
	}
	switch {
	case e.Reached == nil:
		return
	case e.Reached.Since == 0:
		o.beginsAnew(r, e, before)
		o.meetsMembers(r, e)
		return
	case before == nil || declared(e.Reached) != before.stages || before.ended && e.RetryOf == 0:
		o.violated("invariant 15: record %d opens a run that goes on after %+v, and the runs before have done %+v", r.Seq, *e.Reached, before)
		return
	}
	o.count("runs that go on where others ended")
	if before.ended {
		o.count("retries after all stages")
	}
	o.sameReached(r.Seq, e.Reached, before)
	o.meetsMembers(r, e)
	first := 0
	for _, s := range e.Rollout.Stages {
		if s.Step != nil && (before.steps[s.Name] || chooses(e)) {
			o.violated("invariant 15: record %d opens a run with step %s, which is done, or is of runs of all hosts", r.Seq, s.Name)
		}
		for _, name := range e.Members[first : first+s.Size] {
			at, known := before.hosts[name]
			switch {
			case known && at.stage != s.Name:
				o.violated("invariant 15: record %d opens a run with %s in stage %s, and it had stage %s", r.Seq, name, s.Name, at.stage)
			case at.done && !chooses(e):
				o.violated("invariant 15: record %d opens a run with %s, which is done", r.Seq, name)
			}
		}
		first += s.Size
	}
}

// digestOf is the digest of the release of a run; empty if it has none.
func digestOf(e message.Opened) string {
	if e.Release == nil {
		return ""
	}
	return e.Release.Digest
}

func chooses(e message.Opened) bool { return e.Chosen || e.RetryOf != 0 }

// beginsAnew judges that a run of all hosts begins with the first stage, though earlier runs have done
// something, only if the stages are others, or nobody is left who could go on.
func (o *Oracle) beginsAnew(r message.Decoded, e message.Opened, before *soFar) {
	if before == nil || declared(e.Reached) != before.stages || before.ended && e.RetryOf == 0 {
		return
	}
	if e.RetryOf != 0 {
		o.violated("invariant 15: record %d opens a retry that begins anew, and the runs before have done %+v", r.Seq, before)
	}
	o.count("runs that begin anew because nobody is left")
	for name, done := range before.steps {
		if !done {
			o.violated("invariant 15: record %d opens a run that begins anew, and step %s is left", r.Seq, name)
		}
	}
	for _, name := range e.Members {
		silent := slices.ContainsFunc(e.Roster, func(of message.Entry) bool { return of.Host == name && of.Silent })
		if !before.hosts[name].done && !silent {
			o.violated("invariant 15: record %d opens a run that begins anew, and %s is left", r.Seq, name)
		}
	}
}

// sameReached judges that a record says what the runs before have done.
func (o *Oracle) sameReached(seq uint64, r *message.Reached, before *soFar) {
	if r.Since != before.since || r.Ended != before.ended {
		o.violated("invariant 15: record %d says that run %d began, and that they have ended is %t; run %d did, and it is %t", seq, r.Since, r.Ended, before.since, before.ended)
	}
	hosts := map[string]place{}
	for _, s := range r.Stages {
		if s.Step && (s.Run != 0) != before.steps[s.Name] {
			o.violated("invariant 15: record %d says that step %s was done in run %d, and that it is done is %t", seq, s.Name, s.Run, before.steps[s.Name])
		}
		sealed := ""
		if s.Outputs != nil {
			sealed = s.Outputs.Sealed
		}
		if sealed != before.outputs[s.Name] || !s.Closed.Equal(before.closed[s.Name]) {
			o.violated("invariant 15: record %d says of stage %s that it has outputs %q and closed the way back at %s; it is %q and %s", seq, s.Name, sealed, s.Closed, before.outputs[s.Name], before.closed[s.Name])
		}
		for _, name := range s.Done {
			hosts[name] = place{s.Name, true}
		}
		for _, name := range s.Left {
			hosts[name] = place{s.Name, false}
		}
	}
	for name, at := range before.hosts {
		if hosts[name] != at {
			o.violated("invariant 15: record %d says of %s %+v, and it is %+v", seq, name, hosts[name], at)
		}
	}
	for name, at := range hosts {
		if _, known := before.hosts[name]; !known && at.done {
			o.violated("invariant 15: record %d says that %s is done, and no run has met it", seq, name)
		}
	}
}

// meetsMembers judges that an opening notes the stage of each member.
func (o *Oracle) meetsMembers(r message.Decoded, e message.Opened) {
	first := 0
	for _, s := range e.Rollout.Stages {
		of := e.Reached.Stage(s.Name)
		for _, name := range e.Members[first : first+s.Size] {
			if of == nil || !has(of.Left, name) && !has(of.Done, name) {
				o.violated("invariant 15: record %d does not say that %s is of stage %s", r.Seq, name, s.Name)
			}
		}
		first += s.Size
	}
}

// noteReached notes how far the run of the record at hand has come when it ends.
func (o *Oracle) noteReached() {
	p := o.run
	if !p.rollsBack.IsZero() {
		if p.touched {
			delete(o.soFar, o.environment)
		}
		return
	}
	of := o.soFar[o.environment]
	passed := p.until == "" && !p.chosen
	for n := range p.stages {
		passed = passed && !p.stages[n].doneAt.IsZero()
	}
	if p.reached == nil {
		delete(o.soFar, o.environment)
		return
	}
	some := of != nil && p.reached.Since != 0
	if !some {
		of = newSoFar(p)
	}
	for _, s := range p.reached.Stages {
		for _, name := range s.Left {
			of.hosts[name] = place{s.Name, false}
		}
	}
	for n := range p.stages {
		some = of.add(&p.stages[n]) || some
	}
	for _, m := range p.members {
		at := place{p.stages[m.stage].Name, m.upgraded || of.hosts[m.name].done}
		of.hosts[m.name], some = at, some || m.upgraded
	}
	of.ended = of.ended || passed || p.chosen && p.reached.Since == 0
	if delete(o.soFar, o.environment); some {
		o.soFar[o.environment] = of
		o.count("runs after which the next one goes on")
	}
}

func newSoFar(p *run) *soFar {
	of := &soFar{since: p.key(), stages: declared(p.reached), steps: map[string]bool{}, hosts: map[string]place{}, outputs: map[string]string{}, closed: map[string]time.Time{}}
	for _, s := range p.reached.Stages {
		if s.Step {
			of.steps[s.Name] = false
		}
	}
	return of
}

// add adds what a run has done of a stage, and reports whether it has done its step.
func (of *soFar) add(s *stage) bool {
	if s.PointOfNoReturn && s.begun && len(of.closed) == 0 {
		of.closed[s.Name] = s.begunAt
	}
	if !s.doing.done {
		return false
	}
	of.steps[s.Name], of.outputs[s.Name] = true, s.doing.sealed
	return true
}

// untilReached judges that a run which is to end after a stage has none after that.
func (o *Oracle) untilReached(r message.Decoded, e message.Opened) {
	if e.Until == "" {
		return
	}
	o.count("runs until a stage")
	last := slices.IndexFunc(e.Reached.Stages, func(s message.ReachedStage) bool { return s.Name == e.Until })
	for _, s := range e.Rollout.Stages {
		if n := slices.IndexFunc(e.Reached.Stages, func(of message.ReachedStage) bool { return of.Name == s.Name }); n > last {
			o.violated("invariant 15: record %d opens a run until stage %s, and it has stage %s", r.Seq, e.Until, s.Name)
		}
	}
}
