package decide

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// TestRetry checks which failures repeat an action, and when the repetition ends.
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
	if got := backOff(1000); got != time.Minute {
		t.Errorf("the longest pause is %s", got)
	}
}

// TestInterrupted has an action end its worker again and again: it is taken again at once some
// times, then after growing pauses, and then it has failed. An action that was not in progress
// when its worker ended is not counted. The system on which a rollback has failed is judged:
// it must not be confirmed.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	const limit = time.Minute
	for phase, c := range map[Phase]struct {
		do     Do
		next   Phase
		result string
	}{
		Preparing:   {DoPrepare, Answering, "the worker or its machine stopped 9 times while preparing, since 2027-01-01T00:00:00Z; to find out why, read the log of the machine (journalctl)"},
		Upgrading:   {DoResume, RollingBack, "the worker or its machine stopped 9 times while upgrading, since 2027-01-01T00:00:00Z; to find out why, read the log of the machine (journalctl)"},
		Verifying:   {DoVerify, RollingBack, "the worker or its machine stopped 9 times while verifying, since 2027-01-01T00:00:00Z; to find out why, read the log of the machine (journalctl)"},
		RollingBack: {DoRollback, Answering, "; rollback failed: the worker or its machine stopped 9 times while rolling-back, since 2027-01-01T00:00:00Z; to find out why, read the log of the machine (journalctl)"},
	} {
		t.Run(string(phase), func(t *testing.T) {
			t.Parallel()
			now := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
			seen := Seen{BootID: "boot-1", Lease: Held, Limit: limit}
			s := State{Journal: Journal{Run: 10, NotAfter: now.Add(time.Hour), Seq: 11, Action: message.Upgrade, Phase: phase, BootID: "boot-1"}}
			var pauses []time.Duration
			for s.Phase == phase {
				s.Fresh = false // Another worker starts.
				decision := s.Next(now, seen)
				if decision.Do != DoInterrupted || s.Retry.Ends == decision.State.Retry.Ends {
					t.Fatalf("after %d ends it does %s", s.Retry.Ends, decision.Do)
				}
				if s = decision.State; s.Phase != phase {
					break
				}
				pause := s.UntilRetry(now)
				pauses = append(pauses, pause)
				s.Fresh = s.Retry.Ends%2 == 0
				if decision := s.Next(now, seen); pause > 0 && decision.Do != DoAwaitRetry {
					t.Fatalf("in the pause it does %s", decision.Do)
				} else if pause > 0 {
					s = decision.State
				} else {
					s.Fresh = true
				}
				now = now.Add(pause)
				if decision := s.Next(now, seen); decision.Do != c.do {
					t.Fatalf("after the pause it does %s, not %s", decision.Do, c.do)
				}
			}
			if want := []time.Duration{0, 0, 0, 0, 0, 5 * time.Second, 10 * time.Second, 20 * time.Second}; !slices.Equal(pauses, want) {
				t.Errorf("the pauses are %s", pauses)
			}
			if s.Phase != c.next || s.Result.Text != c.result || s.Result.Class != message.Install && phase != RollingBack || s.Retry != (Retry{}) {
				t.Errorf("in the end it is %s with %+v", s.Phase, s.Journal)
			}
			if judged := s.Boots.Judged == "boot-1"; judged != (phase == RollingBack) {
				t.Errorf("in the end the boots are %+v", s.Boots)
			}
		})
	}
}

// TestResumeAfterNotDone checks that an upgrade which was tried again, and which the strategy
// said has had no effect, is resumed once its worker has ended in the midst of it, whatever the
// clock says: the pause of the earlier try is over.
func TestResumeAfterNotDone(t *testing.T) {
	t.Parallel()
	locked := strategy.Fail(message.Lock, errors.New("locked"))
	seen := Seen{BootID: "boot-1", Lease: Held, Limit: time.Hour}
	for name, back := range map[string]time.Duration{"the clock goes on": -time.Second, "the clock is behind": 3 * time.Second, "far behind": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := State{Fresh: true, Journal: Journal{Run: 10, NotAfter: now.Add(2 * time.Hour), Seq: 11, Action: message.Upgrade, Phase: Upgrading, BootID: "boot-1"}}
			s, again := s.After(Ended{Do: DoUpgrade, Err: locked, Began: now, Limit: time.Hour}, "boot-1", now)
			if due := now.Add(firstRetry); !again || !s.Retry.Due.Equal(due) {
				t.Fatalf("again: %v, %+v", again, s.Retry)
			}
			at := now.Add(firstRetry)
			s, _ = s.After(Ended{Do: DoResume, Outcome: strategy.NotDone, Began: at, Limit: time.Hour}, "boot-1", at)
			if decision := s.Next(at, seen); decision.Do != DoUpgrade {
				t.Fatalf("once nothing was done it does %s", decision.Do)
			}
			s.Fresh = false // The machine crashes in the midst of that.
			at = at.Add(-back)
			for range 3 {
				decision := s.Next(at, seen)
				if s = decision.State; decision.Do == DoResume {
					return
				}
				if decision.Do != DoInterrupted {
					t.Fatalf("after the crash it does %s", decision.Do)
				}
			}
			t.Errorf("it is never resumed: %+v", s)
		})
	}
}
