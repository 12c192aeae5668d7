package oracle

import (
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// goes is the release to which an environment goes by its runs that have ended.
type goes struct {
	// to and was are releases by name and digest; was is empty for none.
	to, was string
	// since and last are the first and the newest run that went there.
	since, last uint64
	steps       []string
	// closed is the stage that has closed the way back, closedIn its run; empty while none has.
	closed   string
	closedIn uint64
	closedAt time.Time
	// back is the run that has rolled back the release; zero if none has.
	back message.RolledBackIn
}

// samePromotion judges that a record says how far the runs of its environment have come to a release.
func (o *Oracle) samePromotion(seq uint64, environment string, told *message.Promotion) {
	is := o.goes[environment]
	if told == nil || is == nil {
		if told != nil || is != nil {
			o.violated("record %d says of environment %q that it goes to %+v, and it goes to %+v", seq, environment, told, is)
		}
		return
	}
	said := goes{to: told.Release.String(), since: told.Since, last: told.Last, steps: told.Steps}
	if told.Was != nil {
		said.was = told.Was.String()
	}
	if c := told.Closed; c != nil {
		said.closed, said.closedIn, said.closedAt = c.Stage, c.Run, c.At
	}
	if back := told.RolledBack; back != nil {
		said.back = *back
	}
	if said.back.Run != is.back.Run || !said.back.At.Equal(is.back.At) || said.back.By != is.back.By || said.back.Why != is.back.Why {
		o.violated("record %d says of environment %q that its release was rolled back by %+v, and it was by %+v", seq, environment, said.back, is.back)
	}
	if said.to != is.to || said.was != is.was || said.since != is.since || said.last != is.last || !slices.Equal(said.steps, is.steps) {
		o.violated("record %d says of environment %q that it goes to %+v, and it goes to %+v", seq, environment, said, *is)
	}
	if said.closed != is.closed || said.closedIn != is.closedIn || !said.closedAt.Equal(is.closedAt) {
		o.violated("record %d says of environment %q that stage %q of run %d has closed the way back at %s, and stage %q of run %d did at %s",
			seq, environment, said.closed, said.closedIn, said.closedAt, is.closed, is.closedIn, is.closedAt)
	}
	o.count("environments that go to a release")
}

// noteRelease notes where the environment of the record at hand goes by its run, which ends: to the
// release of a run that has touched something. Only a run of all hosts makes that another one.
func (o *Oracle) noteRelease() {
	p, is := o.run, o.goes[o.environment]
	switch {
	case !p.touched:
		return
	case !p.rollsBack.IsZero():
		o.noteRollback(is)
		return
	case p.release == "":
		return
	}
	if is == nil || is.to != p.release || is.back.Run != 0 {
		if p.chosen {
			return
		}
		is = &goes{to: p.release, since: p.key(), was: is.had(p.release)}
		if is.was != "" {
			o.count("environments that go to another release")
		}
		o.goes[o.environment] = is
	}
	is.last = p.key()
	is.addSteps(p)
	for n := range p.stages {
		s := &p.stages[n]
		if s.PointOfNoReturn && s.begun && is.closed == "" {
			is.closed, is.closedIn, is.closedAt = s.Name, p.key(), s.begunAt
		}
	}
}

// addSteps notes the steps that a run has done.
func (is *goes) addSteps(p *run) {
	for n := range p.stages {
		if s := &p.stages[n]; s.doing.done && !slices.Contains(is.steps, s.Name) {
			is.steps = append(is.steps, s.Name)
		}
	}
}

// had is the release that the hosts of an environment had that goes to another one; empty if nobody can
// tell, or if it is that one.
func (is *goes) had(to string) string {
	switch {
	case is == nil:
		return ""
	case is.to == to || is.back.Run != 0 && is.was != to:
		return is.was
	case is.back.Run != 0:
		return ""
	}
	return is.to
}

// noteRollback notes that the run of the record at hand has rolled back others: runs that went to the
// release, or the one that had rolled that back.
func (o *Oracle) noteRollback(is *goes) {
	p := o.run
	switch {
	case is == nil:
	case is.back.Run != 0 && p.rollsBack.Of == is.back.Run:
		is.back, is.last = message.RolledBackIn{}, p.key()
		is.addSteps(p)
		o.count("rollbacks of a release that are rolled back")
	case p.rollsBack.Of >= is.since && p.rollsBack.Of <= is.last:
		is.back = message.RolledBackIn{Run: p.key(), At: p.openedAt, By: p.by, Why: p.why}
		for n := range p.stages {
			if s := &p.stages[n]; s.doing.done {
				is.steps = slices.DeleteFunc(is.steps, func(step string) bool { return step == s.Name })
			}
		}
		o.count("releases that are rolled back")
	}
}
