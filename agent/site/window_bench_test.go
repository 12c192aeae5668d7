package site

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/measure"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// BenchmarkWindow is the time from the opening of a window to the first
// command, of a hundred tenants whose windows open at the same moment.
func BenchmarkWindow(b *testing.B) {
	tenants := measure.Size(100)
	names := make([]string, tenants)
	for i := range names {
		names[i] = fmt.Sprintf("tenant-%02d", i)
	}
	s, err := Open(b.Context(), Options{
		Name: "bench", Zone: time.UTC, Dir: b.TempDir(), Tenants: names, API: Endpoint{Listen: "127.0.0.1:0"},
		Holder: "a benchmark", Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	nc, err := s.Server().Connect()
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	commands := make(chan time.Time, tenants)
	if _, err := nc.Subscribe("osu.*.cmd.all", func(*nats.Msg) { commands <- time.Now() }); err != nil {
		b.Fatal(err)
	}
	// At least some seconds ahead, so that all controllers are settled by then.
	opens := time.Now().UTC().Add(20 * time.Second).Truncate(time.Minute).Add(time.Minute)
	if testing.Short() {
		opens = time.Now().UTC().Truncate(time.Minute)
	}
	for _, tenant := range names {
		openAt(b, s, nc, tenant, opens)
	}
	var late []time.Duration
	for range tenants {
		late = append(late, (<-commands).Sub(opens))
	}
	for b.Loop() { // The figures below are all that counts.
	}
	slices.Sort(late)
	b.ReportMetric(late[tenants/2].Seconds()*1000, "ms-p50")
	b.ReportMetric(late[tenants*99/100].Seconds()*1000, "ms-p99")
	b.ReportMetric(0, "ns/op")
}

// openAt gives a tenant one host, which is online, and a window.
func openAt(b *testing.B, s *Site, nc *nats.Conn, tenant string, opens time.Time) {
	b.Helper()
	_, err := s.Store().PutConfig(b.Context(), tenant, v1.Kept[v1.OSUpgrade]{Value: v1.OSUpgrade{
		WorkerApplications: []v1.WorkerApplication{{Name: benchApplication}},
		MaintenanceWindows: []v1.MaintenanceWindow{{
			DaysOfWeek: opens.Weekday().String(), StartTime: opens.Format("15:04"), Timezone: "UTC", Duration: "1h",
		}},
	}}, none)
	if err != nil {
		b.Fatal(err)
	}
	subjects := log.Subjects{Tenant: tenant}
	beat := func() error {
		return nc.Publish(subjects.Alive("h01"), message.Alive{Application: benchApplication, Protocol: format.Protocol}.Encode())
	}
	// A controller that begins to listen only now has missed the first heartbeat, and pings.
	if _, err := nc.Subscribe(subjects.Ping(), func(*nats.Msg) { _ = beat() }); err != nil {
		b.Fatal(err)
	}
	if err := beat(); err != nil {
		b.Fatal(err)
	}
}
