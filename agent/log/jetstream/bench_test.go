package jetstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/natsd"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/credentialtest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/measure"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// BenchmarkAppend is one record that is on disk when it is acknowledged: the
// floor under every record of a run.
func BenchmarkAppend(b *testing.B) {
	log, _ := benchSite(b)
	var last uint64
	times := make([]time.Duration, 0, 10_000)
	for b.Loop() {
		begun := time.Now()
		seq, err := log.Append(b.Context(), message.Record{Kind: message.EventRecord, Body: make([]byte, 256)}, last)
		if err != nil {
			b.Fatal(err)
		}
		last = seq
		times = append(times, time.Since(begun))
	}
	percentiles(b, times)
	measure.SyncedWrite(b, 256)
}

// BenchmarkCommandToReply is a command and the host's answer to it: two
// records on disk and the way there and back.
func BenchmarkCommandToReply(b *testing.B) {
	log, hosts := benchSite(b)
	h := hosts("h01")
	go func() {
		_ = h.Commands(b.Context(), func(r message.Record) {
			_ = h.Reply(b.Context(), r.Seq, message.Reply{Action: message.Prepare, Result: message.Result{Outcome: message.Done}})
		})
	}()
	replies := make(chan uint64, 100)
	go func() {
		_ = log.Follow(b.Context(), 1, func(r message.Record) {
			if r.Kind == message.ReplyRecord {
				replies <- r.Run
			}
		})
	}()
	var last uint64
	times := make([]time.Duration, 0, 10_000)
	for b.Loop() {
		begun := time.Now()
		seq, err := log.Append(b.Context(), message.Record{Kind: message.CommandAll, Body: []byte("{}")}, last)
		if err != nil {
			b.Fatal(err)
		}
		last = seq
		for <-replies != seq {
		}
		times = append(times, time.Since(begun))
	}
	percentiles(b, times)
	measure.SyncedWrite(b, 256)
}

// BenchmarkTenThousand is a prepare to 10,000 hosts, each with its own
// connection: until all are told, and until all replies are on disk.
func BenchmarkTenThousand(b *testing.B) {
	hosts := measure.Size(10_000)
	log, host := benchSite(b)
	names := make([]string, hosts)
	told, replied := make(chan struct{}, hosts), make(chan struct{}, hosts)
	for i := range hosts {
		names[i] = fmt.Sprintf("udc1-%05d.example.com", i)
		s := host(names[i])
		go func() {
			var seen uint64
			_ = s.Commands(b.Context(), func(r message.Record) {
				if r.Seq == seen {
					return
				}
				seen = r.Seq
				told <- struct{}{}
				_ = s.Reply(b.Context(), r.Seq, message.Reply{Action: message.Prepare, Result: message.Result{Outcome: message.Done}})
			})
		}()
	}
	go func() {
		_ = log.Follow(b.Context(), 1, func(r message.Record) {
			if r.Kind == message.ReplyRecord {
				replied <- struct{}{}
			}
		})
	}()
	var last uint64
	var telling, replying time.Duration
	for b.Loop() {
		begun := time.Now()
		seq, err := log.Append(b.Context(), prepare(names...), last)
		if err != nil {
			b.Fatal(err)
		}
		last = seq
		wait(told, hosts)
		telling += time.Since(begun)
		wait(replied, hosts)
		replying += time.Since(begun)
	}
	b.ReportMetric(telling.Seconds()/float64(b.N), "s-to-told")
	b.ReportMetric(replying.Seconds()/float64(b.N), "s-to-replied")
	measure.SyncedWrite(b, 256)
}

func wait(done <-chan struct{}, times int) {
	for range times {
		<-done
	}
}

// BenchmarkAppendToMany is a command to one of 10,000 hosts that all had one.
func BenchmarkAppendToMany(b *testing.B) {
	hosts := measure.Size(10_000)
	log, _ := benchSite(b)
	var last uint64
	send := func(i int) {
		seq, err := log.Append(b.Context(), message.Record{Kind: message.CommandHost, Host: fmt.Sprintf("h%05d", i%hosts), Body: []byte("{}")}, last)
		if err != nil {
			b.Fatal(err)
		}
		last = seq
	}
	for i := range hosts {
		send(i)
	}
	i := 0
	for b.Loop() {
		send(i)
		i++
	}
	measure.SyncedWrite(b, 256)
}

func benchSite(b *testing.B) (*Log, func(string) *HostLog) {
	b.Helper()
	dir := b.TempDir()
	hosts := natsd.NewHosts(&credentialtest.Memory{})
	server, err := natsd.Start(b.Context(), natsd.Options{Dir: dir + "/store", Hosts: hosts, Holder: "a benchmark", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = server.Close() })
	nc, err := server.Connect()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(nc.Close)
	log, err := Open(b.Context(), nc, "acme")
	if err != nil && !errors.Is(err, context.Canceled) {
		b.Fatal(err)
	}
	serveGate(b, log, nc)
	one := &site{t: b, hosts: hosts, server: server, keys: map[string]nkeys.KeyPair{}}
	return log, func(host string) *HostLog { return one.host(host) }
}

func percentiles(b *testing.B, times []time.Duration) {
	b.Helper()
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-us")
}
