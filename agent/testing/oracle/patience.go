package oracle

import (
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// patience is how long a run waits for hosts that have yet to answer prepare, and since when.
type patience struct {
	// lasts is how long it waits; none means that it waits for all, as runs did that are
	// opened without it.
	lasts time.Duration
	none  bool
	// enoughAt is since when so many members are prepared that the run could begin, lateSince
	// since when its current stage waits for nobody but hosts that are late; zero when that
	// is not so.
	enoughAt, lateSince time.Time
	// over and stageOver mean that the wait since then was over before the log's clock was
	// set back.
	over, stageOver bool
}

// newPatience is the patience of a run that may last so long: what its policy says, and never
// more than a tenth of that.
func newPatience(declared rollout.Span, lasts time.Duration) patience {
	p := patience{lasts: declared.Duration(), none: declared == ""}
	if tenth := lasts / 10; tenth < p.lasts {
		p.lasts = max(0, tenth)
	}
	return p
}

// clock notes that the log's clock is set back to now, when it would have shown least.
func (p *patience) clock(least, now time.Time) {
	p.over = p.over || !p.enoughAt.IsZero() && !least.Before(p.enoughAt.Add(p.lasts))
	p.stageOver = p.stageOver || !p.lateSince.IsZero() && !least.Before(p.lateSince.Add(p.lasts))
	p.enoughAt, p.lateSince = earlier(p.enoughAt, now), earlier(p.lateSince, now)
}

// notePatience notes what a run waits for after a record.
func (o *Oracle) notePatience(at time.Time) {
	p := o.run
	if p == nil || p.finished {
		return
	}
	w := &p.patience
	switch enough := p.enoughPrepared(); {
	case p.allPrepared:
	case !enough:
		w.enoughAt, w.over = time.Time{}, false
	case w.enoughAt.IsZero():
		w.enoughAt = at
	}
	switch {
	case !p.onlyLate():
		w.lateSince, w.stageOver = time.Time{}, false
	case w.lateSince.IsZero():
		w.lateSince = at
	}
}

// enoughPrepared reports whether min-prepared members are prepared, and at least one.
func (p *run) enoughPrepared() bool {
	return slices.ContainsFunc(p.members, func(m *member) bool { return !m.givenUp && m.phase == prepared }) && p.prepares(p.policy.MinPrepared)
}

// prepares reports whether so many members are prepared, were given up by a person, or were left out
// because they have not answered an earlier run.
func (p *run) prepares(least int) bool {
	counted := 0
	for _, m := range p.members {
		if m.givenUp || m.leftOut || m.phase == prepared {
			counted++
		}
	}
	return counted >= least
}

// onlyLate reports whether the current stage waits for nobody but hosts that are late.
func (p *run) onlyLate() bool {
	left := 0
	for _, m := range p.members {
		if m.stage != p.current() || !m.left() {
			continue
		}
		if left++; !m.isAwaited() {
			return false
		}
	}
	return p.allPrepared && left > 0
}

// leftAfter reports whether a stage after the n-th has members left, or a step.
func (p *run) leftAfter(n int) bool {
	for _, s := range p.stages[n+1:] {
		if s.Step != nil && !s.doing.passed {
			return true
		}
	}
	return slices.ContainsFunc(p.members, func(m *member) bool { return m.stage > n && m.left() })
}

// unmet notes that a member fails to prepare, if it is late.
func (o *Oracle) unmet(m *member) {
	if s := &o.run.stages[m.stage]; o.run.allPrepared && m.isAwaited() {
		s.unmet = true
	}
}

// mayBeginWithout judges that a run has waited for hosts that are late as long as it says.
func (o *Oracle) mayBeginWithout(r message.Decoded, sent time.Time) {
	w := o.run.patience
	if at := o.decided(sent); w.none || !w.over && at.Before(w.enoughAt.Add(w.lasts)) {
		o.violated("record %d, sent at %s, begins the run without hosts that are late, and enough are prepared since %s, for a patience of %s", r.Seq, at, w.enoughAt, w.lasts)
	}
}

// mayLeaveOut judges that a stage has waited for a host that is late as long as it says, and
// for nobody else, and that it is not passed over. A reply may have changed what it waits for.
func (o *Oracle) mayLeaveOut(m *member, r message.Decoded, sent time.Time) {
	p, s := o.run, &o.run.stages[m.stage]
	w, at := p.patience, o.decided(sent)
	switch {
	case o.raced():
	case w.none || w.lateSince.IsZero() || !w.stageOver && at.Before(w.lateSince.Add(w.lasts)):
		o.violated("record %d, sent at %s, leaves out %s, and its stage waits only for hosts that are late since %s, for a patience of %s", r.Seq, at, m.name, w.lateSince, w.lasts)
	case p.paused != 0 && o.known(p.paused):
		o.violated("record %d leaves out %s, and the run is paused", r.Seq, m.name)
	case s.Approval && !s.approved:
		o.violated("record %d leaves out %s, and stage %s is not approved", r.Seq, m.name, s.Name)
	case !s.begun && p.leftAfter(m.stage):
		o.violated("record %d leaves out %s, and so passes over stage %s, of which no host has begun", r.Seq, m.name, s.Name)
	}
	o.soaked(m.stage, "that "+m.name+" is left out", r, sent)
}

// Due is by when the run under way has to go on without the hosts that are late: to begin, or
// to leave them out of its current stage. It is false when it has a reason to wait: too few
// hosts are prepared, it is paused or ends, its stage soaks, waits to be approved or for
// other hosts, or other stages go by it.
func (o *Oracle) Due() (at time.Time, due bool) {
	p := o.runs[o.asked]
	if p == nil || p.finished || p.id == 0 || p.aborted || p.halted != 0 || p.patience.none {
		return time.Time{}, false
	}
	w, s := p.patience, &p.stages[p.current()]
	switch {
	case !p.allPrepared && !w.enoughAt.IsZero():
		at = w.enoughAt
	case w.lateSince.IsZero() || p.paused != 0 || p.perhapsPaused != 0 || s.Approval && !s.approved || !s.begun && p.leftAfter(p.current()):
		return time.Time{}, false
	default:
		if at = w.lateSince; s.approvedAt.After(at) {
			at = s.approvedAt
		}
		for _, before := range p.soaks(p.current()) {
			if before.ends().After(at) {
				at = before.ends()
			}
		}
	}
	at = at.Add(w.lasts)
	return at, at.Before(p.ends)
}
