package run

import (
	"fmt"
	"time"
)

// Deadline is when a run ends at the latest.
type Deadline struct {
	NotAfter time.Time
	// frozen is the freeze that begins at NotAfter; empty when the run ends with its
	// window.
	frozen string
}

// overAt reports whether not-after has passed.
func (d *Deadline) overAt(now time.Time) bool { return !now.Before(d.NotAfter) }

// fits reports whether a host that takes so long and starts now will be done by
// not-after.
func (d *Deadline) fits(now time.Time, took time.Duration) bool {
	return !now.Add(took).After(d.NotAfter)
}

// whyOver is the reason why no command is sent any more, for people.
func (d *Deadline) whyOver() string {
	if d.frozen != "" {
		return fmt.Sprintf("freeze %s began at %s", d.frozen, stamp(d.NotAfter))
	}
	return "not-after " + stamp(d.NotAfter) + " has passed"
}

// setBack follows the log's clock that was set back: the end stays as far away as it
// was.
func (d *Deadline) setBack(from, to time.Time) { d.NotAfter = to.Add(d.NotAfter.Sub(from)) }
