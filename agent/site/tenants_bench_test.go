package site

import (
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/measure"
)

// BenchmarkTenants is a site with many tenants that do nothing: what each of them adds to the
// processor time of a start, to the memory and, idle, to the share of a core.
func BenchmarkTenants(b *testing.B) {
	for _, tenants := range measure.Sizes(10, 100, 1_000) {
		b.Run(fmt.Sprintf("%d-tenants", tenants), func(b *testing.B) {
			dir := b.TempDir()
			if err := openTenantsBench(b, dir, tenants).Close(); err != nil { // It makes their logs.
				b.Fatal(err)
			}
			var started, idle int
			var memory uint64
			var span time.Duration
			for b.Loop() {
				empty, begun := inUse(), ticks(b)
				s := openTenantsBench(b, dir, tenants)
				started += ticks(b) - begun
				memory += inUse() - empty
				begun, span = ticks(b), measure.Span(20*time.Second)
				time.Sleep(span)
				idle += ticks(b) - begun
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
			}
			all := float64(b.N * tenants)
			b.ReportMetric(float64(started)*10/all, "cpu-ms/tenant")
			b.ReportMetric(float64(memory)/all/1024, "KiB/tenant")
			b.ReportMetric(float64(idle)/float64(b.N)/span.Seconds(), "%-of-a-core")
			b.ReportMetric(0, "ns/op")
			measure.SyncedWrite(b, 256)
		})
	}
}

// openTenantsBench returns a site once all its tenants are served.
func openTenantsBench(b *testing.B, dir string, tenants int) *Site {
	b.Helper()
	names := make([]string, tenants)
	for i := range names {
		names[i] = fmt.Sprintf("t%04d", i)
	}
	s, err := Open(b.Context(), Options{
		Name: "bench", Zone: time.UTC, Dir: dir, Tenants: names, API: Endpoint{Listen: "127.0.0.1:0"}, Holder: "a benchmark", Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	for name, c := range s.tenants.All() {
		for c.Ready(b.Context()) != nil {
			select {
			case err := <-s.Failed():
				b.Fatalf("tenant %s: %v", name, err)
			case <-time.After(time.Millisecond):
			}
		}
	}
	return s
}

// inUse is the memory that objects and stacks take, in bytes.
func inUse() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapInuse + stats.StackInuse
}

func ticks(b *testing.B) int {
	b.Helper()
	n, err := measure.Ticks(os.Getpid())
	if err != nil {
		b.Fatal(err)
	}
	return n
}
