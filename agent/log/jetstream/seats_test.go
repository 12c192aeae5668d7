package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// displace gives a host's seat to another worker. The holder may still be
// heard of for a moment.
func (s *site) displace(t *testing.T, station *HostLog, worker string) {
	t.Helper()
	for {
		s.silence(station.host)
		err := station.Seat(t.Context(), worker)
		if err == nil {
			return
		}
		if !errors.Is(err, log.ErrTaken) {
			t.Fatalf("the seat of one that is silent: %v", err)
		}
	}
}

// silence has the holder of a host's seat as if it had not been heard of for
// so long that another may have it.
func (s *site) silence(host string) {
	seats := &s.log.gate.Load().seats
	seats.mu.Lock()
	defer seats.mu.Unlock()
	seats.begun = seats.begun.Add(-message.Silence)
	seats.byHost[host].heard = seats.begun
}

// TestSeat checks that one worker works for a host (AV-15): the first, until it
// is silent.
func TestSeat(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first, second := s.station("h01"), s.station("h01")
	if err := first.Seat(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	err := second.Seat(t.Context(), "two")
	if !errors.Is(err, log.ErrTaken) || !strings.Contains(err.Error(), "worker one ") || !strings.Contains(err.Error(), "since 20") {
		t.Fatalf("the second worker gets %v", err)
	}
	if err := first.Seat(t.Context(), "one"); err != nil {
		t.Errorf("the holder asks again and gets %v", err)
	}
	refusedAll(t, second)
	if _, err := first.Newest(t.Context()); err != nil {
		t.Errorf("the holder gets %v", err)
	}
	if err := s.station("h02").Seat(t.Context(), "two"); err != nil {
		t.Errorf("the seat of another host: %v", err)
	}
	ended := s.listening(t, first)
	s.displace(t, second, "two")
	if err := <-ended; !errors.Is(err, log.ErrTaken) {
		t.Errorf("the commands of one that lost its seat end with %v", err)
	}
	refusedAll(t, first)
	if _, err := second.Newest(t.Context()); err != nil {
		t.Errorf("the new holder gets %v", err)
	}
	if err := first.Seat(t.Context(), "one"); !errors.Is(err, log.ErrTaken) {
		t.Errorf("the old holder gets %v", err)
	}
}

// listening has a station listen for commands, and returns where the end of
// that is told once it does.
func (s *site) listening(t *testing.T, station *HostLog) <-chan error {
	t.Helper()
	if _, err := s.log.Append(t.Context(), prepare("h01"), 0); err != nil {
		t.Fatal(err)
	}
	ended, begun := make(chan error, 1), make(chan struct{})
	once := sync.OnceFunc(func() { close(begun) })
	go func() { ended <- station.Commands(t.Context(), func(message.Record) { once() }) }()
	select {
	case <-begun:
	case err := <-ended:
		t.Fatalf("it does not begin to listen: %v", err)
	}
	return ended
}

// refusedAll checks that a worker without the seat is refused whatever it
// calls.
func refusedAll(t *testing.T, station *HostLog) {
	t.Helper()
	for name, call := range map[string]func() error{
		"newest":        func() error { _, err := station.Newest(t.Context()); return err },
		"commands":      func() error { return station.Commands(t.Context(), func(message.Record) {}) },
		"versions":      func() error { return station.Versions(t.Context(), []byte(`{}`)) },
		"last versions": func() error { _, err := station.LastVersions(t.Context()); return err },
		"reply": func() error {
			return station.Reply(t.Context(), 1, message.Reply{Action: message.Prepare, Result: "done"})
		},
	} {
		if err := call(); !errors.Is(err, log.ErrTaken) {
			t.Errorf("%s of a worker without the seat: %v", name, err)
		}
	}
}

// TestSeatOfNobody checks that a worker needs an identity that a heartbeat can
// carry.
func TestSeatOfNobody(t *testing.T) {
	t.Parallel()
	station := newSite(t).station("h01")
	for _, worker := range []string{"", strings.Repeat("x", maxWorker+1), "a\x1b[2Jb"} {
		if err := station.Seat(t.Context(), worker); err == nil {
			t.Errorf("%q gets a seat", worker)
		}
	}
}

// TestSeatOutlivesTheGate checks that a gate which comes second knows who has
// the seat, and does not count as silence what it was not there to hear.
func TestSeatOutlivesTheGate(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if err := s.station("h01").Seat(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	s.silence("h01")
	second := NewGate(s.log, s.kept)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	loaded := make(chan struct{})
	go func() { ended <- second.seats.serve(ctx, func() { close(loaded) }) }()
	<-loaded
	if a := second.seats.ask(t.Context(), "h01", "two", ""); !a.Taken {
		t.Errorf("the answer is %+v", a)
	}
	if a := second.seats.ask(t.Context(), "h01", "one", ""); a.Seat == nil || a.Seat.Worker != "one" || a.Seat.Since.IsZero() {
		t.Errorf("the answer to the holder is %+v", a)
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestSeatForOneOfMany checks that of many who ask at once one gets the seat.
func TestSeatForOneOfMany(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const workers = 8
	results := make(chan error, workers)
	for i := range workers {
		station := s.station("h01")
		go func() { results <- station.Seat(t.Context(), fmt.Sprintf("worker-%d", i)) }()
	}
	granted := 0
	for range workers {
		switch err := <-results; {
		case err == nil:
			granted++
		case !errors.Is(err, log.ErrTaken):
			t.Error(err)
		}
	}
	if granted != 1 {
		t.Errorf("%d workers have the seat", granted)
	}
}

// TestHeartbeatWithoutSeat checks that a worker without the seat does not make
// its host alive, and is told.
func TestHeartbeatWithoutSeat(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first, second := s.station("h01"), s.station("h01")
	if err := first.Seat(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	s.displace(t, second, "two")
	heard := make(chan string, 10)
	s.listen(t, log.Listener{Alive: func(_ string, a message.Alive) { heard <- a.Worker }})
	told := s.hear(t, s.log.subjects.SeatNews("h01"))
	for _, worker := range []string{"one", "", "two"} {
		if err := second.Alive(message.Alive{Application: "a", Worker: worker}); err != nil {
			t.Fatal(err)
		}
	}
	if worker := <-heard; worker != "two" {
		t.Errorf("worker %q is heard", worker)
	}
	msg, err := told.NextMsgWithContext(t.Context())
	if err != nil || !strings.Contains(string(msg.Data), `"worker":"two"`) {
		t.Errorf("its workers are told %v, %v", msg, err)
	}
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

// listen delivers what hosts tell, from when it returns.
func (s *site) listen(t *testing.T, to log.Listener) {
	t.Helper()
	asked := s.hear(t, s.log.subjects.Ask())
	go func() { _ = s.log.Listen(t.Context(), to) }()
	if _, err := asked.NextMsgWithContext(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestSeatOfDeletedHost checks that who deletes a host deletes its seat, and
// that its worker can have it again.
func TestSeatOfDeletedHost(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	station := s.station("h.01")
	if err := station.Seat(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	ended := s.listening(t, station)
	if err := s.kept.DeleteHost(t.Context(), "acme", log.Token("h.01")); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, log.ErrTaken) {
		t.Errorf("its commands end with %v", err)
	}
	if err := station.Seat(t.Context(), "one"); err != nil {
		t.Errorf("it asks again and gets %v", err)
	}
	if _, err := station.Newest(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestSeatNewsOfBefore checks that what was said before a worker got its seat
// does not take it away.
func TestSeatNewsOfBefore(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	station := s.station("h01")
	station.seat.Store(&held{Worker: "one", Since: time.Now(), Number: 7})
	for body, lost := range map[string]bool{
		`{"worker":"two","number":6}`: false, `{"worker":"one","number":9}`: false, `{`: false, `{"worker":"two","number":8}`: true,
	} {
		station.other.Store(nil)
		station.displaced(natsMsg(s.log.subjects.SeatNews("h01"), body))
		if got := station.taken() != nil; got != lost {
			t.Errorf("after %s the seat is lost: %v", body, got)
		}
	}
}

// TestSeatNewsMeanwhile checks the same of news that is read while the worker
// gets its seat.
func TestSeatNewsMeanwhile(t *testing.T) {
	t.Parallel()
	station := &HostLog{}
	news := natsMsg("", `{"worker":"two","number":8}`)
	for range 2_000 {
		station.granted(&held{Worker: "one", Number: 7})
		read := make(chan struct{})
		go func() {
			station.displaced(news)
			close(read)
		}()
		station.granted(&held{Worker: "one", Number: 9})
		<-read
		if err := station.taken(); err != nil {
			t.Fatalf("the seat that came after is lost: %v", err)
		}
	}
}

// TestSeatOfOneWhoWasNotTold checks that a worker which takes itself for the
// holder is refused by the gate: word that it is not may be lost.
func TestSeatOfOneWhoWasNotTold(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first, second := s.station("h01"), s.station("h01")
	if err := first.Seat(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	second.seat.Store(&held{Worker: "two", Number: 1})
	if err := second.Versions(t.Context(), []byte(`{}`)); !errors.Is(err, log.ErrTaken) {
		t.Errorf("versions of a worker without the seat: %v", err)
	}
	reply := message.Reply{Action: message.Prepare, Result: message.Done}
	if err := second.Reply(t.Context(), 1, reply); !errors.Is(err, log.ErrTaken) {
		t.Errorf("reply of a worker without the seat: %v", err)
	}
}
