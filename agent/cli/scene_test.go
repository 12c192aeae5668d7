package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/controller"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/guard"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/credentialtest"
	memlog "github.com/osupgrade/terraform-provider-osupgrade/agent/testing/memory"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// scene is a site with a real controller, a real log in memory and the real API, in
// simulated time: what an operator types there is run by the program itself. Only the
// hosts are played.
type scene struct {
	t     *testing.T
	log   *memlog.Log
	token string
	conns chan net.Conn
	// told takes what hosts say beside the log.
	told log.Listener
	mu   sync.Mutex
	// online are the hosts that are heard of, plays what each of them answers.
	online map[string]bool
	plays  map[string]func(message.Action) answer
	logged bytes.Buffer
	// dialed wraps each connection of a command; nil does not.
	dialed func(net.Conn) net.Conn
	// trouble is why what is run at the site fails; empty while it does not.
	trouble string
	// knows is what each host has seen of the log; nil is what is on it.
	knows *message.Position
}

// sceneSite runs what is run at the site of a scene.
type sceneSite struct{ *scene }

// Run takes a minute, and fails as the scene says.
func (s sceneSite) Run(ctx context.Context, t message.Task) message.Outcome {
	select {
	case <-ctx.Done():
	case <-time.After(time.Minute):
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return t.Outcome(s.trouble == "", s.trouble)
}

// failsAtSite has what is run at the site fail from now on.
func (s *scene) failsAtSite(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trouble = why
}

// answer is what a host answers to a command, after a while; an empty result is none.
type answer struct {
	after  time.Duration
	result message.Result
}

// usual is a host that does what it is told: its upgrade needs a reboot.
func usual(action message.Action) answer {
	switch action {
	case message.Prepare:
		return answer{after: 20 * time.Second, result: message.Result{Outcome: message.Done}}
	case message.Upgrade:
		return answer{after: 2 * time.Minute, result: message.Result{Outcome: message.RebootRequired}}
	}
	return answer{after: time.Minute, result: message.Result{Outcome: message.Done}}
}

// night is when a scene begins: half an hour before the window opens, on a Saturday
// in Stockholm.
var night = time.Date(2026, 11, 20, 23, 30, 0, 0, time.UTC)

// intended is what is declared at the site of a scene.
type intended struct {
	windows   []v1.MaintenanceWindow
	rollout   *v1.Rollout
	calendars map[string]v1.Calendar
	// environments are those of the hosts, by name.
	environments map[string]v1.Environment
	// releases are those that are declared, by name; target is the one to which the hosts go.
	releases map[string]v1.Release
	target   release.Target
	// offers are what hosts offer to change.
	offers map[string]v1.OfferSummary
}

// saturdays is a window of four hours a week.
var saturdays = []v1.MaintenanceWindow{{DaysOfWeek: "Saturday", StartTime: "01:00", Timezone: "site-local", Duration: "4h"}}

// play runs a scene with the hosts, which are all online.
func play(t *testing.T, want intended, hosts []string, act func(*scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(night))
		zone, err := time.LoadLocation("Europe/Stockholm")
		if err != nil {
			t.Fatal(err)
		}
		s := &scene{t: t, log: memlog.New(), conns: make(chan net.Conn), online: map[string]bool{}, plays: map[string]func(message.Action) answer{}}
		s.log.Now = time.Now
		known := &shelf{intended: want, hosts: map[string]store.Host{}}
		for _, host := range hosts {
			s.online[host] = true
			known.hosts[host] = store.Host{Tenant: "acme", Name: host, Application: "debian", AgentVersion: "1.0.0", Releases: []release.Kind{release.OfData}}
		}
		g, err := guard.OpenFile(filepath.Join(t.TempDir(), "guard.json"))
		if err != nil {
			t.Fatal(err)
		}
		c := controller.New(controller.Options{
			Tenant: "acme", Zone: zone, Log: s.log, HostEvents: s, Guard: g.Guard("acme"), Store: known,
			Logger: slog.New(slog.NewTextHandler(&s.logged, nil)), Site: sceneSite{s},
		})
		var parts sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		defer parts.Wait()
		defer cancel()
		parts.Go(func() { _ = c.Run(ctx) })
		parts.Go(func() { s.beat(ctx) })
		parts.Go(func() { s.answerAll(ctx) })
		s.serve(ctx, &parts, c)
		s.pass(time.Second)
		act(s)
	})
}

// serve serves the API on connections in memory.
func (s *scene) serve(ctx context.Context, parts *sync.WaitGroup, c *controller.Controller) {
	tokens := principal.NewTokens(&credentialtest.Memory{}, &credentialtest.Memory{})
	secret, err := tokens.Add(principal.Token{Name: "ann", Tenant: "acme", Allow: access.Rights()})
	if err != nil {
		s.t.Fatal(err)
	}
	s.token = writeIn(s.t, s.t.TempDir())("token", secret)
	server := &http.Server{Handler: api.New(api.Options{
		Site: "north", Tenants: api.Fixed{"acme": c}, Tokens: tokens, Store: noIntent{}, Healthy: func() error { return nil }, Log: slog.New(slog.DiscardHandler),
	}), ReadHeaderTimeout: time.Minute}
	parts.Go(func() { _ = server.Serve(pipes{ctx, s.conns}) })
	parts.Go(func() {
		<-ctx.Done()
		_ = server.Close()
	})
}

// noIntent is the store of an API of which nobody reads or writes intent, but for the lists of
// calendars and of their copies, which are empty.
type noIntent struct{ api.Store }

func (noIntent) Calendars(context.Context, string) ([]store.Named[v1.Calendar], error) {
	return nil, nil
}

func (noIntent) CalendarCopies(context.Context, string) ([]store.Named[v1.CalendarCopy], error) {
	return nil, nil
}

// pipes is a listener whose connections are pipes.
type pipes struct {
	ctx   context.Context
	conns <-chan net.Conn
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.ctx.Done():
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error { return nil }

func (p pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

func (s *scene) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case s.conns <- theirs:
		if s.dialed != nil {
			ours = s.dialed(ours)
		}
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Listen implements log.HostEvents.
func (s *scene) Listen(ctx context.Context, to log.Listener) error {
	s.mu.Lock()
	s.told = to
	s.mu.Unlock()
	s.hello()
	<-ctx.Done()
	return ctx.Err()
}

// Addressed implements log.HostEvents: no scene has tasks.
func (s *scene) Addressed(t message.Task) (message.Task, bool) { return t, false }

// Send implements log.HostEvents.
func (s *scene) Send(message.Task) error { return nil }

// Ask implements log.HostEvents.
func (s *scene) Ask(string, log.Ask) error { return nil }

// hello has the hosts that are online say so.
func (s *scene) hello() {
	s.mu.Lock()
	online, told, knows := slices.Sorted(maps.Keys(s.online)), s.told, s.knows
	s.mu.Unlock()
	if told.Alive == nil {
		return
	}
	for _, host := range online {
		told.Alive(host, message.Alive{Application: "debian", AgentVersion: "1.0.0", Releases: []release.Kind{release.OfData}, Seen: knows})
	}
}

func (s *scene) beat(ctx context.Context) {
	beats := time.NewTicker(message.Heartbeat)
	defer beats.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-beats.C:
			s.hello()
		}
	}
}

// answerAll has the hosts answer the commands.
func (s *scene) answerAll(ctx context.Context) {
	_ = s.log.FollowCommands(ctx, 1, func(r message.Record) {
		c, err := message.DecodeCommand(r.Body)
		if err != nil {
			return // An event.
		}
		hosts, id := []string{c.Host}, r.Run
		if c.Action == message.Prepare {
			hosts, id = c.Hosts, r.Seq
		}
		for _, host := range hosts {
			go s.reply(ctx, host, id, c.Action)
		}
	})
}

func (s *scene) reply(ctx context.Context, host string, id uint64, action message.Action) {
	s.mu.Lock()
	does, known := s.plays[host]
	s.mu.Unlock()
	if !known {
		does = usual
	}
	a := does(action)
	late := time.NewTimer(a.after)
	defer late.Stop()
	select {
	case <-ctx.Done():
		return
	case <-late.C:
	}
	s.mu.Lock()
	online := s.online[host]
	s.mu.Unlock()
	if a.result.Outcome == "" || !online {
		return
	}
	body := message.Reply{Action: action, Result: a.result}.Encode()
	if _, err := s.log.Add(message.Record{Kind: message.ReplyRecord, Host: host, Run: id, Action: action, Outcome: a.result.Outcome.Beside(), Class: a.result.Class, UpToDate: a.result.UpToDate, Body: body}); err != nil {
		s.t.Error(err)
	}
}

// host has a host answer as a function says.
func (s *scene) host(name string, does func(message.Action) answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plays[name] = does
}

// know has the hosts have seen a record that is not on the log, because an older copy of
// it was put back.
func (s *scene) know(seq uint64, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.knows = &message.Position{Log: s.log.Identity(), Seq: seq, At: at}
}

// silence has a host be heard of no more.
func (s *scene) silence(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.online, name)
}

// pass lets time pass.
func (s *scene) pass(span time.Duration) {
	time.Sleep(span)
	synctest.Wait()
}

// until lets time pass until an instant.
func (s *scene) until(hour, minute, second int) {
	s.t.Helper()
	at := time.Date(2026, 11, 21, hour-1, minute, second, 0, time.UTC)
	if at.Before(time.Now()) {
		s.t.Fatalf("%s is over at %s", at, time.Now().UTC())
	}
	s.pass(time.Until(at))
}

// types returns what a command prints.
func (s *scene) types(args ...string) string {
	s.t.Helper()
	var out bytes.Buffer
	s.run(s.t.Context(), &out, args...)
	return out.String()
}

func (s *scene) run(ctx context.Context, out *bytes.Buffer, args ...string) {
	args = append(args, "--endpoint", "http://127.0.0.1:4646", "--token-file", s.token, "--tenant", "acme")
	execute(ctx, "1.0.0", args, strings.NewReader(""), out, out, s.dial)
}

// watches starts a command that follows, and returns what ends it and returns what it
// has printed.
func (s *scene) watches(args ...string) (ends func() string) {
	var out bytes.Buffer
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.run(ctx, &out, args...)
	}()
	synctest.Wait()
	return func() string {
		cancel()
		<-done
		return strings.ReplaceAll(out.String(), "\r", "")
	}
}

// shelf is a store with what is intended, hosts and the history of runs.
type shelf struct {
	// The rest of the interface is not used.
	controller.Store
	intended
	mu    sync.Mutex
	hosts map[string]store.Host
	runs  []v1.Run
}

func (s *shelf) WatchIntent(ctx context.Context, _ string, see func(store.Seen)) error {
	at := night.Add(-time.Hour)
	config := v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: "debian"}}, MaintenanceWindows: s.windows, Target: s.target}
	see(store.Seen{Object: store.Object{Kind: store.Config}, Config: &config, Number: 1, At: at})
	for name, c := range s.calendars {
		see(store.Seen{Object: store.Object{Kind: store.Calendar, Name: name}, Calendar: &c, Number: 1, At: at})
	}
	for name, e := range s.environments {
		see(store.Seen{Object: store.Object{Kind: store.Environment, Name: name}, Environment: &e, Number: 1, At: at})
	}
	for name, r := range s.releases {
		see(store.Seen{Object: store.Object{Kind: store.Release, Name: name}, Release: &r, Number: 1, At: at})
	}
	if s.rollout != nil {
		see(store.Seen{Object: store.Object{Kind: store.Rollout}, Rollout: s.rollout, Number: 1, At: at})
	}
	see(store.Seen{})
	<-ctx.Done()
	return ctx.Err()
}

func (s *shelf) Hosts(context.Context, string) ([]store.Host, error) {
	return slices.Collect(maps.Values(s.hosts)), nil
}

func (s *shelf) PutHost(context.Context, string, store.Host) error { return nil }

func (s *shelf) PutLastRuns(context.Context, string, []store.LastRun) error { return nil }

func (s *shelf) WatchReports(ctx context.Context, _ string, _ *report.Kind, see func(store.Reported)) error {
	for host := range s.hosts {
		body := message.EncodeVersions(map[string]string{"linux": "6.1.115-1", "openssl": "3.0.15-1"})
		see(store.Reported{Key: log.Token(host), Kept: report.Kept{Body: body, At: night.AddDate(0, 0, -6)}, Number: 1})
	}
	see(store.Reported{})
	<-ctx.Done()
	return ctx.Err()
}

// Report is that of a site to which no host has reported anything.
func (s *shelf) Report(context.Context, string, string, report.ID) (report.Kept, error) {
	return report.Kept{}, store.ErrNotFound
}

func (s *shelf) Summaries(context.Context, string, *report.Kind) (map[string]report.Summary, error) {
	all := map[string]report.Summary{}
	for key, offer := range s.offers {
		text, err := json.Marshal(offer)
		if err != nil {
			return nil, err
		}
		all[key] = report.Summary{At: *offer.At, JSON: string(text)}
	}
	return all, nil
}

func (s *shelf) ReportsNumber(context.Context, string, *report.Kind) (uint64, error) { return 0, nil }

func (s *shelf) PutRun(_ context.Context, _ string, r v1.Run, _ uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs = slices.DeleteFunc(s.runs, func(kept v1.Run) bool { return kept.ID == r.ID })
	s.runs = append(s.runs, r)
	return nil
}

func (s *shelf) Run(_ context.Context, _ string, id uint64) (v1.Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.runs {
		if r.ID == id {
			return r, nil
		}
	}
	return v1.Run{}, store.ErrNotFound
}

func (s *shelf) Runs(_ context.Context, _ string, deliver func(v1.Run) bool) error {
	s.mu.Lock()
	kept := slices.Clone(s.runs)
	s.mu.Unlock()
	for _, r := range slices.Backward(kept) {
		r.Hosts, r.Events = nil, nil
		if !deliver(r) {
			return nil
		}
	}
	return nil
}
