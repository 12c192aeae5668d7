package site

import (
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/measure"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// BenchmarkNight is a whole night of hosts that take no time: in one run that may have 60 of them out
// of service, and in 60 environments whose runs begin at once and may each have one out of service. The
// second may take 1.2 times as long as the first.
func BenchmarkNight(b *testing.B) {
	const slots = 60
	hosts := max(measure.Size(400), slots) // At least one in each environment.
	b.Run("one-run", func(b *testing.B) {
		nights(b, hosts, v1.Rollout{Stages: []v1.Stage{{Name: "all", MaxUnavailable: "60"}}}, "")
	})
	b.Run("60-environments", func(b *testing.B) {
		names := make([]string, slots)
		for i := range names {
			names[i] = fmt.Sprintf("shop%02d", i)
		}
		nights(b, hosts, v1.Rollout{Stages: []v1.Stage{{Name: "all", MaxUnavailable: "1"}}}, names...)
	})
}

// nights has a run of each environment begin at once, and waits until all have ended.
func nights(b *testing.B, hosts int, rollout v1.Rollout, environments ...string) {
	s := openBench(b, b.TempDir())
	defer func() { _ = s.Close() }()
	configure(b, s, rollout)
	names := benchNames(hosts)
	if len(environments) > 1 {
		declare(b, s, names, environments)
	}
	f := settleFleet(b, s, names, map[string]uint64{})
	defer f.close()
	f.gather(s)
	var took, used time.Duration
	for b.Loop() {
		begun, before := time.Now(), processor(b)
		var all sync.WaitGroup
		for _, environment := range environments {
			all.Go(func() {
				start := v1.Start{Environment: environment, OverrideWindow: true, Reason: "a benchmark"}
				if _, err := s.Controller(benchTenant).Start(b.Context(), "bench", start); err != nil {
					b.Error(err)
				}
			})
		}
		all.Wait()
		ended(b, s)
		took, used = took+time.Since(begun), used+processor(b)-before
	}
	b.ReportMetric(took.Seconds()/float64(b.N), "s/night")
	b.ReportMetric(used.Seconds()/float64(b.N), "cpu-s/night")
	b.ReportMetric(0, "ns/op")
	measure.SyncedWrite(b, 256)
}

// declare divides hosts among environments.
func declare(b *testing.B, s *Site, hosts, environments []string) {
	b.Helper()
	of := make([][]string, len(environments))
	for i, host := range hosts {
		n := i % len(of)
		of[n] = append(of[n], host)
	}
	for n, name := range environments {
		kept := v1.Kept[v1.Environment]{Value: v1.Environment{Match: v1.Match{Hosts: of[n]}}}
		revision, err := s.Store().PutEnvironment(b.Context(), benchTenant, name, kept, none)
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Controller(benchTenant).Seen(b.Context(), revision.Number); err != nil {
			b.Fatal(err)
		}
	}
}

// processor is the processor time that this process has used, with the site and the hosts in it.
func processor(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
