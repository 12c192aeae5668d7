package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// held is who has a host's seat.
type held struct {
	worker string
	number uint64
	heard  time.Time
	// tenure is the number with which its worker had it at first, last the
	// worker that gave it back, when nobody has it; tenure is then that one's.
	tenure uint64
	last   string
	// session is the process that it was granted to.
	session *process
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

// Lease implements log.HostLog.
func (s *station) Lease(ctx context.Context, worker string) (uint64, error) {
	granted, err := call(ctx, s, "seat", func() (held, error) { return s.w.grant(s.m.name, worker, s.p) })
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	s.mine, s.other = &granted, nil
	s.mu.Unlock()
	return granted.tenure, nil
}

// grant gives a seat that is free, with the world's lock held.
func (w *World) grant(host, worker string, session *process) (held, error) {
	h, has := w.heard(host, worker)
	if has {
		w.seats.byHost[host].session = session
		return h, nil
	}
	last := w.seats.begun
	if h.heard.After(last) {
		last = h.heard
	}
	if h.worker != "" && time.Since(last) < message.Silence {
		return held{}, fmt.Errorf("%w: worker %s", log.ErrTaken, h.worker)
	}
	w.seats.given++
	next := &held{worker: worker, number: w.seats.given, heard: time.Now(), tenure: w.seats.given, session: session}
	if h.last == worker {
		next.tenure = h.tenure
		w.count("seats given to who gave them back")
	}
	w.seats.byHost[host] = next
	w.note("worker %s has the seat %d of %s", worker, next.number, host)
	w.count("seats given")
	if h.last != "" && h.last != worker {
		w.count("seats changed hands after they were given back")
	}
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
	if now.last != "" {
		select {
		case s.left <- struct{}{}:
		default:
		}
	}
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

// GiveBack implements log.HostLog.
func (s *station) GiveBack(ctx context.Context) error {
	s.mu.Lock()
	mine := s.mine
	s.mu.Unlock()
	if err := s.taken(); err != nil || mine == nil {
		return err
	}
	if !s.w.reachable(s.m.name) {
		return errNoReply
	}
	_, err := once(ctx, s, "leave", func() (bool, error) { return true, s.w.free(s.m.name, *mine, s.p) })
	return err
}

// free frees a seat, with the world's lock held, if it is the one that the
// caller has, in the session that has it.
func (w *World) free(host string, mine held, session *process) error {
	h, has := w.heard(host, mine.worker)
	switch {
	case !has || h.number != mine.number:
		w.count("seats given back late")
		return fmt.Errorf("%w: worker %s", log.ErrTaken, h.worker)
	case h.session != nil && h.session != session:
		w.count("seats given back by a session of before")
		return fmt.Errorf("%w: of another session", log.ErrRefused)
	}
	w.seats.given++
	next := held{number: w.seats.given, tenure: h.tenure, last: h.worker}
	w.seats.byHost[host] = &next
	w.note("worker %s gives the seat of %s back", h.worker, host)
	w.count("seats given back")
	w.after(0, func() { w.tellSeat(host, next) })
	return nil
}

// Vacated implements log.HostLog.
func (s *station) Vacated() <-chan struct{} { return s.left }
