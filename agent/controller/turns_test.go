package controller

import (
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// watcher keeps what somebody has seen who looks at each change and at no other time.
type watcher struct {
	mu   sync.Mutex
	seen []v1.Snapshot
}

// watched starts a watcher, which sees until the test ends.
func watched(t *testing.T, c *Controller) *watcher {
	t.Helper()
	changed, stop, err := c.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	w := &watcher{}
	w.look(t, c)
	go func() {
		for {
			select {
			case <-t.Context().Done():
				return
			case <-changed:
				w.look(t, c)
			}
		}
	}()
	return w
}

func (w *watcher) look(t *testing.T, c *Controller) {
	shown, err := c.Snapshot(t.Context())
	if err != nil {
		return // The test has ended.
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if shown = timeless(shown); len(w.seen) == 0 || !reflect.DeepEqual(shown, w.seen[len(w.seen)-1]) {
		w.seen = append(w.seen, shown)
	}
}

func (w *watcher) last() v1.Snapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen[len(w.seen)-1]
}

// tells returns what each change that was seen is about, in the words of f; what is
// the same as before, or nothing, is left out.
func (w *watcher) tells(f func(v1.Snapshot) string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var words []string
	for _, s := range w.seen {
		words = append(words, f(s))
	}
	return slices.DeleteFunc(slices.Compact(words), func(word string) bool { return word == "" })
}

// timeless leaves out what changes with each second, as when things are expected to end, and
// where on the log the snapshot is.
func timeless(s v1.Snapshot) v1.Snapshot {
	s.Seq, s.Log = 0, ""
	if s.Run != nil {
		r := *s.Run
		r.ExpectedEnd, r.Forecast, r.Events = nil, "", nil
		r.Hosts = slices.Clone(r.Hosts)
		for i := range r.Hosts {
			r.Hosts[i].ExpectedEnd = nil
		}
		s.Run = &r
	}
	return s
}

// agree checks, second by second, that who looks at changes alone knows what somebody
// sees who asks now.
func (w *watcher) agree(t *testing.T, m *memory, c *Controller, span time.Duration, online ...string) {
	t.Helper()
	for range int(span / time.Second) {
		m.pass(time.Second, online...)
		state, err := c.State(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		now := v1.Snapshot{Situation: state.Situation}
		if w.last().Run != nil {
			r, err := c.Find(t.Context(), w.last().Run.ID)
			if err != nil {
				t.Fatal(err)
			}
			r.Pinned = nil // No answer of the API has what a rollback needs.
			now.Run = &r
		}
		if now = timeless(now); !reflect.DeepEqual(now, w.last()) {
			t.Fatalf("at %s asked for is\n%+v\n%+v\nand watched was\n%+v\n%+v", m.clock(), now.Situation, now.Run, w.last().Situation, w.last().Run)
		}
	}
}

// TestTimeAloneIsTold checks that who watches sees what changes by time alone, as it
// changes: a window opens and closes, a freeze begins and ends, a stage has soaked and
// the next one wants to be approved, the time for that is up.
func TestTimeAloneIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		m.config = daily([2]string{"01:00", "2h"})
		m.obedient = true
		m.rollout = &v1.Rollout{Stages: []v1.Stage{
			{Name: "canary", Match: &v1.Match{Hosts: []string{"h01"}}, Soak: "10m"},
			{Name: "rest", Approval: true, ApprovalTimeout: "20m"},
		}}
		m.calendars["closed"] = v1.Calendar{Kind: "freeze", Events: []v1.Event{{Start: "2000-01-01T03:30", Duration: "15m", Timezone: "UTC"}}}
		c, _ := m.control(t)
		m.beat("h01", "h02")
		w := watched(t, c)
		w.agree(t, m, c, 4*time.Hour, "h01", "h02")
		got := w.tells(func(s v1.Snapshot) string {
			word := s.Situation.Status
			if s.Situation.OpenWindow != nil {
				word += " open"
			}
			if s.Situation.Frozen != nil {
				word += " frozen"
			}
			if s.Run != nil && s.Run.WaitingFor != nil {
				word += " " + s.Run.WaitingFor.What
			}
			if s.Run != nil && s.Run.Finished() {
				word += " " + s.Run.Result
			}
			return word
		})
		want := []string{
			"idle", "waiting open soak", "waiting open approval", "idle open partial", "idle partial", "idle frozen partial", "idle partial",
		}
		// What lasts for less than a second is seen or not.
		between := []string{"idle open", "preparing open", "preparing open host", "upgrading open", "upgrading open host"}
		got = slices.DeleteFunc(got, func(word string) bool { return slices.Contains(between, word) })
		if !slices.Equal(got, want) {
			t.Errorf("watched was\n%q, not\n%q", got, want)
		}
	})
}

// TestTimeAloneIsToldByAPassiveController checks that a controller that decides nothing
// tells it as well.
func TestTimeAloneIsToldByAPassiveController(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		m.rollout = &v1.Rollout{Stages: []v1.Stage{{Name: "canary", Match: &v1.Match{Hosts: []string{"h01"}}, Soak: "10m"}, {Name: "rest", Approval: true}}}
		c, r := m.begun(t, "h01", "h02")
		m.reply("h01", r.ID, message.Upgrade)
		c.SetActive(false)
		synctest.Wait()
		m.beat("h01", "h02")
		w := watched(t, c)
		if waits := w.last().Run.WaitingFor; waits == nil || waits.What != run.ForSoak {
			t.Fatalf("the run waits for %+v", waits)
		}
		m.pass(10*time.Minute+time.Second, "h01", "h02")
		if waits := w.last().Run.WaitingFor; waits == nil || waits.What != run.ForApproval {
			t.Errorf("after the soak the run waits for %+v", waits)
		}
	})
}

// TestOpenWindow checks that a window that is open is told with its end and with the
// run that it has or had.
func TestOpenWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01")
		m.config = daily([2]string{"00:00", "2h"})
		c, _ := m.control(t)
		opened := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
		expect := func(when string, run uint64) {
			t.Helper()
			s, err := c.State(t.Context())
			if w := s.OpenWindow; err != nil || w == nil || !w.Start.Equal(opened) || !w.End.Equal(opened.Add(2*time.Hour)) || w.Run != run {
				t.Errorf("%s the open window is %+v, %v", when, w, err)
			}
		}
		expect("before its run", 0)
		m.pass(time.Minute, "h01")
		expect("in its run", 2)
		m.finish(t, c)
		expect("after its run", 2)
		m.pass(2*time.Hour, "h01")
		if s, err := c.State(t.Context()); err != nil || s.OpenWindow != nil {
			t.Errorf("after its end the open window is %+v, %v", s.OpenWindow, err)
		}
	})
}

// TestNothingIsExpectedInThePast checks that the end that is expected of a host that
// takes longer than those before it is never earlier than when it is shown.
func TestNothingIsExpectedInThePast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		c, r := m.begun(t, "h01", "h02")
		m.pass(time.Minute, "h01", "h02")
		m.reply("h01", r.ID, message.Upgrade)
		for range 300 {
			m.pass(time.Second, "h01", "h02")
			shown, err := c.Snapshot(t.Context())
			if err != nil || shown.Run.ExpectedEnd == nil || shown.Run.ExpectedEnd.Before(m.clock().Truncate(time.Second)) {
				t.Fatalf("at %s the end is expected at %v, %v", m.clock(), shown.Run.ExpectedEnd, err)
			}
		}
	})
}
