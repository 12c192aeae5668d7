package site

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/gate"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// fleet is many hosts that take no time: they speak the hosts' side of the
// protocol over one connection, and keep nothing, so that what is measured is
// the site. As a worker does, they repeat a call that the site does not answer:
// a gate drops a call that has waited for longer than its host does.
type fleet struct {
	b        *testing.B
	nc       *nats.Conn
	subjects log.Subjects
	names    []string
	mu       sync.Mutex
	// sent are the commands that each host has answered, by host; answered those whose
	// reply the site has taken. A site that stops may lose a reply, and the host gives it
	// again then.
	sent, answered map[string]uint64
	// calls are those that the site has not answered, by the inbox for the response.
	calls map[string]call
	// repeated counts the calls that were sent again.
	repeated atomic.Int64
	// told counts the hosts that know the newest prepare, kept the replies that
	// are on disk, commands those to one host.
	told, kept, commands atomic.Int64
	// most is how many commands to one host are answered; 0 is all. Without it a small
	// fleet is through before a benchmark stops the site in the middle of the run.
	most atomic.Int64
	// command gets the time of each command to one host.
	command chan time.Time
	stop    context.CancelFunc
}

// call is what a host asks of the site.
type call struct {
	subject string
	body    []byte
	// until is when the host repeats it.
	until time.Time
}

// callLimit is how long a worker waits for the response to a call.
const callLimit = 2 * gate.CallTimeout

const benchTenant, benchApplication = "acme", "appliance"

// settleFleet connects a fleet to a site and has it say that it is alive.
func settleFleet(b *testing.B, s *Site, names []string, answered map[string]uint64) *fleet {
	b.Helper()
	nc, err := s.Server().Connect()
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	f := &fleet{
		b: b, nc: nc, subjects: log.Subjects{Tenant: benchTenant}, names: names, sent: maps.Clone(answered), answered: answered,
		calls: map[string]call{}, command: make(chan time.Time, 1), stop: stop,
	}
	for subject, take := range map[string]nats.MsgHandler{
		f.subjects.PushAll():                  func(*nats.Msg) { f.askAll() },
		f.subjects.Ping():                     func(*nats.Msg) { f.sayAlive() },
		"osu-push." + benchTenant + ".host.*": f.pushed,
		"_INBOX." + benchTenant + ".*.newest": f.newest,
		"_INBOX." + benchTenant + ".*.reply":  f.taken,
	} {
		sub, err := nc.Subscribe(subject, take)
		if err != nil {
			b.Fatal(err)
		}
		if err := sub.SetPendingLimits(-1, -1); err != nil {
			b.Fatal(err)
		}
	}
	f.sayAlive()
	go f.beat(ctx)
	go f.repeat(ctx)
	return f
}

func (f *fleet) close() {
	f.stop()
	f.nc.Close()
}

// beat keeps the fleet alive.
func (f *fleet) beat(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(message.UntilBeat(time.Now())):
			f.sayAlive()
		}
	}
}

func (f *fleet) sayAlive() {
	alive := message.Alive{Application: benchApplication, Protocol: format.Protocol}.Encode()
	for _, name := range f.names {
		_ = f.nc.Publish(f.subjects.Alive(name), alive)
	}
}

// call sends a call and keeps it until the site has answered it.
func (f *fleet) call(inbox, subject string, body []byte) {
	f.mu.Lock()
	f.calls[inbox] = call{subject: subject, body: body, until: time.Now().Add(callLimit)}
	f.mu.Unlock()
	_ = f.nc.PublishRequest(subject, inbox, body)
}

// response reads the response to a call. False means that the call failed and is repeated.
func (f *fleet) response(msg *nats.Msg) (r gate.Response, ok bool) {
	if json.Unmarshal(msg.Data, &r) != nil || r.Error != "" {
		return r, false
	}
	f.mu.Lock()
	delete(f.calls, msg.Subject)
	f.mu.Unlock()
	return r, true
}

// repeat repeats the calls that have waited for too long.
func (f *fleet) repeat(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
			for inbox, c := range f.unanswered(time.Now()) {
				f.repeated.Add(1)
				f.call(inbox, c.subject, c.body)
			}
		}
	}
}

// unanswered returns the calls to repeat, by the inbox for the response.
func (f *fleet) unanswered(now time.Time) map[string]call {
	f.mu.Lock()
	defer f.mu.Unlock()
	unanswered := map[string]call{}
	for inbox, c := range f.calls {
		if now.After(c.until) {
			unanswered[inbox] = c
		}
	}
	return unanswered
}

func (f *fleet) askAll() {
	for _, name := range f.names {
		f.ask(name)
	}
}

func (f *fleet) ask(name string) {
	f.call(f.subjects.Inbox(name)+".newest", f.subjects.Call(name, "newest"), nil)
}

func (f *fleet) newest(msg *nats.Msg) {
	a, ok := f.response(msg)
	if !ok {
		return
	}
	for _, w := range a.Commands {
		f.carryOut(strings.Split(msg.Subject, ".")[2], w)
	}
}

func (f *fleet) pushed(msg *nats.Msg) {
	var p gate.Push
	if json.Unmarshal(msg.Data, &p) != nil {
		return
	}
	host := strings.Split(msg.Subject, ".")[3]
	if p.Hint { // A prepare of its environment.
		f.ask(host)
		return
	}
	if p.Command == nil {
		return
	}
	n := f.commands.Add(1)
	select {
	case f.command <- time.Now():
	default:
	}
	if most := f.most.Load(); most > 0 && n > most {
		return
	}
	f.carryOut(host, *p.Command)
}

// taken notes that the site has taken the reply of a host.
func (f *fleet) taken(msg *nats.Msg) {
	if _, ok := f.response(msg); !ok {
		return
	}
	host := strings.Split(msg.Subject, ".")[2]
	f.mu.Lock()
	f.answered[host] = f.sent[host]
	f.mu.Unlock()
	f.kept.Add(1)
}

// carryOut answers a command, once.
func (f *fleet) carryOut(host string, w gate.Command) {
	c, err := message.DecodeCommand(w.Body)
	f.mu.Lock()
	old := f.sent[host] >= w.Seq
	if !old {
		f.sent[host] = w.Seq
	}
	f.mu.Unlock()
	if err != nil || old {
		return
	}
	run := w.Run
	if c.Action == message.Prepare {
		run = w.Seq
		f.told.Add(1)
	}
	verb := fmt.Sprintf("reply.%d.%s", run, c.Action)
	body := message.Reply{Action: c.Action, Result: message.Result{Outcome: message.Done}}.Encode()
	f.call(f.subjects.Inbox(host)+".reply", f.subjects.Call(host, verb), body)
}

func benchNames(hosts int) []string {
	names := make([]string, hosts)
	for i := range names {
		names[i] = fmt.Sprintf("h%05d", i)
	}
	return names
}

func openBench(b *testing.B, dir string) *Site {
	b.Helper()
	s, err := Open(b.Context(), Options{
		Name: "bench", Zone: time.UTC, Dir: dir, Tenants: []string{benchTenant}, API: Endpoint{Listen: "127.0.0.1:0"},
		Holder: "a benchmark", Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// gather waits until all of the fleet are online.
func (f *fleet) gather(s *Site) {
	f.b.Helper()
	controller := s.Controller(benchTenant)
	for {
		hosts, err := controller.Hosts(f.b.Context(), v1.HostFilter{})
		if err != nil {
			f.b.Fatal(err)
		}
		online := 0
		for _, h := range hosts {
			if h.Online {
				online++
			}
		}
		if online == len(f.names) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// awaitKept waits until the site has written all hosts, which takes it some seconds when it gets to
// know them: a site that is stopped before writes them while it stops.
func (f *fleet) awaitKept(s *Site) {
	f.b.Helper()
	for {
		hosts, err := s.store.Hosts(f.b.Context(), benchTenant)
		if err != nil {
			f.b.Fatal(err)
		}
		if len(hosts) == len(f.names) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// startRun starts a run of all hosts at once.
func startRun(b *testing.B, s *Site) v1.Run {
	b.Helper()
	r, err := s.Controller(benchTenant).Start(b.Context(), "bench", v1.Start{OverrideWindow: true, Reason: "a benchmark"})
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// ended waits until no run is under way.
func ended(b *testing.B, s *Site) {
	b.Helper()
	for {
		id, err := s.Controller(benchTenant).Current(b.Context())
		if err == nil && id == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func until(counter *atomic.Int64, number int64) {
	for counter.Load() < number {
		time.Sleep(time.Millisecond)
	}
}

// configure gives the tenant its configuration and its rollout.
func configure(b *testing.B, s *Site, rollout v1.Rollout) {
	b.Helper()
	kept := s.Store()
	config := v1.Kept[v1.OSUpgrade]{Value: v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: benchApplication}}}}
	if _, err := kept.PutConfig(b.Context(), benchTenant, config, none); err != nil {
		b.Fatal(err)
	}
	revision, err := kept.PutRollout(b.Context(), benchTenant, v1.Kept[v1.Rollout]{Value: rollout}, none)
	if err != nil {
		b.Fatal(err)
	}
	controller := s.Controller(benchTenant)
	if err := controller.Seen(b.Context(), 1); err != nil {
		b.Fatal(err)
	}
	if err := controller.Seen(b.Context(), revision.Number); err != nil {
		b.Fatal(err)
	}
}
