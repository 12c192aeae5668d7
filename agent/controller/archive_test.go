package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// upgraded starts a run on a controller and answers until it has ended: h01
// with done, h02 as given.
func (m *memory) upgraded(t *testing.T, c *Controller, h02 string) v1.Run {
	t.Helper()
	return m.upgradedAs(t, c, nil, h02)
}

// upgradedAs is upgraded with what an upgrade would change on h01, as it says while it runs.
func (m *memory) upgradedAs(t *testing.T, c *Controller, changes *int, h02 string) v1.Run {
	t.Helper()
	m.Alive("h01", message.Alive{Application: "app", Changes: changes})
	m.beat("h02")
	r, err := c.Start(t.Context(), "test", start)
	if err != nil {
		t.Fatal(err)
	}
	m.reply("h01", r.ID, message.Prepare)
	m.reply("h02", r.ID, message.Prepare)
	m.reply("h01", r.ID, message.Upgrade)
	m.mu.Lock()
	m.add(message.Record{
		Kind: message.ReplyRecord, Host: "h02", Run: r.ID, Action: message.Upgrade,
		Body: message.Reply{Action: message.Upgrade, Result: message.ResultOf(h02)}.Encode(),
	})
	m.mu.Unlock()
	synctest.Wait()
	ended, err := c.Find(t.Context(), r.ID)
	if err != nil || !ended.Finished() {
		t.Fatalf("the run has not ended: %+v, %v", ended, err)
	}
	return ended
}

// runsKept returns the history, oldest first, and how many writes to it were tried.
func (m *memory) runsKept() (kept []v1.Run, puts int) {
	ctx := context.Background()
	var ids []uint64
	must(m.Runs(ctx, "acme", func(r v1.Run) bool {
		ids = append(ids, r.ID)
		return true
	}))
	for _, id := range slices.Backward(ids) {
		r, err := m.Run(ctx, "acme", id)
		must(err)
		kept = append(kept, r)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return kept, m.runPuts
}

// TestHistory checks that each run is kept once with its hosts and its story,
// and that after a restart only what is missing is.
func TestHistory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		c, _ := m.control(t)
		first := m.upgraded(t, c, "done")
		second := m.upgraded(t, c, "done")
		kept, puts := m.runsKept()
		if puts != 2 || len(kept) != 2 || kept[0].ID != first.ID || kept[1].ID != second.ID {
			t.Fatalf("after %d writes the history is %+v", puts, kept)
		}
		var story []string
		for _, e := range kept[1].Events {
			story = append(story, e.Event+" "+e.Host)
		}
		want := []string{
			"opened ", "prepare ", "answered prepare h01", "answered prepare h02", "upgrade h01", "answered upgrade h01",
			"upgrade h02", "answered upgrade h02", "finished ",
		}
		if !slices.Equal(story, want) || len(kept[1].Hosts) != 2 {
			t.Errorf("the history tells %q", story)
		}
		m.LoseRun("acme", second.ID)
		c = m.restart(t)
		if again, puts := m.runsKept(); puts != 3 || len(again) != 2 || again[1].ID != second.ID {
			t.Errorf("after %d writes the history is %+v", puts, again)
		}
		for _, id := range []uint64{first.ID, second.ID} {
			if r, err := c.Find(t.Context(), id); err != nil || r.ID != id || len(r.Hosts) != 2 || len(r.Events) != len(want) {
				t.Errorf("run %d is found as %+v, %v", id, r, err)
			}
		}
		if _, err := c.Find(t.Context(), 99); !errors.Is(err, run.ErrNoRun) {
			t.Errorf("run 99 is answered with %v", err)
		}
	})
}

// TestHistoryThatCannotBeKept checks that a write which failed is tried again,
// that the runs are found in the meantime, and that none is lost when the
// controller stops.
func TestHistoryThatCannotBeKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		c, stop := m.control(t)
		m.mu.Lock()
		m.refuseRuns = 4
		m.mu.Unlock()
		first, second := m.upgraded(t, c, "done"), m.upgraded(t, c, "done")
		if _, puts := m.runsKept(); puts != 1 {
			t.Errorf("%d writes were tried at once", puts)
		}
		runs, err := c.Runs(t.Context(), v1.RunFilter{})
		if err != nil || len(runs) != 2 || runs[0].ID != second.ID || runs[1].ID != first.ID {
			t.Errorf("the runs are %+v, %v", runs, err)
		}
		if r, err := c.Find(t.Context(), first.ID); err != nil || len(r.Hosts) != 2 {
			t.Errorf("the first run is found as %+v, %v", r, err)
		}
		time.Sleep(15 * firstPause)
		synctest.Wait()
		if kept, puts := m.runsKept(); puts != 6 || len(kept) != 2 || kept[0].ID != first.ID || kept[1].ID != second.ID {
			t.Errorf("after %d writes the history is %+v", puts, kept)
		}
		m.mu.Lock()
		m.refuseRuns = 1
		m.mu.Unlock()
		third := m.upgraded(t, c, "done")
		stop()
		if kept, _ := m.runsKept(); len(kept) != 3 || kept[2].ID != third.ID {
			t.Errorf("the history is %+v", kept)
		}
	})
}

// TestRunsThatAFilterChooses checks the filter on the newest run, which is in
// memory, and on those of the history alike.
func TestRunsThatAFilterChooses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		c, _ := m.control(t)
		well := m.upgraded(t, c, "done")
		m.pass(time.Hour, "h01", "h02")
		failed := m.upgraded(t, c, "no space")
		m.pass(time.Hour, "h01", "h02")
		if err := deleted(t, c, "h02"); err == nil {
			t.Fatal("a host that is online is deleted")
		}
		m.pass(message.Silence, "h01")
		if err := deleted(t, c, "h02"); err != nil {
			t.Fatal(err)
		}
		m.beat("h01")
		alone, err := c.Start(t.Context(), "test", start)
		if err != nil {
			t.Fatal(err)
		}
		for name, f := range map[string]struct {
			filter v1.RunFilter
			want   []uint64
		}{
			"all":                         {v1.RunFilter{}, []uint64{alone.ID, failed.ID, well.ID}},
			"two at most":                 {v1.RunFilter{Limit: 2}, []uint64{alone.ID, failed.ID}},
			"those that failed":           {v1.RunFilter{Result: "failed"}, []uint64{failed.ID}},
			"those of h02":                {v1.RunFilter{Selector: v1.Selector{Hosts: []string{"h02"}}}, []uint64{failed.ID, well.ID}},
			"those of h01":                {v1.RunFilter{Selector: v1.Selector{Hosts: []string{"h01"}}}, []uint64{alone.ID, failed.ID, well.ID}},
			"those of nobody":             {v1.RunFilter{Selector: v1.Selector{Hosts: []string{"h77"}}}, []uint64{}},
			"those of h02 that completed": {v1.RunFilter{Selector: v1.Selector{Hosts: []string{"h02"}}, Result: "completed"}, []uint64{well.ID}},
			"those since the second":      {v1.RunFilter{Since: failed.OpenedAt}, []uint64{alone.ID, failed.ID}},
			"those before the second":     {v1.RunFilter{Until: failed.OpenedAt}, []uint64{well.ID}},
		} {
			runs, err := c.Runs(t.Context(), f.filter)
			ids := []uint64{}
			for _, r := range runs {
				ids = append(ids, r.ID)
				if r.Finished() && len(r.Hosts)+len(r.Events) != 0 {
					t.Errorf("%s: run %d comes with its hosts", name, r.ID)
				}
			}
			if err != nil || !slices.Equal(ids, f.want) {
				t.Errorf("%s: the runs are %v, %v; want %v", name, ids, err, f.want)
			}
		}
	})
}

// unreadable is a store whose history cannot be read once it is told so.
type unreadable struct {
	Store
	now atomic.Bool
}

func (u *unreadable) Runs(ctx context.Context, tenant string, deliver func(v1.Run) bool) error {
	if u.now.Load() {
		return errors.New("the history is gone")
	}
	return u.Store.Runs(ctx, tenant, deliver)
}

// TestNewestRunAlone checks that whoever wants only the newest run costs no look at the history.
func TestNewestRunAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		o := m.options(t)
		history := &unreadable{Store: o.Store}
		o.Store = history
		c, _ := m.run(t, o)
		newest := m.upgraded(t, c, "done")
		history.now.Store(true)
		if runs, err := c.Runs(t.Context(), v1.RunFilter{Limit: 1}); err != nil || len(runs) != 1 || runs[0].ID != newest.ID {
			t.Errorf("the newest run is %+v, %v", runs, err)
		}
		if runs, err := c.Runs(t.Context(), v1.RunFilter{Limit: 2}); err == nil {
			t.Errorf("without a history two runs are %+v", runs)
		}
	})
}

// TestRetry checks that a run may be started of those hosts alone that another
// one did not upgrade, and that anything else is refused in words.
func TestRetry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		c, _ := m.control(t)
		well, failed := m.upgraded(t, c, "done"), m.upgraded(t, c, "no space")
		retry := func(id uint64) (v1.Run, error) {
			return c.Start(t.Context(), "test", v1.Start{OverrideWindow: true, Reason: "again", RetryOf: id})
		}
		var refused *run.Refused
		if _, err := retry(well.ID); !errors.As(err, &refused) || err.Error() != fmt.Sprintf("run %d left no host to retry", well.ID) {
			t.Errorf("a retry of a run that completed is answered with %v", err)
		}
		if _, err := retry(99); !errors.Is(err, run.ErrNoRun) {
			t.Errorf("a retry of no run is answered with %v", err)
		}
		r, err := retry(failed.ID)
		if err != nil || r.RetryOf != failed.ID || len(r.Hosts) != 1 || r.Hosts[0].Hostname != "h02" {
			t.Fatalf("the retry is %+v, %v", r, err)
		}
		if _, err := retry(r.ID); !errors.As(err, &refused) || refused.Run != r.ID || err.Error() != fmt.Sprintf("run %d is in progress; it can be retried once it has ended; to end it: osupgrade-agent abort --reason …", r.ID) {
			t.Errorf("a retry of the run in progress is answered with %v", err)
		}
		m.reply("h02", r.ID, message.Prepare)
		m.reply("h02", r.ID, message.Upgrade)
		m.pass(message.Silence, "h01")
		if err := deleted(t, c, "h02"); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("none of 1 host that run %d left is known any more under a listed worker application", failed.ID)
		if _, err := retry(failed.ID); !errors.As(err, &refused) || err.Error() != want {
			t.Errorf("a retry of hosts that are gone is answered with %v", err)
		}
	})
}
