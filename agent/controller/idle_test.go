package controller

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// notes counts what is logged, by its text.
type notes struct {
	slog.Handler
	mu    sync.Mutex
	count map[string]int
}

func (n *notes) Enabled(context.Context, slog.Level) bool { return true }

func (n *notes) Handle(_ context.Context, r slog.Record) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.count[r.Message]++
	return nil
}

func (n *notes) WithAttrs([]slog.Attr) slog.Handler { return n }

func (n *notes) of(text string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.count[text]
}

// TestWindowWithoutARun checks that a window which is open and gets no run says
// why, once, and gets its run as soon as that is over.
func TestWindowWithoutARun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rollout *v1.Rollout
		known   []string
		heard   []string
		says    string
		mend    func(*memory)
	}{
		"the rollout leaves out all": {
			&v1.Rollout{Exempt: &v1.Match{Hosts: []string{"h01", "h02"}}}, nil,
			[]string{"h01", "h02"},
			"nobody: the rollout leaves out every one of 2 hosts", func(m *memory) { m.declare(let) },
		},
		"the reserve is longer than the window": {
			&v1.Rollout{Reserve: "1d"}, nil,
			[]string{"h01", "h02"},
			"the next window: this one has no time left before the reserve of 1d", func(m *memory) { m.declare(let) },
		},
		"all are silent": {
			nil,
			[]string{"h01", "h02"},
			nil,
			"a host to come back: 2 hosts, all silent", func(m *memory) { m.beat("h01", "h02") },
		},
		"nobody is known": {
			nil, nil, nil,
			"a worker to be started: no host of a listed worker application is known",
			func(m *memory) { m.beat("h01"); m.pass(quiet, "h01") },
		},
		"the rollout cannot be used": {
			&v1.Rollout{Reserve: "often"}, nil, []string{"h01", "h02"}, "somebody to repair the rollout: ", func(m *memory) { m.declare(let) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := newMemory(c.known...)
				m.config, m.rollout = &always, c.rollout
				logged := &notes{count: map[string]int{}}
				m.logger = slog.New(logged)
				controller, _ := m.control(t)
				m.beat(c.heard...)
				m.pass(time.Hour, c.heard...)
				state, err := controller.State(t.Context())
				if w := state.WaitingFor; err != nil || w == nil || !strings.HasPrefix(w.Detail, c.says) {
					t.Fatalf("the state says %+v, %v", w, err)
				}
				if n := logged.of("a window is open and no run is opened"); n != 1 || m.size() != 0 {
					t.Errorf("that is logged %d times; the log has %d records", n, m.size())
				}
				c.mend(m)
				state, err = controller.State(t.Context())
				if len(m.events(`"opened"`)) != 1 || err != nil || state.WaitingFor != nil {
					t.Errorf("no run is opened; the state says %+v, %v", state.WaitingFor, err)
				}
			})
		})
	}
}

// TestJustStarted checks that hosts which are about to be heard of are not said
// to be silent, and that a window waits longer for them, tells so, and then opens its
// run without them.
func TestJustStarted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		m.config = &always
		c, _ := m.control(t)
		time.Sleep(gracePeriod - time.Millisecond)
		if state, err := c.State(t.Context()); err != nil || state.WaitingFor != nil {
			t.Errorf("the state says %+v, %v", state.WaitingFor, err)
		}
		m.pass(windowGracePeriod-gracePeriod, "h01")
		if state, err := c.State(t.Context()); err != nil || state.WaitingFor == nil || !strings.Contains(state.WaitingFor.Detail, "1 host to come back") {
			t.Errorf("the state says %+v, %v", state.WaitingFor, err)
		}
		if opened := m.events(`"opened"`); len(opened) > 0 {
			t.Errorf("a run is opened before h02 had the time to come back: %q", opened)
		}
		m.pass(time.Second, "h01")
		if opened := m.events(`"opened"`); len(opened) != 1 || !strings.Contains(opened[0], `{"host":"h02","silent":true}`) {
			t.Errorf("the log has %q", opened)
		}
	})
}

// TestReserveOfAStart checks that a run which is started by hand and ends with
// its window leaves the reserve, too.
func TestReserveOfAStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01")
		m.config, m.rollout = &always, &v1.Rollout{Reserve: "1h"}
		c, _ := m.control(t)
		m.beat("h01")
		r, err := c.Start(t.Context(), "test", v1.Start{Reason: "a test"})
		if want := time.Now().Truncate(24 * time.Hour).Add(23 * time.Hour); err != nil || !r.NotAfter.Equal(want) {
			t.Fatalf("the run ends by %s, %v; want %s", r.NotAfter, err, want)
		}
		m.finish(t, c)
		m.pass(23*time.Hour, "h01")
		var refused *run.Refused
		if _, err := c.Start(t.Context(), "test", v1.Start{Reason: "a test"}); !errors.As(err, &refused) || !strings.Contains(err.Error(), "the rollout's reserve of 1h0m0s has begun") {
			t.Errorf("a start within the reserve is answered with %v", err)
		}
		if _, err := c.Start(t.Context(), "test", v1.Start{OverrideWindow: true, Duration: "10m", Reason: "a test"}); err != nil {
			t.Errorf("a start with a duration is answered with %v", err)
		}
	})
}
