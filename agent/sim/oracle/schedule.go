package oracle

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// notice is how long a controller may take to learn what people have written, and to
// come back after an outage.
const notice = 5 * time.Minute

// span is from a time on and before another one.
type span struct{ start, end time.Time }

func (s span) contains(t time.Time) bool { return !t.Before(s.start) && t.Before(s.end) }

// freeze is a span in which no run may go on, when people wrote it, and whether they
// have removed it.
type freeze struct {
	span
	written time.Time
	removed bool
}

// schedule is what people have written down: when there should be runs, and when
// there must be none. The oracle does not know how wrong a clock is, so it judges by
// the schedule only while all clocks of the sites are right.
type schedule struct {
	windows []span
	freezes []freeze
	// told are the starts of the windows that had their run, or a reason for having
	// none. wrong tells that a clock was wrong once.
	told  map[time.Time]bool
	wrong bool
}

// Window notes a window that is configured before it opens.
func (o *Oracle) Window(start, end time.Time) {
	o.schedule.windows = append(o.schedule.windows, span{start, end})
}

// Freeze notes that a freeze is written at a time, in place of all earlier ones.
func (o *Oracle) Freeze(written, start, end time.Time) {
	o.Thaw()
	o.schedule.freezes = append(o.schedule.freezes, freeze{span: span{start, end}, written: written})
}

// Thaw notes that all freezes are removed.
func (o *Oracle) Thaw() {
	for n := range o.schedule.freezes {
		o.schedule.freezes[n].removed = true
	}
}

// ClockSet notes that the clock of a site is set wrong.
func (o *Oracle) ClockSet() { o.schedule.wrong = true }

// notFrozen holds that no command is sent inside of a freeze (invariant 3).
func (o *Oracle) notFrozen(what string, r message.Decoded, sent time.Time) {
	if o.schedule.wrong {
		return
	}
	for _, f := range o.schedule.freezes {
		if !f.removed && f.contains(sent) && sent.Sub(f.written) > notice {
			o.violated("invariant 3: %s, record %d, was sent at %s, inside of a freeze from %s to %s", what, r.Seq, sent, f.start, f.end)
		}
	}
}

// windowTold notes that a window had its run, or a reason for having none.
func (o *Oracle) windowTold(start time.Time) { o.schedule.told[start.UTC()] = true }

// ReasonTold notes that a controller says at a time why it opens no run, or that a
// run is under way, which the windows of this time share.
func (o *Oracle) ReasonTold(now time.Time) {
	for _, w := range o.schedule.windows {
		if w.contains(now) {
			o.windowTold(w.start)
		}
	}
}

// WindowsTold judges, at a time, that each window that has opened while the site was
// up, and has closed, had its run or a reason that is told (invariant 8). It leaves out
// windows that meet others, because they are one window then, and windows that a freeze
// has met.
func (o *Oracle) WindowsTold(up, now time.Time) {
	if o.schedule.wrong {
		return
	}
	for n, w := range o.schedule.windows {
		if w.start.Before(up) || now.Sub(w.end) < notice || o.meets(n) {
			continue
		}
		o.count("windows judged")
		if !o.schedule.told[w.start.UTC()] {
			o.violated("invariant 8: the window from %s to %s had neither a run nor a reason", w.start, w.end)
		}
	}
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
