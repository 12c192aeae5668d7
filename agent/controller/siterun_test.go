package controller

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// siteHooks is a rollout of all hosts at once that are drained and undrained at
// the site.
func siteHooks() *v1.Rollout {
	hook := &v1.Hook{Type: "exec", Script: "balance", On: "site", Timeout: "30s"}
	return &v1.Rollout{
		Stages: []v1.Stage{{Name: "all", MaxUnavailable: "100%"}}, OnFailure: "continue",
		Hooks: &v1.RolloutHooks{Drain: hook, Undrain: hook},
	}
}

// TestManyHooksAtTheSite checks that a hook which has to wait for its place
// among many others is not given up for that.
func TestManyHooksAtTheSite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var names []string
		for i := range 10 * message.SiteTasks {
			names = append(names, fmt.Sprintf("h%03d", i))
		}
		m := newMemory(names...)
		m.obedient, m.rollout = true, siteHooks()
		m.site = func(_ context.Context, t message.Task) message.Outcome {
			time.Sleep(20 * time.Second)
			return t.Outcome(true, "")
		}
		c, _ := m.control(t)
		m.beat(names...)
		r, err := c.Start(t.Context(), "test", start)
		if err != nil {
			t.Fatal(err)
		}
		m.pass(20*time.Minute, names...)
		if r, err = c.Find(t.Context(), r.ID); err != nil || r.Result != "completed" {
			t.Errorf("the run has come to %s (%s), %v", r.Result, r.Reason, err)
		}
	})
}

// balancer is where hosts are put out of service and back into it. To put one
// out of service takes it a while, and it does so though nobody waits for it.
type balancer struct {
	mu  sync.Mutex
	out map[string]bool
}

func (b *balancer) run(ctx context.Context, task message.Task) message.Outcome {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if task.Kind == message.Drain {
			time.Sleep(10 * time.Second)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.out[task.Host] = task.Kind == message.Drain
	}()
	select {
	case <-done:
		return task.Outcome(true, "")
	case <-ctx.Done():
		return task.Outcome(false, "interrupted")
	}
}

// TestUndrainAfterTheDrain checks that a host whose drain is under way when it
// is wanted no more is undrained after that has come to its end: the other way
// round it would stay out of service.
func TestUndrainAfterTheDrain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		b := balancer{out: map[string]bool{}}
		m.rollout, m.site = siteHooks(), b.run
		c, r := m.begun(t, "h01", "h02")
		time.Sleep(5 * time.Second)
		if got := answered(t, asking(t.Context(), c, "ann", run.Abort, why)); got.err != nil {
			t.Fatal(got.err)
		}
		m.pass(time.Minute, "h01", "h02")
		r, err := c.Find(t.Context(), r.ID)
		if err != nil || r.Result != "aborted" || r.Hosts[0].Slot != nil {
			t.Errorf("the run has come to %+v, %v", r, err)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.out["h01"] || b.out["h02"] {
			t.Errorf("out of service are %v", b.out)
		}
		if n := len(m.siteTasks()); n != 4 {
			t.Errorf("the site has run %d tasks", n)
		}
	})
}

// TestStopWhileDraining checks that a drain ends with the controller.
func TestStopWhileDraining(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01")
		ended := make(chan struct{})
		end := sync.OnceFunc(func() { close(ended) })
		m.rollout = siteHooks()
		m.site = func(ctx context.Context, task message.Task) message.Outcome {
			<-ctx.Done()
			end()
			return task.Outcome(false, "interrupted")
		}
		m.begun(t, "h01")
		m.restart(t)
		synctest.Wait()
		select {
		case <-ended:
		default:
			t.Error("the drain goes on")
		}
	})
}

// TestDrainThatAnotherHasDone checks that a drain ends whose outcome another
// controller has on the log: that one goes on to the undrain, and does not know
// of this.
func TestDrainThatAnotherHasDone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01")
		ended := make(chan struct{})
		end := sync.OnceFunc(func() { close(ended) })
		m.rollout = siteHooks()
		m.site = func(ctx context.Context, task message.Task) message.Outcome {
			if task.Kind == message.Drain {
				<-ctx.Done()
				end()
			}
			return task.Outcome(true, "")
		}
		_, r := m.begun(t, "h01")
		o := message.Outcome{Run: r.ID, Kind: message.Drain, Host: "h01", Text: "it failed"}
		newest, err := m.log.NewestCommand(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Append(t.Context(), message.Record{Kind: message.EventRecord, Run: r.ID, Body: message.EncodeEvent(message.Ran{Outcome: o})}, newest); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select {
		case <-ended:
		default:
			t.Error("the drain goes on")
		}
	})
}

// TestHookOfAControllerThatIsBehind checks that a hook does not begin before all is folded
// that is on the log: there another controller may have run it, and the host may have been
// undrained since.
func TestHookOfAControllerThatIsBehind(t *testing.T) {
	t.Parallel()
	for name, another := range map[string]bool{"which has to run it": false, "and another has run it": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := newMemory("h01")
				m.site = func(_ context.Context, task message.Task) message.Outcome { return task.Outcome(true, "") }
				d := newDispatcher(m.options(t), func(_ context.Context, f func()) { f() }, func() {})
				for range 2 {
					m.reply("h01", 1, message.Prepare)
				}
				drain := message.Task{Run: 1, Kind: message.Drain, Host: "h01", Hook: &rollout.Hook{Type: "exec", Script: "balance", On: rollout.OnSite}}
				d.folded.set(1)
				d.request(t.Context(), drain, m.clock())
				synctest.Wait()
				if begun := m.siteTasks(); len(begun) != 0 {
					t.Errorf("it runs %+v, one record behind", begun)
				}
				if another {
					d.done(drain.Outcome(true, ""))
				}
				d.folded.set(2)
				synctest.Wait()
				if begun := m.siteTasks(); (len(begun) == 0) != another {
					t.Errorf("it runs %+v", begun)
				}
			})
		})
	}
}

// TestManyTasksAtOnce checks that the log is not asked for its end by each of the hosts that
// are to be checked at once.
func TestManyTasksAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const hosts = 1000
		m := newMemory()
		o := m.options(t)
		slow := &slowLog{memory: m}
		o.Log = slow
		d := newDispatcher(o, func(_ context.Context, f func()) { f() }, func() {})
		for i := range hosts {
			d.request(t.Context(), message.Task{Run: 1, Kind: message.BeforeHost, Host: fmt.Sprintf("h%d", i)}, m.clock())
		}
		time.Sleep(time.Second)
		if n := len(m.tasks()); n != hosts {
			t.Errorf("%d of %d hosts were asked", n, hosts)
		}
		if n := slow.asked.Load(); n == 0 || n > 2 {
			t.Errorf("the log was asked %d times for its end", n)
		}
	})
}

// slowLog counts how often it is asked for its end, and takes its time to answer.
type slowLog struct {
	*memory
	asked atomic.Int32
}

func (l *slowLog) Last(ctx context.Context) (uint64, error) {
	l.asked.Add(1)
	time.Sleep(time.Millisecond)
	return l.memory.Last(ctx)
}

// TestTaskOfAControllerThatIsBehind checks that a host is not asked for a task before all is
// folded that is on the log, and that the task is for the process that held its lease before:
// a later one does not remember that it was undrained since (seed 10025142).
func TestTaskOfAControllerThatIsBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01")
		d := newDispatcher(m.options(t), func(_ context.Context, f func()) { f() }, func() {})
		drain := message.Task{Run: 1, Kind: message.Drain, Host: "h01", Hook: &rollout.Hook{Type: "exec", Script: "balance"}}
		starts := func(incarnation string) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.incarnation = incarnation
		}
		asked := func(after time.Duration) (of []string) {
			time.Sleep(after)
			synctest.Wait()
			for _, task := range m.tasks() {
				of = append(of, task.Incarnation)
			}
			return of
		}
		starts("one")
		d.request(t.Context(), drain, m.clock())
		if of := asked(0); !slices.Equal(of, []string{"one"}) {
			t.Fatalf("of a controller that has folded all, the processes asked are %q", of)
		}
		m.reply("h01", 1, message.Prepare)
		if of := asked(2 * askAgain); len(of) != 1 {
			t.Errorf("one record behind, the processes asked are %q", of)
		}
		starts("two")
		d.folded.set(1)
		if of := asked(0); !slices.Equal(of, []string{"one", "one"}) {
			t.Errorf("once it has folded all, the processes asked are %q", of)
		}
		if of := asked(askAgain); !slices.Equal(of, []string{"one", "one", "two"}) {
			t.Errorf("when it asks again, the processes asked are %q", of)
		}
		m.reply("h01", 1, message.Prepare)
		_ = asked(askAgain)
		d.done(drain.Outcome(true, ""))
		d.folded.set(2)
		if of := asked(2 * askAgain); len(of) != 3 {
			t.Errorf("once the outcome is on the log, the processes asked are %q", of)
		}
	})
}
