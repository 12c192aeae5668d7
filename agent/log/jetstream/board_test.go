package jetstream

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// TestPrepareForOne checks that a host is told whether it is a member and not
// who else is, and that the prepare can be read either way.
func TestPrepareForOne(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	all := prepare("h01", "h02", "h03")
	run, err := s.log.Append(t.Context(), all, 0)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := message.DecodeCommand(all.Body)
	if err != nil {
		t.Fatal(err)
	}
	for host, member := range map[string]bool{"h01": true, "h03": true, "h09": false, nobody[0]: false, nobody[1]: false} {
		newest := upTo(t, s.station(host), run)
		got, err := message.DecodeCommand(newest[0].Body)
		if err != nil || newest[0].Seq != run || newest[0].Kind != message.CommandAll || !got.NotAfter.Equal(whole.NotAfter) {
			t.Fatalf("host %s gets record %d, %+v, %v", host, newest[0].Seq, got, err)
		}
		if len(got.Hosts) != 1 || slices.Contains(got.Hosts, host) != member || !member && slices.Contains(whole.Hosts, got.Hosts[0]) {
			t.Errorf("host %s is told of the hosts %v", host, got.Hosts)
		}
	}
}

// upTo asks until the gate knows a record.
func upTo(t *testing.T, station *HostLog, seq uint64) []message.Record {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var newest []message.Record
	_ = station.Commands(ctx, func(r message.Record) {
		newest = append(newest, r)
		if r.Seq == seq {
			stop()
		}
	})
	if len(newest) == 0 {
		t.Fatalf("record %d does not come", seq)
	}
	return newest
}

// TestNewRun checks that a prepare reaches a host that listens, and that the
// commands of the run before are not told any more.
func TestNewRun(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	station := s.station("h01")
	got := make(chan message.Record, 10)
	go func() {
		defer close(got)
		_ = station.Commands(t.Context(), func(r message.Record) { got <- r })
	}()
	first, err := s.log.Append(t.Context(), prepare("h01"), 0)
	if err != nil {
		t.Fatal(err)
	}
	comes(t, got, first)
	upgrade, err := s.log.Append(t.Context(), message.Record{Kind: message.CommandHost, Host: "h01", Run: first, Body: []byte(`{}`)}, first)
	if err != nil {
		t.Fatal(err)
	}
	comes(t, got, upgrade)
	second, err := s.log.Append(t.Context(), prepare("h01"), upgrade)
	if err != nil {
		t.Fatal(err)
	}
	comes(t, got, second)
	newest, err := station.Newest(t.Context())
	if err != nil || len(newest) != 1 || newest[0].Seq != second {
		t.Errorf("the newest are %+v, %v", newest, err)
	}
}

// expect waits for a record. Older ones may come before it, because some come
// twice.
func expect(t *testing.T, got <-chan message.Record, seq, run uint64, body string) {
	t.Helper()
	for r := range got {
		if r.Seq < seq {
			continue
		}
		if r.Seq != seq || r.Run != run || string(r.Body) != body || r.Time.IsZero() || r.Log == "" {
			t.Fatalf("got record %d of run %d at %s: %s", r.Seq, r.Run, r.Time, r.Body)
		}
		return
	}
	t.Fatalf("record %d does not come any more", seq)
}

// comes waits for a record; others may come before it, because some come
// twice.
func comes(t *testing.T, got <-chan message.Record, seq uint64) {
	t.Helper()
	for r := range got {
		if r.Seq == seq {
			return
		}
		if r.Seq > seq {
			t.Fatalf("record %d comes before record %d", r.Seq, seq)
		}
	}
	t.Fatalf("record %d does not come any more", seq)
}

// TestGateAfterRestart checks that a gate which comes second knows what is on
// the log: that of the newest run, in the order of the log.
func TestGateAfterRestart(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var last uint64
	for _, r := range []message.Record{
		prepare("h01", "h02"),
		{Kind: message.CommandHost, Host: "h02", Run: 1, Body: []byte(`"old"`)},
		prepare("h01", "h02"),
		{Kind: message.CommandHost, Host: "h01", Run: 3, Body: []byte(`"upgrade"`)},
		{Kind: message.CommandHost, Host: "h01", Run: 3, Body: []byte(`"reboot"`)},
		event("turn"),
	} {
		seq, err := s.log.Append(t.Context(), r, last)
		if err != nil {
			t.Fatal(err)
		}
		last = seq
	}
	second := NewGate(s.log, s.kept)
	loaded := make(chan struct{})
	go func() { _ = second.board.serve(t.Context(), func() { close(loaded) }) }()
	<-loaded
	text := func(all []record) string {
		var b strings.Builder
		for _, r := range all {
			fmt.Fprintf(&b, "%d %d %d %s;", r.Kind, r.Seq, r.Run, r.Body)
		}
		return b.String()
	}
	one := text([]record{{Kind: message.CommandAll, Seq: 3, Body: prepare("h01").Body}, {Kind: message.CommandHost, Seq: 5, Run: 3, Body: []byte(`"reboot"`)}})
	if got := text(second.board.newest("h01")); got != one {
		t.Errorf("h01 is told %s", got)
	}
	two := text([]record{{Kind: message.CommandAll, Seq: 3, Body: prepare("h02").Body}})
	if got := text(second.board.newest("h02")); got != two {
		t.Errorf("h02 is told %s", got)
	}
}

// TestRunAheadOfTheGate checks that a reply to a run which the gate has not
// seen yet is not refused.
func TestRunAheadOfTheGate(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	run, err := s.log.Append(t.Context(), prepare("h01"), 0)
	if err != nil {
		t.Fatal(err)
	}
	behind := NewGate(s.log, s.kept)
	body := message.Reply{Action: message.Prepare, Result: message.Done}.Encode()
	if a := behind.reply(t.Context(), "h01", fmt.Sprint(run), message.Prepare, body); a.Refused || a.Error != "" {
		t.Errorf("the answer is %+v", a)
	}
	if a := behind.reply(t.Context(), "h01", fmt.Sprint(run+1), message.Prepare, body); !a.Refused {
		t.Errorf("the answer to a reply to no run is %+v", a)
	}
}

// TestManyAtOnce checks that more calls than are answered at once all get
// their answer.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if _, err := s.log.Append(t.Context(), prepare("h01"), 0); err != nil {
		t.Fatal(err)
	}
	// A second gate would share the work, and nobody must notice.
	go func() { _ = NewGate(s.log, s.kept).Serve(t.Context()) }()
	const hosts, calls = 20, callsPerHost
	done := make(chan error, hosts*calls)
	for i := range hosts {
		station := s.station(fmt.Sprintf("h%02d", i))
		for range calls {
			go func() {
				_, err := station.Newest(t.Context())
				done <- err
			}()
		}
	}
	for range hosts * calls {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// TestPushedPast checks that what is no command of the host is not delivered.
func TestPushedPast(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	got := make(chan message.Record, 10)
	station := s.station("h01")
	pushed := make(chan *nats.Msg, 10)
	pushed <- &nats.Msg{Subject: s.log.subjects.Push("h01"), Data: []byte("{")}
	pushed <- &nats.Msg{Subject: s.log.subjects.Push("h01"), Data: []byte(`{"kind":2,"seq":7,"run":3,"body":{}}`)}
	pushed <- &nats.Msg{Subject: s.log.subjects.News()}
	if err := station.push(t.Context(), pushed, func(r message.Record) { got <- r }); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 {
		t.Fatalf("%d records are delivered", len(got))
	}
	if r := <-got; r.Seq != 7 || r.Run != 3 || r.Host != "h01" || r.Kind != message.CommandHost {
		t.Errorf("it is read as %+v", r)
	}
}
