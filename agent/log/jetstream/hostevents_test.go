package jetstream

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// again does something until something else has happened.
func again[T any](t *testing.T, do func() error, happened <-chan T) T {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := do(); err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-happened:
			return got
		case <-tick.C:
		}
	}
}

// send sends a task to the process that holds the lease of its host, if one does.
func send(l *Log, t message.Task) error {
	if addressed, held := l.Addressed(t); held {
		return l.Send(addressed)
	}
	return nil
}

// TestTask checks that a task reaches its host and no other, and its outcome
// whoever pinged.
func TestTask(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	outcomes := make(chan message.Outcome, 100)
	s.listen(t, log.Listener{Outcome: func(_ string, o message.Outcome) { outcomes <- o }})
	h, other := s.host("h01"), s.host("h02")
	want := message.Task{Run: 3, Kind: message.BeforeHost, Host: "h01", Attempt: 2, Checks: []rollout.Check{{Name: "c", Type: rollout.TCP}}}
	acquire(t, h, "one")
	acquire(t, other, "two")
	tasks := make(chan message.Task, 100)
	go func() { _ = h.Tasks(t.Context(), func(task message.Task) { tasks <- task }) }()
	go func() {
		_ = other.Tasks(t.Context(), func(task message.Task) { t.Errorf("h02 gets %+v", task) })
	}()
	got := again(t, func() error { return send(s.log, want) }, tasks)
	if got.Key() != want.Key() || len(got.Checks) != 1 || got.Incarnation != h.Incarnation {
		t.Errorf("the task comes as %+v", got)
	}
	if err := h.Outcome(got.Outcome(true, "well")); err != nil {
		t.Fatal(err)
	}
	if o := <-outcomes; o.Key() != want.Key() || !o.OK || o.Text != "well" {
		t.Errorf("the outcome comes as %+v", o)
	}
}

// TestLateTask checks that a task comes to no process that was started after it was sent: that
// one does not remember what it has done since (seed 6015651).
func TestLateTask(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	before, h := s.host("h01"), s.host("h01")
	acquire(t, before, "one")
	task := message.Task{Run: 3, Kind: message.Drain, Host: "h01"}
	late := make(chan []byte, 100)
	sub, err := s.log.nats.Subscribe(s.log.subjects.Task("h01"), func(msg *nats.Msg) { late <- msg.Data })
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := send(s.log, task); err != nil {
		t.Fatal(err)
	}
	acquire(t, h, "one")
	tasks := make(chan message.Task, 100)
	go func() { _ = h.Tasks(t.Context(), func(task message.Task) { tasks <- task }) }()
	task.Attempt = 1
	again(t, func() error { return send(s.log, task) }, tasks)
	h.Tasked(<-late)
	for len(tasks) > 0 {
		if got := <-tasks; got.Attempt == 0 {
			t.Errorf("the process that was started later gets %+v", got)
		}
	}
}

// TestForgedOutcome checks that an outcome is dropped and counted if it is about
// another host or cannot be read.
func TestForgedOutcome(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	outcomes := make(chan message.Outcome, 100)
	s.listen(t, log.Listener{Outcome: func(_ string, o message.Outcome) { outcomes <- o }})
	h := s.host("h01")
	mine := message.Outcome{Run: 1, Kind: message.Drain, Host: "h01"}
	forged, fleet := mine, message.Outcome{Run: 1, Kind: message.Fleet}
	forged.Host = "h02"
	for _, body := range [][]byte{forged.Encode(), fleet.Encode(), []byte("{"), mine.Encode()} {
		if err := h.conn.nats.Publish(s.log.subjects.Outcome("h01"), body); err != nil {
			t.Fatal(err)
		}
	}
	if o := <-outcomes; o.Key() != mine.Key() {
		t.Errorf("the first outcome is %+v", o)
	}
	if n := s.log.Dropped(); n != 3 {
		t.Errorf("%d are counted as dropped", n)
	}
}

// TestTaskWithoutLease checks that a worker that has lost its lease gets no task
// and sends no outcome.
func TestTaskWithoutLease(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first, second := s.host("h01"), s.host("h01")
	acquire(t, first, "one")
	firsts, seconds := make(chan message.Task, 100), make(chan message.Task, 100)
	go func() { _ = first.Tasks(t.Context(), func(task message.Task) { firsts <- task }) }()
	task := message.Task{Run: 1, Kind: message.Drain, Host: "h01"}
	again(t, func() error { return send(s.log, task) }, firsts)
	ended := s.listening(t, first)
	s.grant(second, "two")
	if err := <-ended; !errors.Is(err, log.ErrTaken) {
		t.Errorf("its commands end with %v", err)
	}
	acquire(t, second, "two")
	task.Attempt = 1
	go func() { _ = second.Tasks(t.Context(), func(task message.Task) { seconds <- task }) }()
	again(t, func() error { return send(s.log, task) }, seconds)
	if err := first.conn.nats.Flush(); err != nil {
		t.Fatal(err)
	}
	for len(firsts) > 0 {
		if got := <-firsts; got.Attempt == 1 {
			t.Error("a worker without the lease gets a task")
		}
	}
	if err := first.Outcome(task.Outcome(true, "")); err == nil {
		t.Error("a worker without the lease sends an outcome")
	}
}

// TestPings checks that a host is pinged by the controller, and by itself after a
// lost connection.
func TestPings(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	h := s.host("h01")
	pinged := make(chan struct{}, 1000)
	go func() { _ = h.Pings(t.Context(), func() { pinged <- struct{}{} }) }()
	<-pinged
	// There is no controller here yet that asks.
	again(t, h.conn.nats.ForceReconnect, pinged)
	again(t, func() error { return s.agent.Publish(s.log.subjects.Ping(), nil) }, pinged)
}

// TestPingedBefore checks that a host which said that it is alive before anybody
// heard it, and did not listen yet when it was pinged, is heard all the same.
func TestPingedBefore(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	h := s.host("h01")
	alive := func() {
		if err := h.Alive(message.Alive{Application: "app"}); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	}
	alive()
	if err := h.conn.nats.Flush(); err != nil {
		t.Fatal(err)
	}
	heard := make(chan string, 100)
	s.listen(t, log.Listener{Alive: func(host string, _ message.Alive) { heard <- host }})
	go func() { _ = h.Pings(t.Context(), alive) }()
	select {
	case <-heard:
	case <-time.After(message.Heartbeat):
		t.Error("it is not heard before its next heartbeat")
	}
}

// TestAsk checks that the request for a report reaches its host and no other.
func TestAsk(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	h, other := s.host("h01"), s.host("h02")
	acquire(t, h, "one")
	acquire(t, other, "two")
	asks := make(chan log.Ask, 100)
	go func() { _ = h.Asked(t.Context(), func(a log.Ask) { asks <- a }) }()
	go func() { _ = other.Asked(t.Context(), func(a log.Ask) { t.Errorf("h02 is asked for %+v", a) }) }()
	pin := release.Release{Data: []byte(`{"edition":1}`)}.Pin("nov")
	for _, want := range []log.Ask{
		{Kind: report.Offer, Within: 3 * time.Second}, {Kind: report.Offer, Within: time.Minute, ByRelease: true, Release: &pin}, {Kind: report.Offer, ByRelease: true},
	} {
		for got := (log.Ask{}); !reflect.DeepEqual(got, want); { // An earlier one may come again.
			got = again(t, func() error { return s.log.Ask("h01", want) }, asks)
		}
	}
}
