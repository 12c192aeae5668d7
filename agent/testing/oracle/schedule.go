package oracle

import (
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// notice is how long a controller may take to see a change of the configuration, and to
// recover from an outage.
const notice = 5 * time.Minute

// reaction is how long a controller may take to act on a change of the configuration that it
// was given.
const reaction = time.Minute

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

// schedule is the declared windows and freezes. The oracle does not know how wrong a
// clock is, so it judges by the schedule only while the clocks of all sites are right.
type schedule struct {
	windows []span
	freezes []freeze
	// told are the starts of the windows that had their run, or in which somebody who asked
	// was told why not; missed those of which a record says that they closed without a run;
	// well those in which a controller could have opened one. wrong means that a clock was
	// wrong once.
	told, missed, well map[time.Time]bool
	wrong              bool
	// edits are when a freeze was written or removed, ends when a session of a controller ended.
	edits, ends []time.Time
}

// Window notes a window that is configured before it opens.
func (o *Oracle) Window(start, end time.Time) {
	o.schedule.windows = append(o.schedule.windows, span{start, end})
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
	if f := o.frozen; (span{f.Start, f.End}).contains(sent) && sent.Sub(f.Given) > reaction {
		o.violated("invariant 3: %s, record %d, was sent at %s by a controller that had known since %s of a freeze from %s to %s", what, r.Seq, sent, f.Given, f.Start, f.End)
	}
}

// windowTold notes that a window had its run.
func (o *Oracle) windowTold(start time.Time) { o.schedule.told[start.UTC()] = true }

// windowMissed notes that a record says that a window closed without a run.
func (o *Oracle) windowMissed(start time.Time) { o.schedule.missed[start.UTC()] = true }

// ReasonTold notes that a controller tells at a time why it opens no run, or that a run is
// under way, which all windows of this time share.
func (o *Oracle) ReasonTold(now time.Time) { o.schedule.note(o.schedule.told, now) }

// SiteWell notes that nothing has kept a controller from opening a run for so long by now
// that it should have opened one.
func (o *Oracle) SiteWell(now time.Time) { o.schedule.note(o.schedule.well, now) }

// note notes the windows of a time.
func (s *schedule) note(of map[time.Time]bool, now time.Time) {
	for _, w := range s.windows {
		if w.contains(now) {
			of[w.start.UTC()] = true
		}
	}
}

// WindowsTold judges, at a time, that each window that opened while the site was up,
// and has closed, had its run or a reason (invariant 8). The record that it was missed is a
// reason only where the site was not well. It leaves out windows that meet other windows,
// because those are then one window, windows that meet a freeze, and windows that may be
// forgotten.
func (o *Oracle) WindowsTold(up, now time.Time) {
	if o.schedule.wrong {
		return
	}
	for n, w := range o.schedule.windows {
		if w.start.Before(up) || now.Sub(w.end) < notice || o.meets(n) || o.mayForget(w) {
			continue
		}
		o.count("windows judged")
		if o.earlierTold(w.start) {
			o.count("windows judged that follow another")
		}
		switch start := w.start.UTC(); {
		case o.schedule.told[start]:
		case !o.schedule.missed[start]:
			o.violated("invariant 8: the window from %s to %s had neither a run nor a reason", w.start, w.end)
		case o.schedule.well[start]:
			o.violated("invariant 8: the window from %s to %s had no run, and nobody said why, while the site was well", w.start, w.end)
		}
	}
}

// mayForget reports whether a window may stay without a reason. A controller that starts
// knows the schedule since its last edit; what was owed before that edit is in the memory
// of the controllers that saw it (seeds 6297, 9458 and 7020995, where none could write to the
// log).
func (o *Oracle) mayForget(w span) bool {
	since := span{w.start, w.end.Add(notice)}
	return slices.ContainsFunc(o.schedule.edits, since.contains) && slices.ContainsFunc(o.schedule.ends, since.contains)
}

// earlierTold reports whether a window before a time had its run, or a reason.
func (o *Oracle) earlierTold(start time.Time) bool {
	for _, w := range o.schedule.windows {
		if w.start.Before(start) && o.schedule.told[w.start.UTC()] {
			return true
		}
	}
	return false
}

// meets reports whether a window meets another window or a freeze.
func (o *Oracle) meets(n int) bool {
	w := o.schedule.windows[n]
	for k, other := range o.schedule.windows {
		if k != n && !other.start.After(w.end) && !w.start.After(other.end) {
			return true
		}
	}
	for _, f := range o.schedule.freezes {
		if !f.start.After(w.end) && !w.start.After(f.end) {
			return true
		}
	}
	return false
}
