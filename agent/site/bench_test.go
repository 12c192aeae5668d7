package site

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/jetstream"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/measure"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// none is the revision of what is not there.
var none store.Revision

var allAtOnce = v1.Rollout{Stages: []v1.Stage{{Name: "all", MaxUnavailable: "100%"}}}

func sizes() []int { return measure.Sizes(1_000, 10_000) }

// BenchmarkFleet is a whole run of hosts that take no time, all allowed at
// once: until all know of the prepare, until all replies are on disk, and to
// its end.
func BenchmarkFleet(b *testing.B) {
	for _, hosts := range sizes() {
		b.Run(fmt.Sprintf("%d-hosts", hosts), func(b *testing.B) {
			s := openBench(b, b.TempDir())
			defer func() { _ = s.Close() }()
			configure(b, s, allAtOnce)
			f := settleFleet(b, s, benchNames(hosts), map[string]uint64{})
			defer f.close()
			f.gather(s)
			var told, kept, whole time.Duration
			for b.Loop() {
				f.told.Store(0)
				f.kept.Store(0)
				begun := time.Now()
				startRun(b, s)
				until(&f.told, int64(hosts))
				told += time.Since(begun)
				until(&f.kept, int64(hosts))
				kept += time.Since(begun)
				ended(b, s)
				whole += time.Since(begun)
			}
			b.ReportMetric(told.Seconds()/float64(b.N), "s-to-told")
			b.ReportMetric(kept.Seconds()/float64(b.N), "s-to-replied")
			b.ReportMetric(whole.Seconds()/float64(b.N), "s-to-end")
			b.ReportMetric(0, "ns/op")
			measure.SyncedWrite(b, 256)
			reportMemory(b, "self")
		})
	}
}

// BenchmarkSerial is a run of hosts that take no time, one after the other: the
// time of each, and how many times the log's own synced append that is. Each
// host's command and reply are two appends.
func BenchmarkSerial(b *testing.B) {
	hosts := measure.Size(1_000)
	s := openBench(b, b.TempDir())
	defer func() { _ = s.Close() }()
	configure(b, s, v1.Rollout{})
	f := settleFleet(b, s, benchNames(hosts), map[string]uint64{})
	defer f.close()
	f.gather(s)
	var took time.Duration
	for b.Loop() {
		f.kept.Store(0)
		startRun(b, s)
		until(&f.kept, int64(hosts))
		begun := time.Now()
		ended(b, s)
		took += time.Since(begun)
	}
	each := took / time.Duration(b.N*hosts)
	floor := syncedAppend(b, s)
	b.ReportMetric(float64(each.Microseconds()), "µs-each")
	b.ReportMetric(float64(floor.Microseconds()), "µs-append")
	b.ReportMetric(float64(each)/float64(floor), "appends-each")
	b.ReportMetric(0, "ns/op")
	measure.SyncedWrite(b, 256)
}

// syncedAppend is how long the log takes for one record.
func syncedAppend(b *testing.B, s *Site) time.Duration {
	b.Helper()
	nc, err := s.Server().Connect()
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	log, err := jetstream.Open(b.Context(), nc, "floor")
	if err != nil {
		b.Fatal(err)
	}
	records := measure.Size(2_000)
	begun, last := time.Now(), uint64(0)
	for range records {
		body := message.Command{Action: message.Upgrade, Host: "h00001"}.Encode()
		if last, err = log.Append(b.Context(), message.Record{Kind: message.CommandHost, Host: "h00001", Run: 1, Body: body}, last); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(begun) / time.Duration(records)
}

// BenchmarkRestart is a site that is stopped in the middle of a run, and
// started again: until it has stopped, and until the next command after its
// start. The calls that hosts repeat are those that the site could not answer in
// the time that a worker waits.
func BenchmarkRestart(b *testing.B) {
	for _, hosts := range sizes() {
		b.Run(fmt.Sprintf("%d-hosts", hosts), func(b *testing.B) { restarts(b, hosts) })
	}
}

func restarts(b *testing.B, hosts int) {
	dir, tenth := b.TempDir(), int64(hosts)/10
	s := openBench(b, dir)
	configure(b, s, v1.Rollout{Stages: []v1.Stage{{Name: "all", MaxUnavailable: "1"}}})
	f := settleFleet(b, s, benchNames(hosts), map[string]uint64{})
	f.gather(s)
	f.awaitKept(s)
	var stop, next time.Duration
	var repeated int64
	for i := 0; b.Loop(); i++ {
		if i%4 == 0 { // A run is long enough for four stops.
			f.most.Store(0)
			f.askAll()
			ended(b, s)
			f.commands.Store(0)
			f.most.Store(tenth)
			startRun(b, s)
		}
		until(&f.commands, tenth)
		repeated += f.repeated.Load()
		begun := time.Now()
		f.close()
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		stop += time.Since(begun)
		begun = time.Now()
		s = openBench(b, dir)
		f = settleFleet(b, s, f.names, f.answered)
		f.most.Store(tenth)
		f.askAll() // As a worker does: what the site pushed before it was connected is lost.
		next += (<-f.command).Sub(begun)
	}
	f.close()
	_ = s.Close()
	b.ReportMetric(stop.Seconds()/float64(b.N), "s-to-stop")
	b.ReportMetric(next.Seconds()/float64(b.N), "s-to-next-command")
	b.ReportMetric(float64(repeated)/float64(b.N), "calls-repeated")
	b.ReportMetric(0, "ns/op")
	measure.SyncedWrite(b, 256)
}

// reportMemory reports the memory of a process, hosts included where they are
// in it.
func reportMemory(b *testing.B, process string) {
	b.Helper()
	runtime.GC()
	mib, err := measure.Resident(process)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(mib, "MiB-resident")
}
