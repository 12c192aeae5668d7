package controller

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/store"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wait"
)

// always is a configuration whose window is open all day, each day.
var always = v1.OSUpgrade{
	WorkerApplications: []v1.WorkerApplication{{Name: "app"}},
	MaintenanceWindows: []v1.MaintenanceWindow{{
		DaysOfWeek: "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday", StartTime: "00:00", Timezone: "UTC", Duration: "24h",
	}},
}

// TestWhatIsNew checks which word of a host has the loop decide anew, and
// which has the host written to the store.
func TestWhatIsNew(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		host             string
		telemetry        telemetry
		decides, written bool
	}{
		"a heartbeat":             {"h01", telemetry{alive: message.Alive{Application: "app"}, aliveAt: noon.Add(message.Heartbeat)}, false, false},
		"a heartbeat after long":  {"h01", telemetry{alive: message.Alive{Application: "app"}, aliveAt: noon.Add(time.Hour)}, true, false},
		"another application":     {"h01", telemetry{alive: message.Alive{Application: "other"}, aliveAt: noon.Add(time.Second)}, true, true},
		"another version":         {"h01", telemetry{alive: message.Alive{Application: "app", AgentVersion: "2"}, aliveAt: noon.Add(time.Second)}, true, true},
		"another host":            {"h02", telemetry{alive: message.Alive{Application: "app"}, aliveAt: noon}, true, true},
		"progress":                {"h01", telemetry{progress: message.Progress{Percent: 3}, progressAt: noon}, false, false},
		"progress of nobody":      {"h77", telemetry{progress: message.Progress{Percent: 3}, progressAt: noon}, false, false},
		"a heartbeat of long ago": {"h01", telemetry{alive: message.Alive{Application: "app"}, aliveAt: noon.Add(-time.Second)}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newMemory().options(t)
			s := stateOf(o)
			s.heard("h01", message.Alive{Application: "app"}, noon)
			s.stale = false
			s.writer.queue.Take()
			s.hear([]wait.Item[string, telemetry]{{Key: c.host, Value: c.telemetry}})
			if written := len(s.writer.queue.Items()) > 0; s.stale != c.decides || written != c.written {
				t.Errorf("decides: %v, written: %v; want %v, %v", s.stale, written, c.decides, c.written)
			}
		})
	}
}

// TestVersionsOfHosts checks that versions are shown with their host, and that
// a host is not known by them alone: it may have been deleted.
func TestVersionsOfHosts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h.01")
		m.versions["h=2e01"] = []byte(`{"kernel":"6.1"}`)
		m.versions["h77"] = []byte(`{"kernel":"6.1"}`)
		m.versions["h=zz"] = []byte(`{}`)
		m.versions["h02"] = []byte(`[]`)
		c, _ := m.control(t)
		hosts, err := c.Hosts(t.Context())
		if err != nil || len(hosts) != 1 || hosts[0].Versions["kernel"] != "6.1" || hosts[0].VersionsAt == nil {
			t.Errorf("the hosts are %+v, %v", hosts, err)
		}
	})
}

// BenchmarkHeartbeat is what the loop does on the heartbeat of a known host
// while a window is open; its time must not grow with the number of hosts.
func BenchmarkHeartbeat(b *testing.B) {
	for _, hosts := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprintf("%d-hosts", hosts), func(b *testing.B) {
			o := newMemory().options(b)
			s := stateOf(o)
			s.intent.set(store.Seen{Object: theConfig, Config: &always, Number: 1})
			now := time.Now()
			for i := range hosts {
				s.heard(fmt.Sprintf("h%05d", i), message.Alive{Application: "app"}, now)
			}
			queue := wait.NewQueue[string, telemetry]()
			timer := time.NewTimer(time.Hour)
			defer timer.Stop()
			for i := 0; b.Loop(); i++ {
				queue.Change(fmt.Sprintf("h%05d", i%hosts), func(l *telemetry) {
					l.alive, l.aliveAt = message.Alive{Application: "app"}, now
				})
				s.hear(queue.Take())
				s.refresh(b.Context(), timer)
			}
		})
	}
}
