package jetstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/gate"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/natsd"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/credentialtest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/formattest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
)

// site is an embedded server with the log of tenant acme.
type site struct {
	t      testing.TB
	hosts  *natsd.Hosts
	server *natsd.Server
	log    *Log
	// agent is the agent's own connection, with all rights, receiver the one on
	// which it hears hosts.
	agent, receiver *nats.Conn
	kept            *store.Store

	mu   sync.Mutex
	keys map[string]nkeys.KeyPair
}

// newSite starts a site that lets hosts in.
func newSite(t *testing.T) *site {
	t.Helper()
	s := newServer(t)
	s.kept = serveGate(t, s.log, s.agent)
	return s
}

// newServer starts a site without a gate.
func newServer(t *testing.T) *site {
	t.Helper()
	dir := t.TempDir()
	hosts := natsd.NewHosts(&credentialtest.Memory{})
	server, err := natsd.Start(t.Context(), natsd.Options{Dir: dir + "/store", Hosts: hosts, Holder: "a test", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	nc, err := server.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	receiver, err := server.Receive("acme")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(receiver.Close)
	log, err := OpenApart(t.Context(), nc, receiver, "acme")
	if err != nil {
		t.Fatal(err)
	}
	return &site{t: t, hosts: hosts, server: server, log: log, agent: nc, receiver: receiver, keys: map[string]nkeys.KeyPair{}}
}

// serveGate lets hosts in until the test ends.
func serveGate(t testing.TB, log *Log, nc *nats.Conn) *store.Store {
	t.Helper()
	kept := openStore(t, nc)
	gate := NewGate(log, kept)
	go func() { _ = gate.Serve(t.Context()) }()
	return kept
}

func openStore(t testing.TB, nc *nats.Conn) *store.Store {
	t.Helper()
	kept, err := store.Open(t.Context(), nc)
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

// key returns the key of a host of tenant acme. A host has one, with all its connections.
func (s *site) key(host string) nkeys.KeyPair {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if key, known := s.keys[host]; known {
		return key
	}
	seed, err := s.hosts.Add(natsd.Identity{Tenant: "acme", Host: host})
	if err != nil {
		s.t.Fatal(err)
	}
	key, err := nkeys.FromSeed(seed)
	if err != nil {
		s.t.Fatal(err)
	}
	s.keys[host] = key
	return key
}

// connect connects as a host of tenant acme, with that host's own rights.
func (s *site) connect(host string, options ...nats.Option) *nats.Conn {
	s.t.Helper()
	nc, err := s.server.ConnectHost(host, s.key(host), options...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(nc.Close)
	return nc
}

func (s *site) host(host string) *HostLog {
	s.t.Helper()
	h, err := Dial("acme", host, func(options ...nats.Option) (*nats.Conn, error) {
		return s.connect(host, options...), nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return h
}

func prepare(hosts ...string) message.Record {
	return message.Record{Kind: message.CommandAll, Body: message.Command{
		Action: message.Prepare, Hosts: hosts, NotAfter: time.Date(2026, 11, 21, 5, 0, 0, 0, time.UTC),
	}.Encode()}
}

func event(text string) message.Record {
	return message.Record{Kind: message.EventRecord, Body: []byte(text)}
}

// TestOneWriter checks that a controller cannot append if it has not seen the last
// command, and that replies in between do not matter.
func TestOneWriter(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first, err := s.log.Append(t.Context(), message.Record{Kind: message.CommandAll, Body: []byte("{}")}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.host("h01").Reply(t.Context(), first, message.Reply{Action: message.Prepare, Result: message.Result{Outcome: message.Done}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.log.Append(t.Context(), event("2"), first); err != nil {
		t.Fatalf("a reply in between disturbs the writer: %v", err)
	}
	if _, err := s.log.Append(t.Context(), event("3"), first); !errors.Is(err, log.ErrBehind) {
		t.Fatalf("a writer that is behind gets %v", err)
	}
	if last, err := s.log.Last(t.Context()); err != nil || last != 3 {
		t.Fatalf("the log ends at %d, %v", last, err)
	}
}

// TestAppendUnderWay checks that an append which is refused because another one is
// under way is not called behind: the other one may fail.
func TestAppendUnderWay(t *testing.T) {
	t.Parallel()
	if rejected(&jetstream.APIError{ErrorCode: 10164}) || !rejected(&jetstream.APIError{ErrorCode: 10071}) {
		t.Error("an append of which nothing is known is called refused, or one that is refused unknown")
	}
}

// TestOneAnswer checks that the second reply of a host to a command changes nothing,
// and that only the newest run takes replies.
func TestOneAnswer(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	h := s.host("h01")
	reply := message.Reply{Action: message.Upgrade, Result: message.Result{Outcome: message.Done}}
	if err := h.Reply(t.Context(), 1, reply); !errors.Is(err, log.ErrRefused) {
		t.Fatalf("a reply before the first run gets %v", err)
	}
	run, err := s.log.Append(t.Context(), message.Record{Kind: message.CommandAll, Body: []byte("{}")}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Reply(t.Context(), run, reply); !errors.Is(err, log.ErrRefused) {
		t.Fatalf("a reply to a command that is not on the log gets %v", err)
	}
	upgrade := message.Record{Kind: message.CommandHost, Host: "h01", Run: run, Body: message.Command{Action: message.Upgrade, Host: "h01"}.Encode()}
	if _, err := s.log.Append(t.Context(), upgrade, run); err != nil {
		t.Fatal(err)
	}
	foreign := reply
	foreign.Log = "another"
	if err := h.Reply(t.Context(), run, foreign); !errors.Is(err, log.ErrRefused) {
		t.Fatalf("a reply to a command of another log gets %v", err)
	}
	if err := h.Reply(t.Context(), run, reply); err != nil {
		t.Fatal(err)
	}
	reply.Result = message.ResultOf("failed after all")
	if err := h.Reply(t.Context(), run, reply); !errors.Is(err, log.ErrAnswered) {
		t.Fatalf("the second reply gets %v", err)
	}
	if err := h.Reply(t.Context(), run+7, reply); !errors.Is(err, log.ErrRefused) {
		t.Fatalf("a reply to no run gets %v", err)
	}
	reply.Result = message.Result{Outcome: message.Failed, Text: strings.Repeat("x", gate.MaxReply)}
	if err := h.Reply(t.Context(), run, reply); !errors.Is(err, log.ErrRefused) {
		t.Fatalf("a reply of %d bytes gets %v", gate.MaxReply, err)
	}
	if last, err := s.log.Last(t.Context()); err != nil || last != 3 {
		t.Errorf("the log has %d records, %v", last, err)
	}
}

// TestCommandsAfterAbsence checks that a host gets the newest commands it has
// missed, oldest first, and then each new one, and none of another host.
func TestCommandsAfterAbsence(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	run, err := s.log.Append(t.Context(), prepare("h02", "h01"), 0)
	if err != nil {
		t.Fatal(err)
	}
	other, err := s.log.Append(t.Context(), message.Record{Kind: message.CommandHost, Host: "h02", Run: run, Body: []byte(`"upgrade h02"`)}, run)
	if err != nil {
		t.Fatal(err)
	}
	mine, err := s.log.Append(t.Context(), message.Record{Kind: message.CommandHost, Host: "h01", Run: run, Body: []byte(`"upgrade h01"`)}, other)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan message.Record, 10)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	h := s.host("h01")
	go func() {
		defer close(got)
		ended <- h.Commands(ctx, func(r message.Record) { got <- r })
	}()
	expect(t, got, run, 0, string(prepare("h01").Body))
	expect(t, got, mine, run, `"upgrade h01"`)
	newest, err := s.log.Append(t.Context(), message.Record{Kind: message.CommandHost, Host: "h01", Run: run, Body: []byte(`"reboot h01"`)}, mine)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, got, newest, run, `"reboot h01"`)
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Commands ended with %v", err)
	}
}

// TestFollow checks that a reader gets every record from its place on, in
// order, strange subjects included, and the run of a reply from its subject;
// and that reading a part gives the same.
func TestFollow(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if _, err := s.log.Append(t.Context(), event("opened"), 0); err != nil {
		t.Fatal(err)
	}
	forged := nats.NewMsg("osu.acme.reply.not-a-run.upgrade.h01")
	lie := nats.NewMsg(log.Subjects{Tenant: "acme"}.Reply(41, message.Upgrade, "h01"))
	other := nats.NewMsg(log.Subjects{Tenant: "acme"}.Prepare("basel"))
	other.Header.Set(headerEnvironment, "bern")
	for _, msg := range []*nats.Msg{forged, lie, other} {
		msg.Header.Set(headerRun, "7")
		msg.Header.Set(format.Header, "1")
		if _, err := s.agent.RequestMsgWithContext(t.Context(), msg); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	var followed, read []message.Record
	err := s.log.Follow(ctx, 1, func(r message.Record) {
		if followed = append(followed, r); len(followed) == 4 {
			stop()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := s.log.Read(t.Context(), 1, 4, func(r message.Record) { read = append(read, r) }); err != nil {
		t.Fatal(err)
	}
	for i, r := range read {
		if fmt.Sprintf("%+v", r) != fmt.Sprintf("%+v", followed[i]) {
			t.Errorf("record %d reads as %+v, and was followed as %+v", i+1, r, followed[i])
		}
	}
	if read[1].Seq != 2 || read[1].Kind != 0 {
		t.Errorf("a record on a strange subject reads as %+v", read[1])
	}
	if read[3].Kind != 0 || read[3].Environment != "" {
		t.Errorf("a prepare of two environments reads as %+v", read[3])
	}
	if read[2].Run != 41 || read[2].Host != "h01" {
		t.Errorf("a header changes the run of a reply: %+v", read[2])
	}
}

// TestRecordOfAnotherFormat checks that every reader stops, with the reason, at a
// record that this version cannot read: decisions by the other records would be
// decisions by half a log.
func TestRecordOfAnotherFormat(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]string{"2": "written by format 2, this version reads 1", "": "it bears no format number: it was written by a version before the first release, or is damaged"} {
		s := newSite(t)
		if _, err := s.log.Append(t.Context(), event("opened"), 0); err != nil {
			t.Fatal(err)
		}
		newer := nats.NewMsg(log.Subjects{Tenant: "acme"}.Event())
		newer.Header.Set(format.Header, number)
		newer.Data = []byte(`{"event":"opened"}`)
		for range 2 {
			if _, err := s.agent.RequestMsgWithContext(t.Context(), newer); err != nil {
				t.Fatal(err)
			}
		}
		want = "cannot read record 2 of the log of tenant acme: " + want
		for name, read := range map[string]func(func(message.Record)) error{
			"Follow": func(deliver func(message.Record)) error { return s.log.Follow(t.Context(), 1, deliver) },
			"Read":   func(deliver func(message.Record)) error { return s.log.Read(t.Context(), 1, 3, deliver) },
		} {
			var seen []uint64
			err := read(func(r message.Record) { seen = append(seen, r.Seq) })
			if err == nil || err.Error() != want || fmt.Sprint(seen) != "[1]" {
				t.Errorf("%s delivers %v and ends with %v; want %s", name, seen, err, want)
			}
		}
	}
}

// storedRecord is how a fixture holds a record.
type storedRecord struct {
	Subject string          `json:"subject"`
	Header  nats.Header     `json:"header"`
	Body    json.RawMessage `json:"body"`
}

// TestRecordFormat holds what is written to the log against the fixture of
// format 1, and reads it.
func TestRecordFormat(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	run, err := s.log.Append(t.Context(), prepare("h01"), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.log.Append(t.Context(), message.Record{Kind: message.CommandHost, Host: "h01", Run: run, Body: message.Command{Action: message.Upgrade, Host: "h01"}.Encode()}, run); err != nil {
		t.Fatal(err)
	}
	if err := s.host("h01").Reply(t.Context(), run, message.Reply{Action: message.Upgrade, Result: message.Result{Outcome: message.Done}}); err != nil {
		t.Fatal(err)
	}
	var text []byte
	for seq := range uint64(3) {
		msg, err := s.log.stream.GetMsg(t.Context(), seq+1)
		if err != nil {
			t.Fatal(err)
		}
		for name := range msg.Header {
			if !strings.HasPrefix(name, "Osu-") {
				delete(msg.Header, name)
			}
		}
		line, err := json.Marshal(storedRecord{msg.Subject, msg.Header, msg.Data})
		if err != nil {
			t.Fatal(err)
		}
		text = append(append(text, line...), '\n')
	}
	reader := newSite(t)
	for line := range bytes.Lines(formattest.Golden(t, "testdata/format1/records.jsonl", text)) {
		var r storedRecord
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		if _, err := reader.agent.RequestMsgWithContext(t.Context(), &nats.Msg{Subject: r.Subject, Header: r.Header, Data: r.Body}); err != nil {
			t.Fatal(err)
		}
	}
	var read []string
	if err := reader.log.Read(t.Context(), 1, 3, func(r message.Record) {
		read = append(read, fmt.Sprintf("%d %d %s %s %s", r.Kind, r.Run, r.Host, r.Action, r.Body))
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"1 0   " + string(prepare("h01").Body), `2 1 h01  {"action":"upgrade","host":"h01"}`, `4 1 h01 upgrade {"action":"upgrade","result":"done"}`,
	}
	if !slices.Equal(read, want) {
		t.Errorf("the records are\n%q\nwant\n%q", read, want)
	}
}

// TestFollowEnds checks that a reader is told when its log is gone.
func TestFollowEnds(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ended := make(chan error, 1)
	following := make(chan struct{}, 1)
	go func() { ended <- s.log.Follow(t.Context(), 1, func(message.Record) { following <- struct{}{} }) }()
	if _, err := s.log.Append(t.Context(), event("opened"), 0); err != nil {
		t.Fatal(err)
	}
	<-following
	if err := s.log.js.DeleteStream(t.Context(), s.log.subjects.Stream()); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err == nil || t.Context().Err() != nil {
			t.Errorf("following ended with %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("following a log that is gone does not end")
	}
}

// TestRights checks that a host reaches nothing but its own subjects:
// each attempt is refused by the server.
func TestRights(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	acme, other := log.Subjects{Tenant: "acme"}, log.Subjects{Tenant: "other"}
	refused := make(chan error, 1)
	nc := s.connect("h01", nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
	for name, subject := range map[string]string{
		"command to all":            acme.CommandAll(),
		"command to one":            acme.CommandHost(),
		"event":                     acme.Event(),
		"reply past the gate":       acme.Reply(1, message.Upgrade, "h01"),
		"reply of another host":     acme.Call("h02", "reply.1.upgrade"),
		"versions of another host":  acme.Call("h02", "report.versions"),
		"heartbeat of another host": acme.Alive("h02"),
		"reply in another tenant":   other.Call("h01", "reply.1.upgrade"),
		"pushed command":            acme.Push("h02"),
		"pushed command to itself":  acme.Push("h01"),
		"news":                      acme.PushAll(),
		"task":                      acme.Task("h02"),
		"who has the lease":         acme.Push("h01"),
		"outcome of another host":   acme.Outcome("h02"),
		"ask for heartbeats":        acme.Ping(),
		"delete the log":            "$JS.API.STREAM.DELETE." + acme.Stream(),
		"read any record":           "$JS.API.DIRECT.GET." + acme.Stream(),
		"read commands to itself":   "$JS.API.DIRECT.GET." + acme.Stream() + "." + acme.CommandHost(),
		"read the configuration":    "$JS.API.DIRECT.GET.KV_osu-intent.$KV.osu-intent.acme._.config",
		"write the configuration":   "$KV.osu-intent.acme._.config",
		"make a consumer":           "$JS.API.CONSUMER.CREATE." + acme.Stream(),
		"another host's inbox":      acme.Inbox("h02") + ".x",
	} {
		if err := nc.Publish(subject, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-refused:
			if text := err.Error(); !strings.Contains(strings.ToLower(text), "permissions violation") || !strings.Contains(text, subject) {
				t.Errorf("%s: refused with %v", name, err)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%s: a host may write to %s", name, subject)
		}
	}
}

// TestListening checks that a host cannot read what is not for it.
func TestListening(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	acme := log.Subjects{Tenant: "acme"}
	refused := make(chan error, 1)
	nc := s.connect("h01", nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
	for name, subject := range map[string]string{
		"everything":                ">",
		"replies":                   "osu.acme.reply.>",
		"commands as they are kept": acme.Commands(),
		"commands to another":       acme.Push("h02"),
		"tasks of another":          acme.Task("h02"),
		"the lease of another":      acme.Push("h02"),
		"heartbeats":                acme.Alive("*"),
		"another host's inbox":      acme.Inbox("h02") + ".>",
		"commands of all the hosts": "osu-push.acme.host.*",
	} {
		if _, err := nc.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-refused:
			if !strings.Contains(err.Error(), subject) {
				t.Errorf("%s: refused with %v", name, err)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%s: a host may read %s", name, subject)
		}
	}
}

// TestVersionsAreKept checks that a host finds what it reported.
func TestVersionsAreKept(t *testing.T) {
	t.Parallel()
	h := newSite(t).host("h01")
	if told, err := h.LastReport(t.Context(), report.Versions); err != nil || told != (report.Told{}) {
		t.Fatalf("before the first report there is %+v, %v", told, err)
	}
	body := []byte(`{"kernel":"6.1"}`)
	if err := h.Report(t.Context(), report.Versions.Of(body)); err != nil {
		t.Fatal(err)
	}
	if told, err := h.LastReport(t.Context(), report.Versions); err != nil || told.Digest != report.Digest(body) || told.At.IsZero() {
		t.Fatalf("the report reads as %+v, %v", told, err)
	}
}
