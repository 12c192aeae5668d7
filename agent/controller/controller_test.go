package controller_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/controller"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/guard"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/jetstream"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/natsd"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/credentialtest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// rig is a real log and store on which controllers and hosts come and go.
type rig struct {
	t      *testing.T
	dir    string
	hosts  *natsd.Hosts
	server *natsd.Server
	nats   *nats.Conn
	store  *store.Store
	// revision is that of the configuration.
	revision uint64
}

func newRig(t *testing.T) *rig {
	t.Helper()
	dir := t.TempDir()
	hosts := natsd.NewHosts(&credentialtest.Memory{})
	server, err := natsd.Start(t.Context(), natsd.Options{Dir: filepath.Join(dir, "store"), Hosts: hosts, Holder: "test", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	nc, err := server.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	kept, err := store.Open(t.Context(), nc)
	if err != nil {
		t.Fatal(err)
	}
	log, err := jetstream.Open(t.Context(), nc, "acme")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = jetstream.NewGate(log, kept).Serve(t.Context()) }()
	return &rig{t: t, dir: dir, hosts: hosts, server: server, nats: nc, store: kept}
}

func (r *rig) configure(config v1.OSUpgrade) {
	r.t.Helper()
	revision, err := r.store.PutConfig(r.t.Context(), "acme", v1.Kept[v1.OSUpgrade]{Value: config}, store.Revision{})
	if err != nil {
		r.t.Fatal(err)
	}
	r.revision = revision.Number
}

// control starts a controller with a guard file of its own, and returns how to
// kill it.
func (r *rig) control(guardFile string) (*controller.Controller, context.CancelFunc) {
	r.t.Helper()
	log, err := jetstream.Open(r.t.Context(), r.nats, "acme")
	if err != nil {
		r.t.Fatal(err)
	}
	watchdog, err := guard.OpenFile(filepath.Join(r.dir, guardFile))
	if err != nil {
		r.t.Fatal(err)
	}
	c := controller.New(controller.Options{
		Tenant: "acme", Zone: time.UTC, Log: log, HostEvents: log, Guard: watchdog.Guard("acme"), Store: r.store, Logger: slog.New(slog.DiscardHandler),
	})
	ctx, stop := context.WithCancel(r.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	kill := func() {
		stop()
		if err := <-ended; err != nil {
			r.t.Errorf("the controller ended with %v", err)
		}
		ended <- nil
	}
	r.t.Cleanup(kill)
	return c, kill
}

// host answers every command with done until the test ends, and counts them.
func (r *rig) host(name string, commands chan<- string) {
	r.t.Helper()
	seed, err := r.hosts.Add(natsd.Identity{Tenant: "acme", Host: name})
	if err != nil {
		r.t.Fatal(err)
	}
	key, err := nkeys.FromSeed(seed)
	if err != nil {
		r.t.Fatal(err)
	}
	hostLog, err := jetstream.Dial("acme", name, func(options ...nats.Option) (*nats.Conn, error) {
		return r.server.ConnectHost(name, key, options...)
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(hostLog.Close)
	alive := func() { _ = hostLog.Alive(message.Alive{Application: "app"}) }
	go func() { _ = hostLog.Pings(r.t.Context(), alive) }()
	alive()
	go func() {
		last := uint64(0)
		_ = hostLog.Commands(r.t.Context(), func(record message.Record) {
			if record.Seq <= last { // A host log may deliver a command twice; the log has it once.
				return
			}
			last = record.Seq
			command, err := message.DecodeCommand(record.Body)
			if err != nil {
				return
			}
			id := record.Run
			if command.Action == message.Prepare {
				id = record.Seq
			}
			commands <- fmt.Sprintf("%s %s %d", name, command.Action, id)
			_ = hostLog.Reply(r.t.Context(), id, message.Reply{Action: command.Action, Result: message.Result{Outcome: message.Done}})
		})
	}()
}

// online waits until a controller knows the configuration and has heard of so
// many hosts.
func (r *rig) online(c *controller.Controller, want int) {
	r.t.Helper()
	if err := c.Seen(r.t.Context(), r.revision); err != nil {
		r.t.Fatal(err)
	}
	changed, stop, err := c.Watch(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	defer stop()
	for {
		hosts, err := c.Hosts(r.t.Context(), v1.HostFilter{})
		if err != nil {
			r.t.Fatal(err)
		}
		n := 0
		for _, h := range hosts {
			if h.Online {
				n++
			}
		}
		if n >= want {
			return
		}
		<-changed
	}
}

// finished waits until a run has ended, as a controller sees it.
func (r *rig) finished(c *controller.Controller, id uint64) v1.Run {
	r.t.Helper()
	changed, stop, err := c.Watch(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	defer stop()
	for {
		view, err := c.Find(r.t.Context(), id)
		if err == nil && view.Finished() {
			return view
		}
		<-changed
	}
}

var application = v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: "app"}}}

// TestTwoControllers checks that two controllers at once do no harm: whoever
// starts a run, each host gets each command once.
func TestTwoControllers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.configure(application)
	commands := make(chan string, 1000)
	names := []string{"h01", "h02", "h03", "h04", "h05"}
	for _, name := range names {
		r.host(name, commands)
	}
	first, _ := r.control("guard-1.json")
	second, _ := r.control("guard-2.json")
	for i, c := range []*controller.Controller{first, second, first} {
		r.online(c, len(names))
		begun, err := c.Start(t.Context(), "test", v1.Start{OverrideWindow: true, Reason: "a test"})
		if err != nil {
			t.Fatalf("start %d: %v", i, err)
		}
		for _, view := range []v1.Run{r.finished(first, begun.ID), r.finished(second, begun.ID)} {
			if view.Result != "completed" {
				t.Fatalf("run %d ended as %s: %s", view.ID, view.Result, view.Reason)
			}
		}
	}
	close(commands)
	count := map[string]int{}
	for command := range commands {
		if count[command]++; count[command] > 1 {
			t.Errorf("a command was sent twice: %s", command)
		}
	}
	if want := 3 * len(names) * 2; len(count) != want {
		t.Errorf("%d commands were sent, not %d", len(count), want)
	}
}

// TestControllerKilled checks that the next controller goes on with a run.
func TestControllerKilled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.configure(application)
	commands := make(chan string, 1000)
	r.host("h01", commands)
	first, kill := r.control("guard.json")
	r.online(first, 1)
	begun, err := first.Start(t.Context(), "test", v1.Start{OverrideWindow: true, Reason: "a test"})
	if err != nil {
		t.Fatal(err)
	}
	kill()
	if _, err := first.State(t.Context()); !errors.Is(err, run.ErrNotReady) {
		t.Errorf("a controller that has ended answers %v", err)
	}
	second, _ := r.control("guard.json")
	if view := r.finished(second, begun.ID); view.Result != "completed" || view.RequestedBy != "test" {
		t.Errorf("the run ended as %+v", view)
	}
}

// TestLogThatWentBackwards checks that a controller sends nothing on a log
// that is not the one it knows, and says why.
func TestLogThatWentBackwards(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.configure(application)
	commands := make(chan string, 10)
	r.host("h01", commands)
	known, err := format.Guard.EncodeSummed("logs", map[string]guard.State{"acme": {Mark: guard.Mark{Seq: 1000, Hash: strings.Repeat("ab", 32)}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.dir, "guard.json"), known, 0o600); err != nil {
		t.Fatal(err)
	}
	c, _ := r.control("guard.json")
	r.online(c, 1)
	_, err = c.Start(t.Context(), "test", v1.Start{OverrideWindow: true, Reason: "a test"})
	if !errors.Is(err, run.ErrNotReady) || !strings.Contains(err.Error(), "record 1000 had been there") {
		t.Errorf("start is answered %v", err)
	}
	if err := c.Ready(t.Context()); err == nil {
		t.Error("the controller says that it is ready")
	}
}
