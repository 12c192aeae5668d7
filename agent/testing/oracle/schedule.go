package oracle

import (
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// notice is how long a controller may take to see a change of the configuration, and to
// recover from an outage.
const notice = 5 * time.Minute

// Reaction is how long a controller may take to act on a change of the configuration that it
// was given.
const Reaction = time.Minute

// Frozen is a freeze that a controller was given, and when.
type Frozen struct{ Start, End, Given time.Time }

// span is the time from a start, included, to an end, excluded.
type span struct{ start, end time.Time }

func (s span) contains(t time.Time) bool { return !t.Before(s.start) && t.Before(s.end) }

// freeze is a span in which no run may proceed, when it was written, and whether it was
// removed.
type freeze struct {
	span
	written time.Time
	removed bool
}

// Opening is a window of an environment, by the name of that on the log, and when it opens.
type Opening struct {
	Environment string
	Start       time.Time
}

// declaredWindow is a window of an environment. withdrawn means that it was edited or deleted before it
// had closed for long enough, or written after it had opened: it is not judged, and others that meet it
// are one window with it.
type declaredWindow struct {
	span
	of        Opening
	withdrawn bool
}

// skip is a window that an operator has skipped, from a time until another one; until is zero while it
// stays so.
type skip struct {
	of           Opening
	since, until time.Time
}

// schedule is the declared windows and freezes. The oracle does not know how wrong a
// clock is, so it judges by the schedule only while the clocks of all sites are right.
type schedule struct {
	windows []declaredWindow
	freezes []freeze
	skips   []skip
	// told are the windows that had their run, or in which somebody who asked
	// was told why not; missed those of which a record says that they closed without a run;
	// well those in which a controller could have opened one. wrong means that a clock was
	// wrong once.
	told, missed, well map[Opening]bool
	wrong              bool
	// edits are when a schedule was written or removed, ends when a session of a controller ended.
	edits, ends []time.Time
	// regrouped means that hosts may have moved from one environment to another.
	regrouped bool
}

func newSchedule() schedule {
	return schedule{told: map[Opening]bool{}, missed: map[Opening]bool{}, well: map[Opening]bool{}}
}

// Window notes a window that is written at a time, and closes after it.
func (o *Oracle) Window(of Opening, end, written time.Time) {
	of.Start = of.Start.UTC()
	o.schedule.windows = append(o.schedule.windows, declaredWindow{span: span{of.Start, end}, of: of, withdrawn: of.Start.Before(written)})
}

// Regrouped notes that an environment is written anew or deleted at a time: its windows that have not
// closed are withdrawn, and hosts may be in others.
func (o *Oracle) Regrouped(environment string, now time.Time) {
	s := &o.schedule
	s.edits, s.regrouped = append(s.edits, now), true
	for n := range s.windows {
		if w := &s.windows[n]; w.of.Environment == environment && now.Before(w.end.Add(notice)) {
			w.withdrawn = true
		}
	}
}

// Relabeled notes that hosts may be in other environments, because their labels have changed.
func (o *Oracle) Relabeled() { o.schedule.regrouped = true }

// Skip notes that a window is skipped at a time.
func (o *Oracle) Skip(of Opening, now time.Time) {
	of.Start = of.Start.UTC()
	o.schedule.skips = append(o.schedule.skips, skip{of: of, since: now})
}

// Unskip notes that a window is skipped no longer.
func (o *Oracle) Unskip(of Opening, now time.Time) {
	of.Start = of.Start.UTC()
	for n := range o.schedule.skips {
		if s := &o.schedule.skips[n]; s.of == of && s.until.IsZero() {
			s.until = now
		}
	}
}

// wasSkipped reports whether a window was skipped while it was open, or until so shortly before that
// no controller need have known.
func (s *schedule) wasSkipped(w declaredWindow) bool {
	return slices.ContainsFunc(s.skips, func(skip skip) bool {
		return skip.of == w.of && skip.since.Before(w.end) && (skip.until.IsZero() || skip.until.After(w.start.Add(-Reaction)))
	})
}

// notSkipped judges that a writer which knows that a window is skipped neither opens its run nor says
// that it was missed.
func (o *Oracle) notSkipped(what string, r message.Decoded, of Opening) {
	of.Start = of.Start.UTC()
	if has(o.skips, of) {
		o.violated("the window of %q that opens at %s %s by record %d, and it is skipped", of.Environment, of.Start, what, r.Seq)
	}
}

// Freeze notes that a freeze is written at a time and replaces all earlier freezes.
func (o *Oracle) Freeze(written, start, end time.Time) {
	o.Thaw(written)
	o.schedule.freezes = append(o.schedule.freezes, freeze{span: span{start, end}, written: written})
}

// Thaw notes that all freezes are removed at a time.
func (o *Oracle) Thaw(now time.Time) {
	o.schedule.edits = append(o.schedule.edits, now)
	for n := range o.schedule.freezes {
		o.schedule.freezes[n].removed = true
	}
}

// ClockSet notes that the clock of a site is set wrong.
func (o *Oracle) ClockSet() { o.schedule.wrong = true }

// SessionEnded notes that a controller has forgotten at a time what is in no store: it has
// ended, or changed its role.
func (o *Oracle) SessionEnded(now time.Time) {
	o.schedule.ends = append(o.schedule.ends, now)
}

// notFrozen judges that no command is sent during a freeze (invariant 3).
func (o *Oracle) notFrozen(what string, r message.Decoded, sent time.Time) {
	if o.schedule.wrong {
		return
	}
	for _, f := range o.schedule.freezes {
		if !f.removed && f.contains(sent) && sent.Sub(f.written) > notice {
			o.violated("invariant 3: %s, record %d, was sent at %s, inside of a freeze from %s to %s", what, r.Seq, sent, f.start, f.end)
		}
	}
	// Most freezes are replaced before the notice is over.
	if f := o.frozen; (span{f.Start, f.End}).contains(sent) && sent.Sub(f.Given) > Reaction {
		o.violated("invariant 3: %s, record %d, was sent at %s by a controller that had known since %s of a freeze from %s to %s", what, r.Seq, sent, f.Given, f.Start, f.End)
	}
}

// windowTold notes that a window had its run.
func (o *Oracle) windowTold(of Opening) {
	of.Start = of.Start.UTC()
	o.schedule.told[of] = true
}

// windowMissed notes that a record says that a window closed without a run.
func (o *Oracle) windowMissed(of Opening) {
	of.Start = of.Start.UTC()
	o.schedule.missed[of] = true
}

// ReasonTold notes that a controller tells at a time why it opens no run of an environment, or that one
// is under way, which all windows of this time share.
func (o *Oracle) ReasonTold(environment string, now time.Time) {
	o.schedule.note(o.schedule.told, environment, now)
}

// SiteWell notes that nothing has kept a controller from opening a run of an environment for so long by
// now that it should have opened one.
func (o *Oracle) SiteWell(environment string, now time.Time) {
	o.schedule.note(o.schedule.well, environment, now)
}

// note notes the windows of an environment at a time.
func (s *schedule) note(of map[Opening]bool, environment string, now time.Time) {
	for _, w := range s.windows {
		if w.of.Environment == environment && w.contains(now) {
			of[w.of] = true
		}
	}
}

// WindowsTold judges, at a time, that each window that opened while the site was up,
// and has closed, had its run or a reason (invariant 8). The record that it was missed is a
// reason only where the site was not well. It leaves out windows that meet other windows of their
// environment, because those are then one window, windows that meet a freeze or are skipped, and windows
// that may be forgotten.
func (o *Oracle) WindowsTold(up, now time.Time) {
	s := &o.schedule
	if s.wrong {
		return
	}
	for n, w := range s.windows {
		if w.withdrawn || w.start.Before(up) || now.Sub(w.end) < notice || s.meets(n) || s.mayForget(w.span) {
			continue
		}
		if s.wasSkipped(w) {
			o.count("windows that are skipped")
			continue
		}
		o.countJudged(w)
		switch {
		case s.told[w.of]:
		case s.well[w.of]:
			o.violated("invariant 8: the window of %q from %s to %s had no run, and nobody said why, while the site was well", w.of.Environment, w.start, w.end)
		case !s.missed[w.of] && !s.regrouped && o.hasHosts(w.of.Environment):
			o.violated("invariant 8: the window of %q from %s to %s had neither a run nor a reason", w.of.Environment, w.start, w.end)
		}
	}
}

// countJudged counts a window that is judged.
func (o *Oracle) countJudged(w declaredWindow) {
	o.count("windows judged")
	if w.of.Environment != "" {
		o.count("windows of environments judged")
	}
	if o.schedule.earlierTold(w) {
		o.count("windows judged that follow another")
	}
}

// hasHosts reports whether an environment surely has hosts: nobody records that a window without any
// was missed. The default environment has all hosts while there is no other.
func (o *Oracle) hasHosts(environment string) bool {
	if !o.grouped {
		return true
	}
	for _, h := range o.hosts {
		if h.homed && h.home == environment && !h.forced {
			return true
		}
	}
	return false
}

// mayForget reports whether a window may stay without a reason. A controller that starts
// knows the schedule since its last edit; what was owed before that edit is in the memory
// of the controllers that saw it (seeds 6297, 9458 and 7020995, where none could write to the
// log).
func (s *schedule) mayForget(w span) bool {
	since := span{w.start, w.end.Add(notice)}
	return slices.ContainsFunc(s.edits, since.contains) && slices.ContainsFunc(s.ends, since.contains)
}

// earlierTold reports whether a window of the same environment before another one had its run, or a
// reason.
func (s *schedule) earlierTold(later declaredWindow) bool {
	return slices.ContainsFunc(s.windows, func(w declaredWindow) bool {
		return w.of.Environment == later.of.Environment && w.start.Before(later.start) && s.told[w.of]
	})
}

// meets reports whether a window meets another window of its environment, also one that was withdrawn,
// or a freeze.
func (s *schedule) meets(n int) bool {
	w := s.windows[n]
	for k, other := range s.windows {
		if k != n && other.of.Environment == w.of.Environment && w.touches(other.span) {
			return true
		}
	}
	return slices.ContainsFunc(s.freezes, func(f freeze) bool { return w.touches(f.span) })
}

// touches reports whether two spans overlap, or one begins when the other ends.
func (s span) touches(other span) bool { return !other.start.After(s.end) && !s.start.After(other.end) }
