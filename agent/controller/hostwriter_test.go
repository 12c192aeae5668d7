package controller

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// TestFlood checks that a host which says something new with each heartbeat
// costs one write in two seconds, the newest, and that of what it sends only
// the newest waits for the loop.
func TestFlood(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		c, _ := m.control(t)
		for i := range 1000 {
			for j := range 10 {
				m.Alive("h01", message.Alive{Application: "app", AgentVersion: fmt.Sprintf("%d.%d", i, j)})
			}
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(hostPause)
		synctest.Wait()
		if h, puts := m.kept("h01"); puts > 6 || h.AgentVersion != "999.9" {
			t.Errorf("in 10 s h01 was written %d times, last with version %s", puts, h.AgentVersion)
		}
		if n := len(c.session().telemetry.Items()); n != 0 {
			t.Errorf("%d items of telemetry are left", n)
		}
	})
}

// changing is a store to which a host says something new with each write.
type changing struct {
	*memory
	w *hostWriter
}

func (c *changing) PutHost(ctx context.Context, key string, h store.Host) error {
	err := c.memory.PutHost(ctx, key, h)
	h.AgentVersion += "+"
	c.w.put(h)
	return err
}

// TestHostChangesWhileItIsWritten: a round writes each host once, also one that says
// something new during the write, and the others do not wait for it.
func TestHostChangesWhileItIsWritten(t *testing.T) {
	t.Parallel()
	m := &changing{memory: newMemory()}
	o := m.options(t)
	o.Store = m
	m.w = newHostWriter(o)
	for _, name := range []string{"h01", "h02"} {
		m.w.put(store.Host{Tenant: "acme", Name: name, AgentVersion: "1"})
	}
	m.w.write(t.Context())
	for _, name := range []string{"h01", "h02"} {
		if h, puts := m.kept(name); puts != 2 || h.AgentVersion != "1" {
			t.Errorf("%s has version %s after %d writes of two hosts", name, h.AgentVersion, puts)
		}
	}
}

// TestTheLatestTelemetryCounts checks that what waits for the loop does not grow with
// what a host sends, and that none of its kinds is lost.
func TestTheLatestTelemetryCounts(t *testing.T) {
	t.Parallel()
	m := newMemory()
	o := m.options(t)
	n := newSession(o, true, func() {}, newWarnings(o))
	listening := make(chan error)
	ctx, stop := context.WithCancel(t.Context())
	go func() { listening <- n.listen(ctx) }()
	stop()
	if err := <-listening; !errors.Is(err, context.Canceled) {
		t.Errorf("listening ended with %v", err)
	}
	for i := range 100 {
		m.Alive("h01", message.Alive{AgentVersion: fmt.Sprint(i)})
		m.Progress("h01", message.Progress{Percent: i})
		m.Outcome("h01", message.Outcome{Attempt: i})
	}
	if len(n.telemetry.Ready()) != 1 {
		t.Errorf("there are %d wake-ups", len(n.telemetry.Ready()))
	}
	got := n.telemetry.Take()
	if len(got) != 1 || got[0].Key != "h01" {
		t.Fatalf("the telemetry is %+v", got)
	}
	if l := got[0].Value; l.alive.AgentVersion != "99" || l.progress.Percent != 99 || l.outcome.Attempt != 99 {
		t.Errorf("the latest telemetry is %+v", l)
	}
	if len(n.telemetry.Take()) != 0 {
		t.Error("telemetry is taken twice")
	}
}

// TestSlowStore checks that the loop goes on while the store takes its time,
// and that what is known at the end is written then.
func TestSlowStore(t *testing.T) {
	t.Parallel()
	m := newMemory()
	m.stuck.Lock()
	o := m.options(t)
	s := stateOf(o)
	s.heard("h01", message.Alive{Application: "app"}, time.Now())
	begun := make(chan struct{})
	go func() {
		s.writer.write(t.Context())
		close(begun)
	}()
	s.heard("h02", message.Alive{Application: "app"}, time.Now())
	s.heard("h01", message.Alive{Application: "app", AgentVersion: "2"}, time.Now())
	if len(s.hosts.known) != 2 {
		t.Errorf("%d hosts are known", len(s.hosts.known))
	}
	m.stuck.Unlock()
	<-begun
	s.writer.write(t.Context())
	if h, _ := m.kept("h01"); h.AgentVersion != "2" {
		t.Errorf("h01 is kept as %+v", h)
	}
	if h, _ := m.kept("h02"); h.Name == "" {
		t.Error("h02 is not kept")
	}
}

// TestStoreFails checks that a write which failed is tried again, not in
// haste, and that a controller that stops writes what is left.
func TestStoreFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		_, stop := m.control(t)
		m.refuse = 3
		m.beat("h01", "h02")
		if _, puts := m.kept("h01"); puts != 1 {
			t.Errorf("%d writes were tried at once", puts)
		}
		time.Sleep(3*hostPause + time.Millisecond)
		synctest.Wait()
		for _, name := range []string{"h01", "h02"} {
			if h, puts := m.kept(name); h.Name != name || puts != 5 {
				t.Errorf("after %d writes %s is kept as %+v", puts, name, h)
			}
		}
		m.beat("h03")
		if h, _ := m.kept("h03"); h.Name != "" {
			t.Fatal("h03 is written at once, so this test shows nothing")
		}
		stop()
		if h, _ := m.kept("h03"); h.Name != "h03" {
			t.Error("h03 is lost when the controller stops")
		}
	})
}
