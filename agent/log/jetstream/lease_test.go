package jetstream

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/gate"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
)

// acquire has a worker get the lease.
func acquire(t *testing.T, h *HostLog, worker string) (epoch uint64) {
	t.Helper()
	epoch, err := h.Lease(t.Context(), worker)
	if err != nil {
		t.Fatalf("worker %s asks for the lease and gets %v", worker, err)
	}
	return epoch
}

// grant gives a host's lease to a process of a worker, as a gate does when its
// holder is silent.
func (s *site) grant(h *HostLog, worker string) {
	s.t.Helper()
	key := log.Token(h.Host)
	body, revision, err := s.kept.Lease(s.t.Context(), "acme", key)
	if err != nil {
		s.t.Fatal(err)
	}
	var old gate.Lease
	if err := format.Lease.Decode(body, &old); err != nil {
		s.t.Fatal(err)
	}
	next, err := format.Lease.Encode(gate.Lease{Worker: worker, Incarnation: h.Incarnation, Epoch: old.Epoch + 1, Since: time.Now()})
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.kept.PutLease(s.t.Context(), "acme", key, next, revision); err != nil {
		s.t.Fatal(err)
	}
}

// listening has a host listen for commands, and returns where the end of that is
// told once it does.
func (s *site) listening(t *testing.T, h *HostLog) <-chan error {
	t.Helper()
	if _, err := s.log.Append(t.Context(), prepare("h01"), 0); err != nil {
		t.Fatal(err)
	}
	ended, begun := make(chan error, 1), make(chan struct{}, 100)
	go func() { ended <- h.Commands(t.Context(), func(message.Record) { begun <- struct{}{} }) }()
	select {
	case <-begun:
	case err := <-ended:
		t.Fatalf("it does not begin to listen: %v", err)
	}
	return ended
}

// hear subscribes to a subject. When it returns the server knows of it, so that
// nothing is missed that comes over another connection.
func (s *site) hear(t *testing.T, subject string) *nats.Subscription {
	t.Helper()
	sub, err := s.agent.SubscribeSync(subject)
	if err == nil {
		err = s.agent.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	return sub
}

// listen delivers the telemetry of hosts, from when it returns.
func (s *site) listen(t *testing.T, to log.Listener) {
	t.Helper()
	pinged := s.hear(t, s.log.subjects.Ping())
	go func() { _ = s.log.Listen(t.Context(), to) }()
	if _, err := pinged.NextMsgWithContext(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// refusedAll checks that a worker without the lease is refused whatever it calls.
func refusedAll(t *testing.T, h *HostLog) {
	t.Helper()
	for name, call := range map[string]func() error{
		"newest":        func() error { _, err := h.Newest(t.Context()); return err },
		"commands":      func() error { return h.Commands(t.Context(), func(message.Record) {}) },
		"versions":      func() error { return h.Report(t.Context(), report.Versions.Of([]byte(`{}`))) },
		"last versions": func() error { _, err := h.LastReport(t.Context(), report.Versions); return err },
		"reply": func() error {
			return h.Reply(t.Context(), 1, message.Reply{Action: message.Prepare, Result: message.ResultOf("done")})
		},
	} {
		if err := call(); !errors.Is(err, log.ErrTaken) {
			t.Errorf("%s of a worker without the lease: %v", name, err)
		}
	}
}

// TestLease checks over NATS that one worker works for a host, and that
// the worker that loses the lease is told.
func TestLease(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first, second := s.host("h01"), s.host("h01")
	epoch := acquire(t, first, "one")
	_, err := second.Lease(t.Context(), "two")
	if !errors.Is(err, log.ErrTaken) || !strings.Contains(err.Error(), "worker one ") || !strings.Contains(err.Error(), "since 20") {
		t.Fatalf("the second worker gets %v", err)
	}
	if again := acquire(t, first, "one"); again != epoch {
		t.Errorf("the holder asks again and gets epoch %d after %d", again, epoch)
	}
	refusedAll(t, second)
	acquire(t, s.host("h02"), "two")
	ended := s.listening(t, first)
	s.grant(second, "two")
	if err := <-ended; !errors.Is(err, log.ErrTaken) {
		t.Errorf("the commands of a worker that lost its lease end with %v", err)
	}
	refusedAll(t, first)
	if got := acquire(t, second, "two"); got <= epoch {
		t.Errorf("the epoch of the next worker is %d after %d", got, epoch)
	}
	if _, err := second.Newest(t.Context()); err != nil {
		t.Errorf("the new holder gets %v", err)
	}
}

// TestGiveBack checks over NATS that a lease that was given back is there for the
// next worker at once, that a worker that waits for it is told, and that the
// worker keeps its epoch if nobody else held the lease.
func TestGiveBack(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first, second := s.host("h01"), s.host("h01")
	epoch := acquire(t, first, "one")
	if _, err := second.Lease(t.Context(), "two"); !errors.Is(err, log.ErrTaken) {
		t.Fatalf("the second worker gets %v", err)
	}
	if err := first.GiveBack(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-second.Vacated()
	refusedAll(t, first)
	again := s.host("h01")
	if got := acquire(t, again, "one"); got != epoch {
		t.Errorf("nobody else held the lease, and the epoch is %d after %d", got, epoch)
	}
	if err := again.GiveBack(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := acquire(t, second, "two"); got <= epoch {
		t.Errorf("the next worker's epoch is %d after %d", got, epoch)
	}
}

// TestGiveBackForAnotherHost checks that a host may not even call where another
// host gives its lease back.
func TestGiveBackForAnotherHost(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first := s.host("h01")
	acquire(t, first, "one")
	nc := s.connect("h02")
	for _, reply := range []string{s.log.subjects.Inbox("h01") + ".x", s.log.subjects.Inbox("h02") + ".x"} {
		msg := nats.NewMsg(s.log.subjects.Call("h01", "give-back.1"))
		msg.Header.Set(headerWorker, "one")
		msg.Header.Set(headerIncarnation, first.Incarnation)
		msg.Reply = reply
		if err := nc.PublishMsg(msg); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Newest(t.Context()); err != nil {
		t.Errorf("its worker calls and gets %v", err)
	}
}

// TestGiveBackWithoutSite checks that a worker does not wait for a site that is
// not there, and that one without a lease has none to give back.
func TestGiveBackWithoutSite(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	h := s.host("h01")
	if err := h.GiveBack(t.Context()); err != nil {
		t.Errorf("a worker without a lease gets %v", err)
	}
	acquire(t, h, "one")
	h.Close()
	begun := time.Now()
	if err := h.GiveBack(t.Context()); err == nil || !strings.Contains(err.Error(), "not connected") {
		t.Errorf("the error is %v", err)
	}
	if waited := time.Since(begun); waited > message.Heartbeat/10 {
		t.Errorf("it waited for %s", waited)
	}
}

// TestGiveBackToEndingSite checks that a worker does not wait for the answer of a site
// that ends while it is called.
func TestGiveBackToEndingSite(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	h := s.host("h01")
	acquire(t, h, "one")
	s.receiver.Close()
	ending, err := s.server.Receive("acme")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ending.Close)
	lose := func(*nats.Msg) { _ = h.conn.nats.ForceReconnect() }
	if _, err := ending.Subscribe(h.conn.subjects.Call("h01", ">"), lose); err != nil {
		t.Fatal(err)
	}
	if err := ending.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := h.GiveBack(t.Context()); !errors.Is(err, errLost) {
		t.Errorf("the error is %v", err)
	}
}

// TestLeaseOfDeletedHost checks that the deletion of a host deletes its lease, and
// that its worker can have it again, in a new epoch.
func TestLeaseOfDeletedHost(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	h := s.host("h.01")
	epoch := acquire(t, h, "one")
	ended := s.listening(t, h)
	if err := s.kept.DeleteHost(t.Context(), "acme", log.Token("h.01")); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, log.ErrTaken) {
		t.Errorf("its commands end with %v", err)
	}
	if got := acquire(t, h, "one"); got <= epoch {
		t.Errorf("it asks again and gets epoch %d after %d", got, epoch)
	}
	if _, err := h.Newest(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestClonedMachine checks over NATS that of two machines of which one is a clone
// of the other, worker and key and all, one works and the other stands by and
// says why.
func TestClonedMachine(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	machine, clone := s.host("h01"), s.host("h01")
	acquire(t, machine, "one")
	ended := s.listening(t, machine)
	acquire(t, clone, "one")
	const why = "one of the two is a clone of the other"
	if err := <-ended; !errors.Is(err, log.ErrTaken) || !strings.Contains(err.Error(), why) {
		t.Errorf("the commands of the first end with %v", err)
	}
	if _, err := machine.Lease(t.Context(), "one"); !errors.Is(err, log.ErrTaken) || !strings.Contains(err.Error(), why) {
		t.Errorf("it asks again and gets %v", err)
	}
	heard := make(chan string, 10)
	s.listen(t, log.Listener{Alive: func(_ string, a message.Alive) { heard <- a.AgentVersion }})
	for version, h := range map[string]*HostLog{"of the first": machine, "of the second": clone} {
		if err := h.Alive(message.Alive{Application: "a", Worker: "one", AgentVersion: version}); err != nil {
			t.Fatal(err)
		}
		if err := h.conn.nats.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if version := <-heard; version != "of the second" || len(heard) != 0 {
		t.Errorf("the heartbeat %s is heard", version)
	}
}

// TestHeartbeatWithoutLease checks that a worker without the lease does not make
// its host alive, and is told who holds it.
func TestHeartbeatWithoutLease(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	holder := s.host("h01")
	acquire(t, holder, "two")
	heard := make(chan string, 10)
	s.listen(t, log.Listener{Alive: func(_ string, a message.Alive) { heard <- a.Worker }})
	pushed := s.hear(t, s.log.subjects.Push("h01"))
	for _, worker := range []string{"one", "", "two"} {
		if err := holder.Alive(message.Alive{Application: "a", Worker: worker}); err != nil {
			t.Fatal(err)
		}
	}
	if worker := <-heard; worker != "two" {
		t.Errorf("worker %q is heard", worker)
	}
	msg, err := pushed.NextMsgWithContext(t.Context())
	if err != nil || !strings.Contains(string(msg.Data), `"worker":"two"`) {
		t.Errorf("its workers are told %v, %v", msg, err)
	}
}

// TestNewRun checks that a prepare reaches a host that listens, that a command
// and a reply bear their epoch, that a host can say beside its reply that it does
// not know what it did, and that the commands of the run before are not sent any
// more.
func TestNewRun(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	h := s.host("h01")
	epoch := acquire(t, h, "one")
	got := make(chan message.Record, 10)
	go func() {
		defer close(got)
		_ = h.Commands(t.Context(), func(r message.Record) { got <- r })
	}()
	first, err := s.log.Append(t.Context(), prepare("h01"), 0)
	if err != nil {
		t.Fatal(err)
	}
	comes(t, got, first)
	if err := h.Reply(t.Context(), first, message.Reply{Action: message.Prepare, Result: message.NotDone(message.Unknown, message.Space, "no journal")}); err != nil {
		t.Fatal(err)
	}
	upgrade, err := s.log.Append(t.Context(), message.Record{Kind: message.CommandHost, Host: "h01", Run: first, Epoch: epoch, Checks: true, Body: []byte(`{}`)}, first)
	if err != nil {
		t.Fatal(err)
	}
	if r := comes(t, got, upgrade); r.Epoch != epoch || !r.Checks {
		t.Errorf("the command comes with epoch %d, not %d, and checks %t", r.Epoch, epoch, r.Checks)
	}
	if err := s.log.Read(t.Context(), first+1, upgrade, func(r message.Record) {
		if r.Epoch != epoch {
			t.Errorf("record %d reads with epoch %d, not %d", r.Seq, r.Epoch, epoch)
		}
		if isReply := r.Kind == message.ReplyRecord; r.Checks == isReply || (r.Outcome == message.Unknown) != isReply || (r.Class == message.Space) != isReply || strings.Contains(string(r.Body), "unknown") {
			t.Errorf("record %d reads as %s, checks %t, outcome %q, class %q", r.Seq, r.Body, r.Checks, r.Outcome, r.Class)
		}
	}); err != nil {
		t.Fatal(err)
	}
	second, err := s.log.Append(t.Context(), prepare("h01"), upgrade)
	if err != nil {
		t.Fatal(err)
	}
	comes(t, got, second)
	newest, err := h.Newest(t.Context())
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
func comes(t *testing.T, got <-chan message.Record, seq uint64) message.Record {
	t.Helper()
	for r := range got {
		if r.Seq == seq {
			return r
		}
		if r.Seq > seq {
			t.Fatalf("record %d comes before record %d", r.Seq, seq)
		}
	}
	t.Fatalf("record %d does not come any more", seq)
	return message.Record{}
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
		h := s.host(string(rune('a' + i)))
		for range calls {
			go func() {
				_, err := h.Newest(t.Context())
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

// slowKeeper answers the calls for versions once so many wait for them, or one has waited
// for as long as a gate works on a call.
type slowKeeper struct {
	*store.Store
	all     int32
	waiting atomic.Int32
	once    sync.Once
	asked   chan struct{}
}

func (k *slowKeeper) Report(ctx context.Context, _, _ string, _ report.ID) (report.Kept, error) {
	if k.waiting.Add(1) == k.all {
		k.once.Do(func() { close(k.asked) })
	}
	select {
	case <-k.asked:
	case <-ctx.Done():
		k.once.Do(func() { close(k.asked) })
	}
	return report.Kept{}, ctx.Err()
}

// TestCallsOfTwoProcesses checks that no call is dropped of a host whose process has all its
// calls open while those of the process before it are open still. A dropped call is repeated
// after ten seconds: a reply was sent before the versions that it had to wait for.
func TestCallsOfTwoProcesses(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	keeper := &slowKeeper{Store: openStore(t, s.agent), all: 2 * gate.OpenCalls, asked: make(chan struct{})}
	go func() { _ = NewGate(s.log, keeper).Serve(t.Context()) }()
	before, h := s.host("h01"), s.host("h01")
	ended := make(chan error, 2*gate.OpenCalls)
	for range gate.OpenCalls {
		for _, process := range []*HostLog{before, h} {
			go func() {
				_, err := process.LastReport(t.Context(), report.Versions)
				ended <- err
			}()
		}
	}
	for range 2 * gate.OpenCalls {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if n := keeper.waiting.Load(); n != 2*gate.OpenCalls {
		t.Errorf("the gate got %d calls, and %d were made", n, 2*gate.OpenCalls)
	}
}

// TestCallThatWasGivenUp checks that a gate with too much to do does not carry out a call for
// whose answer its host waits no longer: that one calls again.
func TestCallThatWasGivenUp(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	keeper := &slowKeeper{Store: openStore(t, s.agent), all: 1, asked: make(chan struct{})}
	g := NewGate(s.log, keeper)
	c := &call{host: "h01", request: gate.Request{Verb: []string{"last-report", "versions"}}, inbox: "nobody", at: time.Now()}
	for range 2 {
		g.answer(t.Context(), c)
		c.at = c.at.Add(-2*gate.CallTimeout - time.Second)
	}
	if n := keeper.waiting.Load(); n != 1 {
		t.Errorf("%d calls are carried out, not only the one that its host waited for", n)
	}
}
