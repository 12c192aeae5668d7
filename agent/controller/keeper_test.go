package controller

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
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
		if n := len(c.inbox.letters); n != 0 {
			t.Errorf("%d letters are left", n)
		}
	})
}

// TestInboxKeepsTheNewest checks that the inbox does not grow with what a host
// sends, and loses neither of the two kinds.
func TestInboxKeepsTheNewest(t *testing.T) {
	t.Parallel()
	in := newInbox()
	at := time.Now()
	for i := range 100 {
		in.put("h01", func(l *letter) { l.alive, l.aliveAt = message.Alive{AgentVersion: fmt.Sprint(i)}, at })
		in.put("h01", func(l *letter) { l.progress, l.progressAt = message.Progress{Percent: i}, at })
	}
	if len(in.some) != 1 {
		t.Errorf("there are %d wake-ups", len(in.some))
	}
	got := in.take()
	if l := got["h01"]; len(got) != 1 || l.alive.AgentVersion != "99" || l.progress.Percent != 99 {
		t.Errorf("the inbox holds %+v", got)
	}
	if len(in.take()) != 0 {
		t.Error("a letter is taken twice")
	}
}

// TestSlowStore checks that the loop goes on while the store takes its time,
// and that what is known at the end is written then.
func TestSlowStore(t *testing.T) {
	t.Parallel()
	m := newMemory()
	m.stuck.Lock()
	o := m.options(t)
	c := New(o)
	s := newState(o, c.keeper, nil)
	s.heard("h01", message.Alive{Application: "app"}, time.Now())
	begun := make(chan struct{})
	go func() {
		c.keeper.write(t.Context())
		close(begun)
	}()
	s.heard("h02", message.Alive{Application: "app"}, time.Now())
	s.heard("h01", message.Alive{Application: "app", AgentVersion: "2"}, time.Now())
	if len(s.hosts) != 2 {
		t.Errorf("%d hosts are known", len(s.hosts))
	}
	m.stuck.Unlock()
	<-begun
	c.keeper.write(t.Context())
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
