package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// busyHost fails with a class while it is busy.
type busyHost struct {
	strategy.Strategy
	class message.Class
	mu    sync.Mutex
	// left are the failures to come of each action, called its calls.
	left, called map[string]int
}

func newBusyHost(class message.Class, left map[string]int) *busyHost {
	return &busyHost{class: class, left: left, called: map[string]int{}}
}

func (b *busyHost) busy(action string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.called[action]++; b.left[action] > 0 {
		b.left[action]--
		return strategy.Fail(b.class, errors.New("apt-get (104) holds the lock"))
	}
	return nil
}

// calls are the calls of an action so far.
func (b *busyHost) calls(action string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.called[action]
}

func (b *busyHost) Prepare(ctx context.Context, job strategy.Job) (message.ChangeSet, error) {
	if err := b.busy("prepare"); err != nil {
		return message.ChangeSet{}, err
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

// TestLockIsWaitedFor checks that a whole run succeeds though each of its actions finds the
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
			t.Errorf("the actions were called %v", b.called)
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
		// After two tries in vain each word of the next ones has the reason; other actions do not.
		failing := map[string]int{}
		for _, p := range r.hostLog.progress {
			failing[p.Failing]++
		}
		delete(failing, "")
		if n := failing["apt-get (104) holds the lock"]; len(failing) != 1 || n < 3 {
			t.Errorf("people are told why it fails: %v", failing)
		}
	})
}

// stumbling is a host whose first downloads break off at 40%.
type stumbling struct {
	strategy.Strategy
	left int
}

func (s *stumbling) Prepare(ctx context.Context, job strategy.Job) (message.ChangeSet, error) {
	job.Progress(0, "fetching lists")
	job.Progress(40, "downloading")
	if s.left--; s.left >= 0 {
		return message.ChangeSet{}, strategy.Fail(message.Transient, errors.New("cannot reach deb.example"))
	}
	job.Progress(41, "downloading")
	job.Progress(-1, "checking")
	return s.Strategy.Prepare(ctx, job)
}

// TestFailureIsOvercome checks that people are told why an action fails until a try has come further
// than those that failed: they would release a host that is at work by now.
func TestFailureIsOvercome(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		s := &stumbling{left: 3}
		r.change = func(o *Options) {
			if s.Strategy == nil {
				s.Strategy = o.Strategy
			}
			o.Strategy = s
		}
		r.bear()
		r.prepare()
		if got := r.until(message.Prepare); got != "done" {
			t.Errorf("prepare is answered with %q", got)
		}
		var got []string
		for _, p := range r.hostLog.progress {
			if p.Percent >= 0 || p.Message == "checking" {
				got = append(got, fmt.Sprintf("%d%% %s", p.Percent, p.Failing))
			}
		}
		const why = "cannot reach deb.example"
		want := []string{"0% ", "40% ", "0% ", "40% ", "0% " + why, "40% " + why, "0% " + why, "40% " + why, "41% ", "-1% "}
		if !slices.Equal(got[:min(len(got), len(want))], want) {
			t.Errorf("people are told %q, not %q", got, want)
		}
	})
}

// TestLockIsWaitedForOverRestarts checks that the limit of an action counts over all of its
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
			t.Errorf("it gave up after %s; the limit of an action is a minute", took)
		}
		if want := "apt-get (104) holds the lock; it was tried 4 times since "; !strings.HasPrefix(got, want) {
			t.Errorf("it answered %q, not %q", got, want)
		}
		if class := r.hostLog.replies[0].Result.Class; class != message.Transient {
			t.Errorf("the class of the reply is %q", class)
		}
	})
}

// failing is a host whose action fails with a class.
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
					if got := r.hostLog.replies[1].Result.Class; got != c.want {
						t.Errorf("the class is %q, not %q", got, c.want)
					}
				})
			})
		}
	}
}

// deadly is a host whose upgrade ends the worker each time.
type deadly struct{ strategy.Strategy }

func (deadly) Upgrade(context.Context, strategy.Job) (strategy.Outcome, error) {
	panic(crash("in the upgrade"))
}

func (deadly) Resume(context.Context, strategy.Job) (strategy.Outcome, error) {
	panic(crash("in the upgrade"))
}

// TestActionThatEndsItsWorker checks that an upgrade which ends its worker each time is not
// begun for ever, and that people are told.
func TestActionThatEndsItsWorker(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.change = func(o *Options) { o.Strategy = deadly{o.Strategy} }
		r.bear()
		r.prepare()
		expect(r, message.Prepare, message.Done)
		r.command(11, message.Upgrade)
		got := r.until(message.Upgrade)
		if !strings.HasPrefix(got, "the worker or its machine stopped 9 times while upgrading, since ") || !strings.HasSuffix(got, "; rolled back") {
			t.Errorf("it answered %q", got)
		}
		told := slices.ContainsFunc(r.hostLog.progress, func(p message.Progress) bool {
			return strings.Contains(p.Message, "stopped 6 times while upgrading, since ") && strings.HasSuffix(p.Message, "; next try in 5s")
		})
		if !told {
			t.Errorf("it tells %+v", r.hostLog.progress)
		}
	})
}
