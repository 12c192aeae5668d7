package site

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/measure"
)

// BenchmarkHosts is what each host adds to the processor time of a run, to the memory and to
// the disk, from 100 to 30,000 hosts: none of them may grow. The hosts are in the same
// process, and their part is the same for each.
func BenchmarkHosts(b *testing.B) {
	for _, hosts := range measure.Sizes(100, 1_000, 10_000, 30_000) {
		b.Run(fmt.Sprintf("%d-hosts", hosts), func(b *testing.B) {
			dir, empty := b.TempDir(), objects()
			s := openBench(b, dir)
			defer func() { _ = s.Close() }()
			configure(b, s, allAtOnce)
			f := settleFleet(b, s, benchNames(hosts), map[string]uint64{})
			defer f.close()
			f.gather(s)
			begun, stored := ticks(b), onDisk(b, dir)
			for b.Loop() {
				startRun(b, s)
				ended(b, s)
			}
			all := float64(b.N * hosts)
			b.ReportMetric(float64(ticks(b)-begun)*10_000/all, "cpu-µs/host")
			b.ReportMetric(float64(objects()-empty)/float64(hosts)/1024, "KiB/host")
			b.ReportMetric(float64(onDisk(b, dir)-stored)/all, "B/host-on-disk")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkRuns is what each run of ten hosts adds to the processor time and to the disk, from
// 10 to 1,000 runs of a tenant. Then it is how much memory the site has in use, and how long it
// takes to stop and to start.
func BenchmarkRuns(b *testing.B) {
	for _, runs := range measure.Sizes(10, 100, 1_000) {
		b.Run(fmt.Sprintf("%d-runs", runs), func(b *testing.B) {
			var used int
			var memory, stored int64
			var stop, start time.Duration
			for b.Loop() {
				dir, empty := b.TempDir(), objects()
				s := openBench(b, dir)
				configure(b, s, allAtOnce)
				f := settleFleet(b, s, benchNames(10), map[string]uint64{})
				f.gather(s)
				startRun(b, s) // The first one has what each tenant has once.
				ended(b, s)
				begun, there := ticks(b), onDisk(b, dir)
				for range runs {
					startRun(b, s)
					ended(b, s)
				}
				used += ticks(b) - begun
				memory += objects() - empty
				stored += onDisk(b, dir) - there
				f.close()
				at := time.Now()
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
				stop += time.Since(at)
				at = time.Now()
				s = openBench(b, dir)
				start += time.Since(at)
				_ = s.Close()
			}
			all := float64(b.N * runs)
			b.ReportMetric(float64(used)*10/all, "cpu-ms/run")
			b.ReportMetric(float64(stored)/all, "B/run-on-disk")
			b.ReportMetric(float64(memory)/float64(b.N)/(1<<20), "MiB-in-use")
			b.ReportMetric(stop.Seconds()/float64(b.N), "s-to-stop")
			b.ReportMetric(start.Seconds()/float64(b.N), "s-to-start")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// objects is how many bytes objects take. What the benchmark before has pooled is gone only after
// a second collection.
func objects() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// onDisk is how many bytes the files of a folder have.
func onDisk(b *testing.B, dir string) (bytes int64) {
	b.Helper()
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		bytes += info.Size()
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return bytes
}
