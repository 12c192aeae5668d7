package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy"
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
			if got := next.untilRetry(c.now); again && got != c.want {
				t.Errorf("it waits %s, not %s", got, c.want)
			}
			if do := next.Next(true, "", c.now); again && do != DoAwaitRetry {
				t.Errorf("next it does %s", do)
			}
			if do := next.Next(true, "", c.now.Add(c.want)); again && do == DoAwaitRetry || c.resume && do != DoResume {
				t.Errorf("when the pause is over it does %s", do)
			}
			if do := next.Next(true, "", c.now.Add(-2*longestRetry)); again && do == DoAwaitRetry {
				t.Error("a clock that was set back holds it up")
			}
		})
	}
	if got := backOff(1000); got != longestRetry {
		t.Errorf("the longest pause is %s", got)
	}
}

// busyHost fails with a class while it is busy.
type busyHost struct {
	strategy.Strategy
	class message.Class
	mu    sync.Mutex
	// left are the failures to come of each step, called its calls.
	left, called map[string]int
}

func newBusyHost(class message.Class, left map[string]int) *busyHost {
	return &busyHost{class: class, left: left, called: map[string]int{}}
}

func (b *busyHost) busy(step string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.called[step]++; b.left[step] > 0 {
		b.left[step]--
		return strategy.Fail(b.class, errors.New("apt-get (104) holds the lock"))
	}
	return nil
}

// calls are the calls of a step so far.
func (b *busyHost) calls(step string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.called[step]
}

func (b *busyHost) Prepare(ctx context.Context, job strategy.Job) (message.Plan, error) {
	if err := b.busy("prepare"); err != nil {
		return message.Plan{}, err
	}
	return b.Strategy.Prepare(ctx, job)
}

func (b *busyHost) Upgrade(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	if err := b.busy("upgrade"); err != nil {
		return 0, err
	}
	return b.Strategy.Upgrade(ctx, job)
}

func (b *busyHost) Resume(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	_ = b.busy("resume") // No failures of it are to come.
	return b.Strategy.Resume(ctx, job)
}

func (b *busyHost) Verify(ctx context.Context, job strategy.Job) error {
	if err := b.busy("verify"); err != nil {
		return err
	}
	return b.Strategy.Verify(ctx, job)
}

// TestLockIsWaitedFor checks that a whole run succeeds though each of its steps finds the
// host locked at first, that the host is upgraded once, and that people are told.
func TestLockIsWaitedFor(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		b := newBusyHost(message.Lock, map[string]int{"prepare": 3, "upgrade": 2, "verify": 1})
		r.change = func(o *Options) {
			if _, wrapped := o.Strategy.(*busyHost); !wrapped {
				b.Strategy, o.Strategy = o.Strategy, b
			}
		}
		if !wholeRun(r) {
			t.Error("the reboot is lost")
		}
		if b.called["prepare"] != 4 || b.called["upgrade"] != 3 || b.called["resume"] != 2 || b.called["verify"] != 2 {
			t.Errorf("the steps were called %v", b.called)
		}
		told := 0
		for _, p := range r.hostLog.progress {
			if strings.Contains(p.Message, "prepare: apt-get (104) holds the lock; it is tried again in 5s, for the 2nd time") {
				told++
			}
		}
		if told != 1 {
			t.Errorf("people were told %d times: %v", told, r.hostLog.progress)
		}
	})
}

// TestLockIsWaitedForOverRestarts checks that the limit of a step counts over all of its
// tries, also when the worker is started again between them.
func TestLockIsWaitedForOverRestarts(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		b := newBusyHost(message.Transient, map[string]int{"prepare": 1000})
		r.change = func(o *Options) {
			if _, wrapped := o.Strategy.(*busyHost); !wrapped {
				b.Strategy, o.Strategy = o.Strategy, b
			}
		}
		r.bear()
		began := time.Now()
		r.prepare()
		for range 3 { // It is stopped in the middle of each of the first pauses.
			calls := b.calls("prepare")
			for r.life(func() bool { return b.calls("prepare") > calls }) {
			}
		}
		got := r.until(message.Prepare)
		if took := time.Since(began); took < 30*time.Second || took > time.Minute {
			t.Errorf("it gave up after %s; the limit of a step is a minute", took)
		}
		if want := "apt-get (104) holds the lock; it was tried 4 times since "; !strings.HasPrefix(got, want) {
			t.Errorf("it answered %q, not %q", got, want)
		}
		if class := r.hostLog.replies[0].Class; class != message.Transient {
			t.Errorf("the class of the reply is %q", class)
		}
	})
}

// failing is a host whose step fails with a class.
type failing struct {
	strategy.Strategy
	upgrade, verify error
}

func (f failing) Upgrade(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	if f.upgrade != nil {
		return 0, f.upgrade
	}
	_, err := f.Strategy.Upgrade(ctx, job)
	return strategy.Done, err
}

func (f failing) Missing(context.Context, strategy.Job) ([]message.Change, error) { return nil, nil }

func (f failing) Verify(context.Context, strategy.Job) error { return f.verify }

// TestClassIsReplied checks that the class of a failure is in the reply, also after a
// rollback and from another worker.
func TestClassIsReplied(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		upgrade, verify error
		want            message.Class
	}{
		"none":              {broken, nil, ""},
		"of the upgrade":    {strategy.Fail(message.Install, broken), nil, message.Install},
		"verify by default": {nil, broken, message.Verify},
		"of verify":         {nil, strategy.Fail(message.Boot, broken), message.Boot},
		"success":           {nil, nil, ""},
	} {
		for _, visit := range []int{0, 1} {
			t.Run(fmt.Sprintf("%s, killed %d times", name, visit), func(t *testing.T) {
				t.Parallel()
				inBubble(t, func(r *rig) {
					r.change = func(o *Options) { o.Strategy = failing{o.Strategy, c.upgrade, c.verify} }
					r.bear()
					r.prepare()
					expect(r, message.Prepare, message.Done)
					r.dieAt, r.visit = "before rollback", visit
					r.command(11, message.Upgrade)
					r.until(message.Upgrade)
					if got := r.hostLog.replies[1].Class; got != c.want {
						t.Errorf("the class is %q, not %q", got, c.want)
					}
				})
			})
		}
	}
}
