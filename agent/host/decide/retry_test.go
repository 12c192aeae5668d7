package decide

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// TestRetry checks which failures repeat a step, and when the repetition ends.
func TestRetry(t *testing.T) {
	t.Parallel()
	locked := strategy.Fail(message.Lock, errors.New("locked"))
	const limit = time.Minute
	for name, c := range map[string]struct {
		phase  Phase
		do     Do
		err    error
		before Retry
		now    time.Time
		want   time.Duration // The pause; 0 for no further try.
		resume bool
	}{
		"a lock":                       {Preparing, DoPrepare, locked, Retry{}, now, 5 * time.Second, false},
		"what passes":                  {Preparing, DoPrepare, strategy.Fail(message.Transient, errors.New("later")), Retry{}, now, 5 * time.Second, false},
		"wrapped":                      {Verifying, DoVerify, fmt.Errorf("verify: %w", locked), Retry{}, now, 5 * time.Second, false},
		"an upgrade is asked first":    {Upgrading, DoUpgrade, locked, Retry{}, now, 5 * time.Second, true},
		"and again":                    {Upgrading, DoResume, locked, Retry{Tries: 1, Since: now}, now, 10 * time.Second, true},
		"the pauses grow":              {Preparing, DoPrepare, locked, Retry{Tries: 2, Since: now}, now, 20 * time.Second, false},
		"a rollback":                   {RollingBack, DoRollback, locked, Retry{}, now, 5 * time.Second, false},
		"success":                      {Preparing, DoPrepare, nil, Retry{}, now, 0, false},
		"no class":                     {Preparing, DoPrepare, errors.New("no"), Retry{}, now, 0, false},
		"what does not pass":           {Preparing, DoPrepare, strategy.Fail(message.Space, errors.New("full")), Retry{}, now, 0, false},
		"no call of the strategy":      {Rebooting, DoReboot, locked, Retry{}, now, 0, false},
		"the limit is reached":         {Preparing, DoPrepare, locked, Retry{Tries: 1, Since: now.Add(-50 * time.Second)}, now, 0, false},
		"just before it":               {Preparing, DoPrepare, locked, Retry{Tries: 1, Since: now.Add(-49 * time.Second)}, now, 10 * time.Second, false},
		"not-after has come":           {Preparing, DoPrepare, locked, Retry{}, later.Add(-5 * time.Second), 0, false},
		"what was begun is brought on": {Verifying, DoVerify, locked, Retry{}, later, 5 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := Journal{Run: 10, NotAfter: later, Seq: 11, Action: message.Upgrade, Phase: c.phase, Retry: c.before}
			next, again := j.retry(c.do, c.err, c.now, c.now, limit)
			if again != (c.want > 0) || again && next.Retry.Resume != c.resume {
				t.Fatalf("again: %v, %+v", again, next.Retry)
			}
			if got := next.UntilRetry(c.now); again && got != c.want {
				t.Errorf("it waits %s, not %s", got, c.want)
			}
			if do := next.next(true, "", c.now); again && do != DoAwaitRetry {
				t.Errorf("next it does %s", do)
			}
			if do := next.next(true, "", c.now.Add(c.want)); again && do == DoAwaitRetry || c.resume && do != DoResume {
				t.Errorf("when the pause is over it does %s", do)
			}
			if do := next.next(true, "", c.now.Add(-2*longestRetry)); again && do == DoAwaitRetry {
				t.Error("a clock that was set back holds it up")
			}
		})
	}
	if got := backOff(1000); got != longestRetry {
		t.Errorf("the longest pause is %s", got)
	}
}
