package controller

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// fill lets the log grow by replies that belong to no run.
func (m *memory) fill(n int) {
	m.mu.Lock()
	for range n {
		m.add(message.Record{Kind: message.ReplyRecord, Host: "h01", Run: 1, Action: message.Prepare, Body: []byte(`{}`)})
	}
	m.mu.Unlock()
	synctest.Wait()
}

// trimmed returns the oldest record that is there, and how many trims were
// tried.
func (m *memory) trimmed() (first, trims uint64) {
	first, _ = m.log.First(context.Background())
	m.mu.Lock()
	defer m.mu.Unlock()
	return first, m.trims
}

// TestTrim checks that what is before the newest run is removed once the log is
// long and all runs are in the history, not while a run is under way, again
// after a trim that failed, and that the next controller goes on.
func TestTrim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		c, _ := m.control(t)
		m.upgraded(t, c, "done")
		m.fill(trimAfter)
		m.mu.Lock()
		m.refuseRuns, m.refuseTrims = 4, 1
		m.mu.Unlock()
		m.beat("h01", "h02")
		opened := uint64(m.size()) + 1
		m.upgraded(t, c, "done")
		time.Sleep(firstPause)
		if _, trims := m.trimmed(); trims != 0 {
			t.Fatal("the log is trimmed of a run that is not in the history")
		}
		time.Sleep(keepAfter + longestSleep)
		synctest.Wait()
		if first, trims := m.trimmed(); first != 1 || trims != 1 {
			t.Fatalf("after %d trims the log begins at %d", trims, first)
		}
		time.Sleep(trimPause / 2)
		m.beat("h01", "h02")
		r, err := c.Start(t.Context(), "test", start)
		if err != nil {
			t.Fatal(err)
		}
		m.pass(2*trimPause, "h01", "h02")
		if _, trims := m.trimmed(); trims != 1 {
			t.Fatal("the log is trimmed while a run is in progress")
		}
		for _, action := range []message.Action{message.Prepare, message.Upgrade} {
			m.reply("h01", r.ID, action)
			m.reply("h02", r.ID, action)
		}
		m.pass(longestSleep, "h01", "h02")
		first, trims := m.trimmed()
		if trims != 2 || first <= opened || first >= r.ID {
			t.Fatalf("after %d trims the log begins at %d", trims, first)
		}
		m.pass(10*trimPause, "h01", "h02")
		if _, trims := m.trimmed(); trims != 2 {
			t.Errorf("a short log is trimmed, %d times", trims)
		}
		c = m.restart(t)
		m.upgraded(t, c, "done")
		if runs, _ := m.runsKept(); len(runs) != 4 {
			t.Errorf("the history has %d runs", len(runs))
		}
	})
}

// TestLastRunsOutliveTheLog checks that hosts show their last run, and since when they have missed
// their upgrades, also when the records of that run were trimmed: after a kill before the trim and
// after it. As long as this cannot be kept the log is not trimmed.
func TestLastRunsOutliveTheLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		c, _ := m.control(t)
		failed := m.upgraded(t, c, "no space")
		m.fill(trimAfter)
		m.mu.Lock()
		m.refuseLastRuns, m.refuseTrims = math.MaxInt, 2
		m.mu.Unlock()
		shows := func(when string, begins bool) {
			t.Helper()
			h01, err := c.Host(t.Context(), "h01")
			if err != nil || h01.LastRun == nil || h01.LastRun.ID <= failed.ID || h01.LastRun.Status != "upgraded" || h01.MissedSince != nil {
				t.Errorf("%s h01 is %+v, %v", when, h01, err)
			}
			h02, err := c.Host(t.Context(), "h02")
			if err != nil || h02.LastRun == nil || h02.LastRun.ID != failed.ID || h02.LastRun.Status != "failed" || h02.MissedSince == nil || !h02.MissedSince.Equal(*failed.EndedAt) {
				t.Errorf("%s h02 is %+v, %v", when, h02, err)
			}
			if first, _ := m.trimmed(); (first == 1) != begins {
				t.Errorf("%s the log begins at %d", when, first)
			}
		}
		m.beat("h01", "h02")
		r, err := c.Start(t.Context(), "test", v1.Start{OverrideWindow: true, Hosts: []string{"h01"}})
		if err != nil {
			t.Fatal(err)
		}
		m.reply("h01", r.ID, message.Prepare)
		m.reply("h01", r.ID, message.Upgrade)
		m.pass(longestSleep, "h01", "h02")
		shows("while its last run cannot be kept", true)
		if _, trims := m.trimmed(); trims != 0 {
			t.Fatalf("there were %d trims", trims)
		}
		m.mu.Lock()
		m.refuseLastRuns = 0
		m.mu.Unlock()
		m.pass(longestSleep+longestPause, "h01", "h02")
		shows("when the trim has failed", true)
		if _, trims := m.trimmed(); trims != 1 {
			t.Fatalf("there were %d trims", trims)
		}
		c = m.restart(t)
		shows("after a kill before the trim", true)
		m.pass(2*longestSleep, "h01", "h02")
		shows("after the trim", false)
		c = m.restart(t)
		shows("after a kill", false)
	})
}

// TestLastRunsNeedNoLog checks that how hosts came out of a run is kept with it, before the log is
// trimmed or the controller stops: a log that is damaged may lose the run. It is kept also for a
// host whose description could not be written until the run had ended.
func TestLastRunsNeedNoLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		c, _ := m.control(t)
		m.beat("h01", "h02")
		m.pass(2*hostPause, "h01", "h02")
		m.mu.Lock()
		m.refuse = math.MaxInt
		m.mu.Unlock()
		r := m.upgradedAs(t, c, new(1), "no space") // h01 tells anew what an upgrade would change.
		shows := func(when string) {
			t.Helper()
			if h, _ := m.kept("h01"); h.LastRun.ID != r.ID || h.LastRun.Status != "upgraded" {
				t.Errorf("%s h01 is kept as %+v", when, h)
			}
			if h, _ := m.kept("h02"); h.LastRun.ID != r.ID || h.LastRun.Status != "failed" || !h.MissedSince.Equal(*r.EndedAt) {
				t.Errorf("%s h02 is kept as %+v", when, h)
			}
		}
		shows("while no host can be written")
		m.mu.Lock()
		m.refuse = 0
		m.mu.Unlock()
		time.Sleep(2 * hostPause)
		synctest.Wait()
		if h, _ := m.kept("h01"); h.OutdatedSince.IsZero() {
			t.Errorf("h01 is kept as %+v", h)
		}
		shows("after all hosts were written")
	})
}

// TestTrimDespiteUnwrittenHost checks that a host which cannot be written does not hold up the trim.
func TestTrimDespiteUnwrittenHost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		c, _ := m.control(t)
		m.fill(2 * trimAfter)
		m.mu.Lock()
		m.refuse = math.MaxInt
		m.mu.Unlock()
		m.upgradedAs(t, c, new(1), "done") // h01 tells anew what an upgrade would change.
		m.pass(2*longestSleep, "h01", "h02")
		if first, _ := m.trimmed(); first == 1 {
			t.Error("the log is not trimmed")
		}
	})
}

// TestTrimmedLog is a property: whatever has happened, a log from which all
// before the newest run was removed comes to the same next decision.
func TestTrimmedLog(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		chance := rand.New(rand.NewPCG(seed, 1))
		log, now := invent(chance)
		var whole, trimmed run.Ledger
		for _, r := range log {
			_ = whole.Fold(r.Decode())
		}
		newest := whole.Newest()
		if newest == nil {
			t.Fatalf("seed %d opens no run", seed)
		}
		for _, r := range log[newest.OpenedSeq-1:] {
			_ = trimmed.Fold(r.Decode())
		}
		if whole.LastSeq != trimmed.LastSeq || whole.LastCommand != trimmed.LastCommand || !reflect.DeepEqual(newest, trimmed.Newest()) {
			t.Fatalf("seed %d: the ledger is %+v, not %+v", seed, trimmed, whole)
		}
		for range 3 {
			if a, b := newest.Next(now, run.Seen{}), trimmed.Newest().Next(now, run.Seen{}); !reflect.DeepEqual(a, b) {
				t.Fatalf("seed %d: the next decision is %+v, not %+v", seed, b, a)
			}
			now = now.Add(time.Hour)
		}
	}
}

// invent makes a log of some runs, in which replies come early, late, twice and
// from anybody.
func invent(chance *rand.Rand) (log []message.Record, now time.Time) {
	var ledger run.Ledger
	now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	add := func(r message.Record) {
		r.Seq, r.Time = uint64(len(log)+1), now
		log = append(log, r)
		_ = ledger.Fold(r.Decode())
	}
	event := func(e message.Event) { add(message.Record{Kind: message.EventRecord, Body: message.EncodeEvent(e)}) }
	for range 20 + chance.IntN(200) {
		now = now.Add(time.Duration(chance.IntN(600)) * time.Second)
		current := ledger.Current()
		if current == nil {
			members := []string{"h01", "h02", "h03"}[:1+chance.IntN(3)]
			event(message.Opened{Members: members, Rollout: rollout.Default(len(members)), NotAfter: now.Add(4 * time.Hour)})
			continue
		}
		switch decision := current.Next(now, run.Seen{}); {
		case chance.IntN(2) == 0:
			action := []message.Action{message.Prepare, message.Upgrade, message.Reboot}[chance.IntN(3)]
			result := []string{"done", "done", "reboot-required", "no space"}[chance.IntN(4)]
			add(message.Record{
				Kind: message.ReplyRecord, Host: fmt.Sprintf("h0%d", 1+chance.IntN(4)), Run: current.ID, Action: action,
				Body: message.Reply{Action: action, Result: message.ResultOf(result)}.Encode(),
			})
		case decision.Act == run.Send && decision.Command.Action == message.Prepare:
			add(message.Record{Kind: message.CommandAll, Body: decision.Command.Encode()})
		case decision.Act == run.Send:
			add(message.Record{Kind: message.CommandHost, Host: decision.Command.Host, Run: current.ID, Body: decision.Command.Encode()})
		case decision.Act == run.Note:
			event(decision.Event)
		}
	}
	return log, now
}
