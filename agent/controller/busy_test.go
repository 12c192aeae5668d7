package controller

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// says has h01 tell in a heartbeat whether it is busy.
func (m *memory) says(said *message.NotNow) {
	m.Alive("h01", message.Alive{Application: "app", Busy: said})
	synctest.Wait()
}

// TestBusyHostIsPassedOver checks that a host that says "not now" is not sent upgrade, that
// the run and the host say why, and that the host goes the moment that it is idle.
func TestBusyHostIsPassedOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		c, _ := m.control(t)
		m.beat("h01", "h02")
		r, err := c.Start(t.Context(), "test", start)
		if err != nil {
			t.Fatal(err)
		}
		said := message.NewNotNow("backup", time.Now().Add(time.Hour))
		m.reply("h02", r.ID, message.Prepare)
		m.says(&said)
		m.reply("h01", r.ID, message.Prepare)
		if want := `{"action":"upgrade","host":"h02"}`; m.last() != want || len(m.events(`"busy"`)) != 1 {
			t.Fatalf("the log ends with %s, not %s", m.last(), want)
		}
		m.says(&said)
		m.reply("h02", r.ID, message.Upgrade)
		if w, want := m.waiting(t, c, r.ID), "h01 (busy "+said.String()+") to be idle"; w.What != "idle" || w.Detail != want {
			t.Errorf("the run waits for %+v", w)
		}
		hosts, err := c.Hosts(t.Context(), v1.HostFilter{})
		if err != nil || hosts[0].Busy == nil || hosts[0].Busy.Reason != "backup" || hosts[1].Busy != nil {
			t.Errorf("the hosts are %+v, %v", hosts, err)
		}
		m.says(nil)
		if want := `{"action":"upgrade","host":"h01"}`; m.last() != want || len(m.events(`"idle"`)) != 1 {
			t.Errorf("the log ends with %s, not %s", m.last(), want)
		}
	})
}

// TestBusyOverRestart checks that a controller that has just started sends a busy host
// nothing before it has heard of the host, and not after that either.
func TestBusyOverRestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01")
		c, stop := m.control(t)
		m.beat("h01")
		r, err := c.Start(t.Context(), "test", start)
		if err != nil {
			t.Fatal(err)
		}
		said := message.NewNotNow("backup", time.Now().Add(time.Hour))
		m.says(&said)
		m.reply("h01", r.ID, message.Prepare)
		stop()
		m.control(t)
		m.pass(time.Second)
		if got := len(m.upgrades()); got != 0 {
			t.Fatalf("%d upgrades are sent before the host is heard of", got)
		}
		m.says(&said)
		m.pass(time.Second)
		if got := len(m.upgrades()); got != 0 {
			t.Fatalf("%d upgrades are sent to a busy host", got)
		}
		m.says(nil)
		if got := len(m.upgrades()); got != 1 {
			t.Errorf("%d upgrades are sent to an idle host", got)
		}
	})
}
