package jetstream

import (
	"errors"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// TestCopiedMachine checks that of two machines of which one is a copy of the
// other, worker and key and all, one works and the other stands by and says why;
// and that the other one has the seat once the first is gone.
func TestCopiedMachine(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	machine, clone := s.station("h01"), s.station("h01")
	sit(t, machine, "one")
	ended := s.listening(t, machine)
	sit(t, clone, "one")
	if err := <-ended; !errors.Is(err, log.ErrTaken) || !strings.Contains(err.Error(), "one is a copy of the other") {
		t.Errorf("the commands of the first end with %v", err)
	}
	if err := machine.Versions(t.Context(), []byte(`{}`)); !errors.Is(err, log.ErrTaken) {
		t.Errorf("versions of the first are answered with %v", err)
	}
	if err := machine.Seat(t.Context(), "one"); !errors.Is(err, log.ErrTaken) || !strings.Contains(err.Error(), "one is a copy of the other") {
		t.Errorf("it asks again and gets %v", err)
	}
	if err := clone.Versions(t.Context(), []byte(`{}`)); err != nil {
		t.Errorf("versions of the second are answered with %v", err)
	}
	heard := make(chan string, 10)
	s.listen(t, log.Listener{Alive: func(_ string, a message.Alive) { heard <- a.AgentVersion }})
	for version, station := range map[string]*HostLog{"of the first": machine, "of the second": clone} {
		if err := station.Alive(message.Alive{Application: "a", Worker: "one", AgentVersion: version}); err != nil {
			t.Fatal(err)
		}
		if err := station.nats.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if version := <-heard; version != "of the second" || len(heard) != 0 {
		t.Errorf("the heartbeat %s is heard", version)
	}
	s.silence("h01")
	sit(t, machine, "one")
	if err := clone.Versions(t.Context(), []byte(`{}`)); !errors.Is(err, log.ErrTaken) {
		t.Errorf("versions of the second are answered with %v", err)
	}
}

// TestStartedAgain checks that a worker which is started again has its seat at
// once, however often.
func TestStartedAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for range 3 * maxFormer {
		station := s.station("h01")
		sit(t, station, "one")
		if err := station.Versions(t.Context(), []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
	}
	if at := s.log.gate.Load().seats.byHost["h01"]; len(at.former) != maxFormer {
		t.Errorf("%d processes of before are remembered", len(at.former))
	}
}

// TestCopiedMachineAtAnotherGate checks that a gate which has just started, and
// knows of no process yet, comes to one of two as well.
func TestCopiedMachineAtAnotherGate(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	machine, clone := s.station("h01"), s.station("h01")
	sit(t, machine, "one")
	sit(t, clone, "one")
	seats := &s.log.gate.Load().seats
	seats.mu.Lock()
	seats.byHost["h01"].session, seats.byHost["h01"].former = "", nil
	seats.mu.Unlock()
	if err := clone.Versions(t.Context(), []byte(`{}`)); err != nil {
		t.Errorf("versions of the one that comes first are answered with %v", err)
	}
	sit(t, machine, "one")
	if err := clone.Versions(t.Context(), []byte(`{}`)); !errors.Is(err, log.ErrTaken) {
		t.Errorf("versions of the other one are answered with %v", err)
	}
	for range 3 {
		if err := clone.Seat(t.Context(), "one"); !errors.Is(err, log.ErrTaken) {
			t.Errorf("the one that lost it asks again and gets %v", err)
		}
	}
}
