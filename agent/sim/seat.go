package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/topic"
)

// held is who has a host's seat.
type held struct {
	worker string
	number uint64
	heard  time.Time
}

// seats are who works for which host; the world's lock guards them. byHost
// survives a crash of the log's server, when its holders were heard does not.
type seats struct {
	byHost map[string]*held
	begun  time.Time
	given  uint64
}

// heard notes a sign of life of a worker, with the world's lock held, and
// reports whether it has the seat.
func (w *World) heard(host, worker string) (held, bool) {
	h := w.seats.byHost[host]
	if h == nil {
		return held{}, worker == ""
	}
	if h.worker != worker {
		return *h, false
	}
	h.heard = time.Now()
	return *h, true
}

// Seat implements topic.Station.
func (s *station) Seat(ctx context.Context, worker string) error {
	granted, err := call(ctx, s, "seat", func() (held, error) { return s.w.grant(s.m.name, worker) })
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.mine, s.other = &granted, nil
	s.mu.Unlock()
	return nil
}

// grant gives a seat that is free, with the world's lock held.
func (w *World) grant(host, worker string) (held, error) {
	h, has := w.heard(host, worker)
	if has {
		return h, nil
	}
	last := w.seats.begun
	if h.heard.After(last) {
		last = h.heard
	}
	if h.worker != "" && time.Since(last) < message.Silence {
		return held{}, fmt.Errorf("%w: worker %s", topic.ErrTaken, h.worker)
	}
	w.seats.given++
	next := &held{worker: worker, number: w.seats.given, heard: time.Now()}
	w.seats.byHost[host] = next
	w.note("worker %s has the seat %d of %s", worker, next.number, host)
	w.count("seats given")
	if h.worker != "" {
		w.count("seats changed hands")
		now := *next
		w.after(0, func() { w.tellSeat(host, now) })
	}
	return *next, nil
}

func (w *World) tellSeat(host string, now held) {
	w.post("seat news", host, func(s *station) { s.displaced(now) })
}

// displaced takes in who has the seat.
func (s *station) displaced(now held) {
	s.mu.Lock()
	moved := s.mine != nil && now.worker != s.mine.worker && (now.number == 0 || now.number > s.mine.number)
	if moved {
		s.other = &now
	}
	s.mu.Unlock()
	if moved {
		s.missed()
	}
}

// Tenure implements topic.Tenured.
func (s *station) Tenure() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mine == nil {
		return 0
	}
	return s.mine.number
}
