package run

import (
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
)

// Deadline is when a run sends no command any more, and when it ends at the latest.
type Deadline struct {
	// NotAfter is when no command is sent any more.
	NotAfter time.Time
	// endsBy is when the run ends, whatever its hosts do; overrun is how long after
	// not-after that is.
	endsBy  time.Time
	overrun time.Duration
	// frozen is the freeze that begins at NotAfter; empty when the run ends with its
	// window.
	frozen string
}

// overAt reports whether not-after has passed.
func (d *Deadline) overAt(now time.Time) bool { return !now.Before(d.NotAfter) }

func newDeadline(notAfter time.Time, overrun time.Duration) Deadline {
	return Deadline{NotAfter: notAfter, endsBy: notAfter.Add(overrun), overrun: overrun}
}

// freeze ends the run when a freeze begins. Hosts under way get their time from now on
// when it began earlier.
func (d *Deadline) freeze(name string, begins, now time.Time) {
	d.NotAfter, d.frozen, d.endsBy = begins, name, times.Later(begins, now).Add(d.overrun)
}

// fits reports whether a host that takes so long and starts now will be done by
// not-after.
func (d *Deadline) fits(now time.Time, took time.Duration) bool {
	return !now.Add(took).After(d.NotAfter)
}

// whyOver is the reason why no command is sent any more, for people.
func (d *Deadline) whyOver() string {
	if d.frozen != "" {
		return fmt.Sprintf("a freeze began at %s: %s", stamp(d.NotAfter), d.frozen)
	}
	return "not-after " + stamp(d.NotAfter) + " has passed"
}

// setBack follows the log's clock that was set back: the end stays as far away as it
// was.
func (d *Deadline) setBack(from, to time.Time) {
	d.NotAfter, d.endsBy = to.Add(d.NotAfter.Sub(from)), to.Add(d.endsBy.Sub(from))
}
