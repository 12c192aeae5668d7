package run

import (
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Control is who has paused or aborted a run.
type Control struct {
	// Paused says who has paused the run; nil while it is not paused.
	Paused *Pausing
	// aborted says who has aborted the run; nil when nobody has. atOnce means that the
	// run does not wait for the hosts under way.
	aborted *Pausing
	atOnce  bool
}

// Pausing is who paused or aborted a run, why and when.
type Pausing struct {
	By, Why string
	At      time.Time
}

// Aborted says who has aborted the run; nil when nobody has.
func (c *Control) Aborted() *Pausing { return c.aborted }

// ByPolicy is who pauses a run when too many hosts have failed.
const ByPolicy = "on-failure"

// pauseOnFailure pauses the run because of failures. A person who has paused the run
// sees the failure before resuming it; the rollout and the agent do not.
func (c *Control) pauseOnFailure(why string, at time.Time) {
	if c.Paused == nil || message.GoesOn(c.Paused.By) {
		c.Paused = &Pausing{By: ByPolicy, Why: message.CleanText(why), At: at}
	}
}

// tellHold returns the event that pauses the run for what holds up every run, or
// resumes it; nil when it is paused, or not, for what holds it up now. What
// somebody has paused is left to them.
func (c *Control) tellHold(seen *Seen) message.Event {
	hold, now := seen.Hold, c.Paused
	switch {
	case c.aborted != nil:
	case now == nil && hold != nil:
		return *hold
	case now == nil || !message.GoesOn(now.By):
	case hold == nil || hold.By != now.By || hold.By == message.ByAgent && hold.Why != now.Why:
		return message.Resumed{By: now.By}
	}
	return nil
}

// waiting returns who has to resume the run that is paused.
func (p *Pausing) waiting() Waiting {
	switch p.By {
	case message.ByAgent:
		return Waiting{What: ForResume, Detail: "somebody to repair an unreadable object: " + p.Why, Since: p.At}
	case message.ByRollout:
		return Waiting{What: ForResume, Detail: `the rollout to let it continue: its member "paused" is true` + reason(p.Why), Since: p.At}
	}
	return Waiting{What: ForResume, Detail: fmt.Sprintf("somebody to resume it: it was paused by %s%s", p.By, reason(p.Why)), Since: p.At}
}

func reason(why string) string {
	if why == "" {
		return ""
	}
	return " (" + why + ")"
}

// setBack follows the log's clock that was set back.
func (c *Control) setBack(now time.Time) {
	for _, p := range []*Pausing{c.Paused, c.aborted} {
		if p != nil {
			p.At = times.Earlier(p.At, now)
		}
	}
}
