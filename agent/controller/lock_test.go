package controller

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// zincati is a request of a host by the FleetLock protocol.
func zincati(id string) v1.FleetLock {
	return v1.FleetLock{ClientParams: v1.FleetLockClient{ID: id, Group: v1.FleetLockGroup}}
}

// rebooting is racked with FleetLock.
func rebooting() *memory {
	m := racked()
	m.rollout.FleetLock = true
	return m
}

// locks checks what becomes of a request to lock a host.
func locks(t *testing.T, c *Controller, id, refused string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	host, err := c.Lock(ctx, "zincati", zincati(id))
	switch {
	case refused == "" && (err != nil || host == ""):
		t.Fatalf("%s is refused: %v", id, err)
	case refused != "" && (err == nil || !strings.Contains(err.Error(), refused)):
		t.Fatalf("the error of %s is %v, and does not say %q", id, err, refused)
	}
}

// unlocks has a host say that it has rebooted.
func unlocks(t *testing.T, c *Controller, id string) {
	t.Helper()
	if _, err := c.Unlock(t.Context(), "zincati", zincati(id)); err != nil {
		t.Fatal(err)
	}
}

// TestLock has hosts that reboot by themselves share a disruption budget with each other and with
// runs, over a restart of the site: one host of each rack is out of service at once.
func TestLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := rebooting()
		c, _ := m.control(t)
		m.beatRacks("h01", "h02", "h03", "h04")
		locks(t, c, "h01", "")
		if got := m.events(`"budgeted"`); len(got) != 1 {
			t.Fatalf("the budgets are told %d times", len(got))
		}
		locks(t, c, "h01", "")
		if got := m.events(`"locked"`); len(got) != 1 {
			t.Fatalf("h01 is locked by %d records", len(got))
		}
		locks(t, c, "h02", "budget racks, rack r1 has no free place for host h02: 1 of at most 1 hosts are out of service, or about to be: h01 (it is locked")
		locks(t, c, "h04", "")
		state, err := c.State(t.Context())
		if err != nil || state.LockCount != 2 || len(state.Locks) != 2 || state.Locks[0].Host != "h01" || state.Locks[0].By != "zincati" || len(state.Budgets) != 2 {
			t.Fatalf("the state is %+v, %v", state.Situation, err)
		}
		if h, err := c.Host(t.Context(), "h01"); err != nil || h.LockedSince == nil {
			t.Fatalf("h01 is %+v, %v", h, err)
		}
		c = m.restart(t)
		m.beatRacks("h01", "h02", "h03", "h04")
		locks(t, c, "h02", "has no free place")
		r, err := c.Start(t.Context(), "test", start)
		if err != nil {
			t.Fatal(err)
		}
		for _, host := range []string{"h01", "h02", "h03"} {
			m.reply(host, r.ID, message.Prepare)
		}
		synctest.Wait()
		if got := m.upgrades(); len(got) != 0 {
			t.Fatalf("%v are upgraded while h01 and h04 are locked", got)
		}
		unlocks(t, c, "h01")
		unlocks(t, c, "h01")
		synctest.Wait()
		if got := m.events(`"unlocked"`); len(got) != 1 || len(m.upgrades()) != 1 {
			t.Fatalf("h01 is unlocked by %d records, and %v are upgraded", len(got), m.upgrades())
		}
		locks(t, c, "h01", "host h01 is being upgraded by run")
		locks(t, c, "h02", "has no free place for host h02")
	})
}

// TestLockRefused checks who gets no lock, and that the error says what to do.
func TestLockRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := rebooting()
		m.rollout.FleetLock = false
		declare := func(r v1.Rollout) { m.declare(store.Seen{Object: theRollout, Rollout: &r}) }
		c, _ := m.control(t)
		m.beatRacks("h01", "h02")
		locks(t, c, "h01", "FleetLock is off for host h01: set fleetlock to true in the rollout of environment default: osupgrade-agent edit rollout")
		declare(v1.Rollout{FleetLock: true})
		locks(t, c, "h09", `no host has "h09" as its label fleetlock-id or as its name; start its worker with --label fleetlock-id=h09`)
		m.Alive("h03", message.Alive{Application: "app", Labels: map[string]string{"fleetlock-id": "c988d2509fdf5cdcbed39037c56406fb"}})
		m.Alive("h04", message.Alive{Application: "app", Labels: map[string]string{"fleetlock-id": "twice"}})
		m.Alive("h05", message.Alive{Application: "app", Labels: map[string]string{"fleetlock-id": "twice"}})
		synctest.Wait()
		locks(t, c, "twice", "the hosts h04, h05 all have")
		who := zincati("h01")
		who.ClientParams.Group = "workers"
		var refused *run.LockError
		if _, err := c.Lock(t.Context(), "zincati", who); !errors.As(err, &refused) || refused.Kind != run.LockGroup || !strings.Contains(err.Error(), `"workers" is not the environment of host h01`) {
			t.Errorf("another group: %v", err)
		}
		declare(v1.Rollout{FleetLock: true, Paused: true})
		locks(t, c, "h01", `no host may leave service: the rollout has "paused": true`)
		declare(v1.Rollout{FleetLock: true})
		locks(t, c, "c988d2509fdf5cdcbed39037c56406fb", "")
		if h, err := c.Host(t.Context(), "h03"); err != nil || h.LockedSince == nil {
			t.Errorf("h03 is not locked by its label: %+v, %v", h, err)
		}
	})
}

// TestLockIsFreed checks that a person can free a lock, also without any run, and that the deletion
// of a host does.
func TestLockIsFreed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := rebooting()
		c, _ := m.control(t)
		m.beatRacks("h01", "h02")
		locks(t, c, "h01", "")
		if _, err := c.Ask(t.Context(), "ann", run.Release, v1.Ask{Host: "h01", Reason: "it is back"}); err != nil {
			t.Fatal(err)
		}
		if got := m.last(); got != `{"event":"unlocked","host":"h01","by":"ann","why":"it is back"}` {
			t.Fatalf("the log ends with %s", got)
		}
		locks(t, c, "h02", "")
		m.pass(message.Silence, "h01")
		if err := c.Forget(t.Context(), "h02", run.Deletion{By: "ann"}); err != nil {
			t.Fatal(err)
		}
		if got := m.last(); got != `{"event":"unlocked","host":"h02","by":"ann","why":"the host was deleted"}` {
			t.Fatalf("the log ends with %s", got)
		}
		locks(t, c, "h01", "")
	})
}

// TestLockIsLost has the log take a record and fail to say so: the host is locked once.
func TestLockIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := rebooting()
		c, _ := m.control(t)
		m.beatRacks("h01", "h02")
		locks(t, c, "h02", "")
		unlocks(t, c, "h02")
		m.fails(errors.New("no answer"), true)
		locks(t, c, "h01", "")
		m.fails(errors.New("no answer"), true)
		unlocks(t, c, "h01")
		m.fails(errors.New("no answer"), false)
		go func() {
			time.Sleep(5 * time.Second)
			m.fails(nil, false)
		}()
		locks(t, c, "h02", "")
		m.fails(errors.New("no answer"), true)
		if _, err := c.Ask(t.Context(), "ann", run.Release, v1.Ask{Host: "h02", Reason: "it is back"}); err != nil {
			t.Fatal(err)
		}
		if locked, unlocked := m.events(`"event":"locked"`), m.events(`"event":"unlocked"`); len(locked) != 3 || len(unlocked) != 3 {
			t.Errorf("there are %d and %d records", len(locked), len(unlocked))
		}
	})
}

// TestLockOutlivesTheLog checks that a lock is told anew before the records from before the newest
// run are trimmed, and that the next controller knows since when it is held.
func TestLockOutlivesTheLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02", "h03")
		m.rollout = &v1.Rollout{FleetLock: true}
		c, _ := m.control(t)
		m.beat("h01", "h02", "h03")
		since := time.Now().UTC()
		m.Alive("h03", message.Alive{Application: "other"})
		synctest.Wait()
		locks(t, c, "h03", "")
		m.fill(trimAfter)
		m.upgraded(t, c, "done")
		m.pass(longestSleep+keepAfter, "h01", "h02")
		if first, trims := m.trimmed(); trims != 1 || first < trimAfter {
			t.Fatalf("after %d trims the log begins at %d", trims, first)
		}
		if told := m.events(`"since"`); len(told) != 1 {
			t.Fatalf("the lock is told anew %d times", len(told))
		}
		c = m.restart(t)
		m.beat("h01", "h02")
		h, err := c.Host(t.Context(), "h03")
		if err != nil || h.LockedSince == nil || !h.LockedSince.Equal(since) {
			t.Errorf("h03 is locked since %v, not since %s: %v", h.LockedSince, since, err)
		}
	})
}
