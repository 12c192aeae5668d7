package jetstream

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// TestLeave checks that a seat that is given back is there for the next worker
// at once, that a worker that waits for it is told, and that one that comes
// back learns whether another one had it meanwhile (AV-15).
func TestLeave(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first, second := s.station("h01"), s.station("h01")
	sit(t, first, "one")
	tenure := first.Tenure()
	if err := second.Seat(t.Context(), "two"); !errors.Is(err, log.ErrTaken) {
		t.Fatalf("the second worker gets %v", err)
	}
	leave(t, first)
	<-second.Left()
	refusedAll(t, first)
	again := s.station("h01")
	sit(t, again, "one")
	if again.Tenure() != tenure {
		t.Errorf("nobody else had the seat, and the tenure is %d after %d", again.Tenure(), tenure)
	}
	leave(t, again)
	sit(t, second, "two")
	if second.Tenure() <= tenure {
		t.Errorf("the next worker's tenure is %d after %d", second.Tenure(), tenure)
	}
	leave(t, second)
	sit(t, again, "one")
	if again.Tenure() <= second.Tenure() {
		t.Errorf("the tenure of one that was away is %d after %d", again.Tenure(), second.Tenure())
	}
}

// TestLeaveOutlivesTheGate checks that a gate which comes second knows that a
// seat was given back, and by whom.
func TestLeaveOutlivesTheGate(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first := s.station("h01")
	sit(t, first, "one")
	tenure := first.Tenure()
	leave(t, first)
	second := NewGate(s.log, s.kept)
	loaded := make(chan struct{})
	go func() { _ = second.seats.serve(t.Context(), func() { close(loaded) }) }()
	<-loaded
	if a := second.seats.ask(t.Context(), "h01", "one", ""); a.Seat == nil || a.Seat.tenure() != tenure {
		t.Errorf("the answer is %+v, not the seat with tenure %d", a, tenure)
	}
	at := second.seats.byHost["h01"].Number
	for _, wrong := range []answer{
		second.seats.leave(t.Context(), "h01", "one", "", fmt.Sprint(at-1)),
		second.seats.leave(t.Context(), "h01", "one", "", fmt.Sprint(tenure)),
		second.seats.leave(t.Context(), "h01", "one", "", ""),
		second.seats.leave(t.Context(), "h01", "two", "", fmt.Sprint(at)),
	} {
		if !wrong.Refused {
			t.Errorf("a seat that is another one by now is given back: %+v", wrong)
		}
	}
	number := fmt.Sprint(at)
	if a := second.seats.leave(t.Context(), "h01", "one", "not known here", number); a.Error != "" {
		t.Errorf("a worker that did not ask this gate gives its seat back: %+v", a)
	}
	if a := second.seats.ask(t.Context(), "h01", "two", ""); a.Seat == nil {
		t.Errorf("the answer to the next is %+v", a)
	}
}

// TestLateLeave checks that a seat is not given back by a call that is delayed,
// sent again, of another worker or of another host.
func TestLateLeave(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]func(t *testing.T, s *site, first *HostLog) *HostLog{
		"its worker was started anew": func(t *testing.T, s *site, first *HostLog) *HostLog {
			sit(t, s.station("h01"), "one")
			return first
		},
		"sent again after it was given back and asked for": func(t *testing.T, s *site, first *HostLog) *HostLog {
			leave(t, first)
			sit(t, s.station("h01"), "one")
			return first
		},
		"sent again after another had it": func(t *testing.T, s *site, first *HostLog) *HostLog {
			leave(t, first)
			sit(t, s.station("h01"), "two")
			return first
		},
		"it was lost, and won again": func(t *testing.T, s *site, first *HostLog) *HostLog {
			second := s.station("h01")
			s.displace(t, second, "rival")
			leave(t, second)
			sit(t, s.station("h01"), "one")
			return first
		},
		"of another worker with the right number": func(_ *testing.T, s *site, first *HostLog) *HostLog {
			rival := s.station("h01")
			rival.seat.Store(&held{Worker: "two", Number: first.seat.Load().Number})
			return rival
		},
		"of a worker without a name": func(_ *testing.T, s *site, first *HostLog) *HostLog {
			rival := s.station("h01")
			rival.seat.Store(&held{Number: first.seat.Load().Number})
			return rival
		},
		"of another host with all that it can know": func(_ *testing.T, s *site, first *HostLog) *HostLog {
			hostile := s.station("h02")
			hostile.seat.Store(first.seat.Load())
			hostile.session = first.session
			return hostile
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			first := s.station("h01")
			sit(t, first, "one")
			caller := late(t, s, first)
			// As it was sent before its sender knew better.
			caller.other.Store(nil)
			if err := caller.Leave(t.Context()); err == nil {
				t.Error("it is taken")
			}
			if err := s.station("h01").Seat(t.Context(), "three"); !errors.Is(err, log.ErrTaken) {
				t.Errorf("the next who asks for the seat gets %v", err)
			}
		})
	}
}

// TestLeaveInTheNameOfAnotherHost checks that a host may not even call where
// another one gives its seat back.
func TestLeaveInTheNameOfAnotherHost(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first := s.station("h01")
	sit(t, first, "one")
	nc := s.connect("h02")
	msg := first.message(fmt.Sprintf("%s.%d", verbLeave, first.seat.Load().Number), "one", nil)
	for _, reply := range []string{s.log.subjects.Inbox("h01") + ".x", s.log.subjects.Inbox("h02") + ".x"} {
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

// TestLeaveWithoutSite checks that a worker does not wait for a site that is
// not there, and that one without a seat has none to give back.
func TestLeaveWithoutSite(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	station := s.station("h01")
	leave(t, station)
	sit(t, station, "one")
	station.Close()
	begun := time.Now()
	if err := station.Leave(t.Context()); !errors.Is(err, errNotConnected) {
		t.Errorf("the error is %v", err)
	}
	if waited := time.Since(begun); waited > message.Heartbeat/10 {
		t.Errorf("it waited for %s", waited)
	}
}

// TestAskWhileLeft checks that nobody is told to have a seat that is about to
// be free.
func TestAskWhileLeft(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first := s.station("h01")
	sit(t, first, "one")
	seats := &s.log.gate.Load().seats
	number := fmt.Sprint(first.seat.Load().Number)
	if _, ok := seats.begin("h01", "one", "a process that has just lost it", number); ok {
		t.Error("a process gives it back that does not have it")
	}
	if _, ok := seats.begin("h01", "one", first.session, number); !ok {
		t.Fatal("it cannot be given back")
	}
	if a := seats.ask(t.Context(), "h01", "one", "anew"); a.Seat != nil || a.Error != errLeaving.Error() {
		t.Errorf("its worker is started anew, asks and gets %+v", a)
	}
	if _, ok := seats.begin("h01", "one", first.session, number); ok {
		t.Error("it is given back twice")
	}
}

// TestTakenUntil checks that a worker that has to wait is told for whom, and
// until when.
func TestTakenUntil(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	begun := time.Now().Truncate(time.Second)
	sit(t, s.station("h01"), "one")
	err := s.station("h01").Seat(t.Context(), "two")
	if !errors.Is(err, log.ErrTaken) || !strings.Contains(err.Error(), "worker one has the seat of this host since ") {
		t.Fatalf("the error is %v", err)
	}
	_, rest, _ := strings.Cut(err.Error(), "and until ")
	at, ok := strings.CutSuffix(rest, " at the most, if that worker is not heard of again")
	until, wrong := time.Parse(time.RFC3339, at)
	if !ok || wrong != nil || until.Before(begun.Add(message.Silence)) || until.After(time.Now().Add(message.Silence)) {
		t.Errorf("it says %q", err)
	}
}

// sit has a worker get the seat.
func sit(t *testing.T, station *HostLog, worker string) {
	t.Helper()
	if err := station.Seat(t.Context(), worker); err != nil {
		t.Fatalf("worker %s asks for the seat and gets %v", worker, err)
	}
}

func leave(t *testing.T, station *HostLog) {
	t.Helper()
	if err := station.Leave(t.Context()); err != nil {
		t.Fatalf("the seat cannot be given back: %v", err)
	}
}
