package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	memlog "github.com/osupgrade/terraform-provider-osupgrade/agent/testing/memory"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// newsShelf is a store of news that may refuse them.
type newsShelf struct {
	*memlog.Store
	mu sync.Mutex
	// broken refuses each write after so many.
	broken bool
	room   int
}

func newShelf() *newsShelf { return &newsShelf{Store: memlog.NewStore()} }

// PutNews is that of the store, and may fail.
func (s *newsShelf) PutNews(ctx context.Context, tenant string, n v1.News, asOf uint64) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.room--; s.broken && s.room < 0 {
		return 0, errors.New("no space left on device")
	}
	return s.Store.PutNews(ctx, tenant, n, asOf)
}

// repair has all writes succeed, breakAfter only so many.
func (s *newsShelf) repair() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = false
}

func (s *newsShelf) breakAfter(room int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken, s.room = true, room
}

// kept returns the news that are kept.
func (s *newsShelf) kept() []store.KeptNews {
	kept, err := s.News(context.Background(), "acme")
	must(err)
	return kept
}

// told returns the types and texts that are kept.
func (s *newsShelf) told() (all []string) {
	for _, k := range s.kept() {
		all = append(all, k.Type+": "+k.Data.Text)
	}
	return all
}

func (s *newsShelf) ids() (all []string) {
	for _, k := range s.kept() {
		all = append(all, k.ID)
	}
	return all
}

// newsworthy plays a run of which there is much to tell. between is called between its
// actions, and returns the controller that is there from then on.
func newsworthy(t *testing.T, shelf *newsShelf, between func(*memory, *Controller) *Controller) {
	t.Helper()
	m := newMemory("h01", "h02", "h03")
	m.rollout = &v1.Rollout{Stages: []v1.Stage{{Name: "canary", Match: &v1.Match{Hosts: []string{"h01"}}, Soak: "10m"}, {Name: "rest", Approval: true}}, MaxFailures: "3"}
	m.news = shelf
	c, _ := m.control(t)
	beat := func() {
		for range 4 {
			m.beat("h01", "h02", "h03")
			time.Sleep(time.Minute)
		}
		c = between(m, c)
		m.beat("h01", "h02", "h03")
		time.Sleep(gracePeriod)
	}
	m.beat("h01", "h02", "h03")
	r, err := c.Start(t.Context(), "test", start)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"h01", "h02", "h03"} {
		m.reply(host, r.ID, message.Prepare)
	}
	beat()
	m.reply("h01", r.ID, message.Upgrade)
	beat()
	beat()
	beat()
	if _, err := c.Ask(t.Context(), "test", run.Approve, v1.Ask{Reason: "looks good", Stage: "rest"}); err != nil {
		t.Fatal(err)
	}
	beat()
	m.mu.Lock()
	m.add(message.Record{
		Kind: message.ReplyRecord, Host: "h02", Run: r.ID, Action: message.Upgrade, Outcome: message.Unknown,
		Body: message.Reply{Action: message.Upgrade, Result: message.ResultOf("no space left on /boot")}.Encode(),
	})
	m.mu.Unlock()
	beat()
	if _, err := c.Ask(t.Context(), "test", run.Release, v1.Ask{Reason: "seen to", Host: "h02"}); err != nil {
		t.Fatal(err)
	}
	beat()
	m.reply("h03", r.ID, message.Upgrade)
	beat()
}

// TestNews checks what is told of a run.
func TestNews(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf := newShelf()
		newsworthy(t, shelf, func(_ *memory, c *Controller) *Controller { return c })
		got := strings.Join(shelf.told(), "\n")
		want := `run.opened: Run 2 of tenant acme was opened with 3 hosts by test: a test; it ends by 2000-01-01T04:15:00Z.
stage.done: Stage canary of run 2 of tenant acme is done: 1 of 1 host upgraded.
run.waiting: Run 2 of tenant acme waits for a person: stage rest to be approved until 2000-01-01T04:00:00Z.
host.failed: Host h02 failed in run 2 of tenant acme: no space left on /boot
run.blocked: Run 2 of tenant acme is blocked: it waits for h02 (nobody knows what it did) to recover, be released or be deleted.
stage.done: Stage rest of run 2 of tenant acme is done: 1 of 2 hosts upgraded, 1 failed.
run.finished: Run 2 of tenant acme ended partial after 29m45s: 2 of 3 hosts upgraded; failed: h02.`
		if got != want {
			t.Errorf("told was:\n%s", got)
		}
	})
}

// TestNewsAreToldOnce checks that a controller that is killed at any moment, also between
// a record and its news, loses none of them and tells none twice or in another order.
func TestNewsAreToldOnce(t *testing.T) {
	t.Parallel()
	var want []string
	synctest.Test(t, func(t *testing.T) {
		shelf := newShelf()
		newsworthy(t, shelf, func(_ *memory, c *Controller) *Controller {
			time.Sleep(longestPause)
			return c
		})
		want = append(shelf.told(), shelf.ids()...)
	})
	for room := range 3 {
		t.Run(fmt.Sprint("killed after ", room), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				shelf := newShelf()
				newsworthy(t, shelf, func(m *memory, _ *Controller) *Controller {
					next := m.restart(t) // What is not kept by now is lost with the process.
					shelf.repair()
					time.Sleep(longestPause)
					shelf.breakAfter(room)
					return next
				})
				if got := append(shelf.told(), shelf.ids()...); !slices.Equal(got, want) {
					t.Errorf("told was:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			})
		})
	}
}

// TestNewsThatAreNotKeptAnyMore checks that a controller which starts with a long log does
// not tell again what was told and has been dropped since.
func TestNewsThatAreNotKeptAnyMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		shelf := newShelf()
		m.news = shelf
		c, _ := m.control(t)
		m.upgraded(t, c, "done")
		m.upgraded(t, c, "done")
		all := shelf.told()
		kept := shelf.kept()
		last := kept[len(kept)-1]
		*shelf = newsShelf{Store: memlog.NewStore()} // The others were dropped.
		if _, err := shelf.PutNews(t.Context(), "acme", last.News, last.AsOf); err != nil {
			t.Fatal(err)
		}
		m.restart(t)
		if got := shelf.told(); len(all) != 6 || !slices.Equal(got, all[5:]) {
			t.Errorf("after a restart %q are told again", got)
		}
	})
}

// TestTrimWaitsForNews checks that no record is removed from the log before what it tells
// is kept.
func TestTrimWaitsForNews(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		shelf := newShelf()
		shelf.breakAfter(0)
		m.news = shelf
		c, _ := m.control(t)
		m.upgraded(t, c, "done")
		m.fill(trimAfter)
		m.upgraded(t, c, "done")
		time.Sleep(keepAfter + longestSleep)
		synctest.Wait()
		if first, trims := m.trimmed(); first != 1 || trims != 0 {
			t.Fatalf("after %d trims the log begins at %d, and nothing is told", trims, first)
		}
		shelf.repair()
		time.Sleep(keepAfter + 2*longestSleep)
		synctest.Wait()
		if first, _ := m.trimmed(); first == 1 || len(shelf.told()) != 6 {
			t.Errorf("the log begins at %d, and %q are told", first, shelf.told())
		}
	})
}

// TestNewsByNumber checks what somebody is told who has seen some of the news.
func TestNewsByNumber(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		m.news = newShelf()
		c, _ := m.control(t)
		if all, oldest, newest, err := c.News(t.Context(), 0); len(all) != 0 || oldest != 0 || newest != 0 || err != nil {
			t.Errorf("at first there are %v, %d to %d, %v", all, oldest, newest, err)
		}
		m.upgraded(t, c, "done")
		for after, want := range []int{3, 2, 1, 0, 0} {
			all, oldest, newest, err := c.News(t.Context(), uint64(after))
			if len(all) != want || oldest != 1 || newest != 3 || err != nil || want > 0 && all[0].Number != uint64(after)+1 {
				t.Errorf("after %d there are %v, %d to %d, %v", after, all, oldest, newest, err)
			}
		}
	})
}

// TestNewsByAClockThatIsBehind checks that a controller whose clock is hours behind that of
// the log does not tell that a run is blocked which is over: nobody can do anything about it.
func TestNewsByAClockThatIsBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		m.rollout = &v1.Rollout{Stages: []v1.Stage{{Name: "all", MaxUnavailable: "1"}}, MaxFailures: "2", Overrun: "stop", Timeouts: &v1.CommandTimeouts{Upgrade: "6h"}}
		shelf := newShelf()
		m.news = shelf
		o := m.options(t)
		o.Now = func() time.Time { return m.clock().Add(-5 * time.Hour) }
		first, stop := m.control(t)
		m.beat("h01", "h02")
		r, err := first.Start(t.Context(), "test", start)
		if err != nil {
			t.Fatal(err)
		}
		m.reply("h01", r.ID, message.Prepare)
		m.reply("h02", r.ID, message.Prepare)
		stop()
		m.run(t, o)
		m.pass(time.Until(r.NotAfter)+30*time.Minute, "h01", "h02")
		if got := strings.Join(shelf.told(), "\n"); strings.Contains(got, "run.blocked") || !strings.Contains(got, "host.failed") || !strings.Contains(got, "run.finished") {
			t.Errorf("told was:\n%s", got)
		}
	})
}

// TestNewsOfOverdueHosts checks that a host is told of once for each status that lasts unusually
// long, and once when it falls silent at work, also by a controller that is started again.
func TestNewsOfOverdueHosts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02", "h03")
		m.rollout = &v1.Rollout{Stages: []v1.Stage{{Name: "all", MaxUnavailable: "1"}}}
		shelf := newShelf()
		m.news = shelf
		c, _ := m.control(t)
		m.beat("h01", "h02", "h03")
		r, err := c.Start(t.Context(), "test", start)
		if err != nil {
			t.Fatal(err)
		}
		m.pass(time.Minute, "h01", "h02", "h03")
		m.reply("h01", r.ID, message.Prepare)
		m.reply("h02", r.ID, message.Prepare)
		m.pass(4*time.Minute+time.Second, "h01", "h02", "h03") // h03 takes long.
		m.reply("h03", r.ID, message.Prepare)
		m.pass(10*time.Minute, "h01", "h02", "h03")
		m.restart(t)
		m.pass(10*time.Minute, "h02", "h03") // h01 falls silent.
		got := strings.Join(shelf.told()[1:], "\n")
		want := `run.overdue: Run 2 of tenant acme has been waiting for h03 to answer prepare since 2000-01-01T00:00:00Z: this takes unusually long; other hosts took 1m.
run.overdue: Run 2 of tenant acme has been waiting for h01 to answer upgrade since 2000-01-01T00:05:01Z: it has been silent since 2000-01-01T00:15:01Z.`
		if got != want {
			t.Errorf("told was:\n%s", got)
		}
		if f, err := c.Figures(t.Context()); err == nil && f.Run.Overdue != 1 {
			t.Errorf("figures have %d overdue hosts", f.Run.Overdue)
		}
	})
}
