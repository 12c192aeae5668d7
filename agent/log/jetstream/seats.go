package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// maxWorker is the longest identity of a worker, in bytes; a heartbeat has the
// same limit.
const maxWorker = 63

// seats are who works for which host, in memory: each call asks for it.
type seats struct {
	log    *Log
	keeper Keeper
	mu     sync.Mutex
	byHost map[string]*seat
	// begun is when the watch of holders began: what was said before was not
	// heard here.
	begun time.Time
}

// seat is a host's one seat.
type seat struct {
	held
	// heard is when its holder was heard of last.
	heard time.Time
	// session is the process of its holder that has it; empty when none was heard
	// here. former are those that had it before, the newest last. leaving tells
	// that it is being given back.
	session string
	former  []string
	leaving bool
}

// held is who has a seat, and since when. Number counts the changes of hands.
type held struct {
	Worker string    `json:"worker"`
	Since  time.Time `json:"since"`
	Number uint64    `json:"number,omitempty"`
	// Tenure is the Number with which the worker had it at first, 0 when it is
	// this one: a worker that gave the seat back and got it again had no other
	// one after it.
	Tenure uint64 `json:"tenure,omitempty"`
	// Last is who gave it back, when nobody has it; Tenure is of that worker.
	Last string `json:"last,omitempty"`
	// Session is the process of the worker that has it, for other processes of
	// the same worker; it is not kept.
	Session string `json:"session,omitempty"`
}

func (h held) tenure() uint64 {
	if h.Tenure != 0 {
		return h.Tenure
	}
	return h.Number
}

// String says it in words.
func (h held) String() string {
	switch {
	case h.Worker == "":
		return "nobody has the seat of this host; ask for it first"
	case h.Session != "":
		return fmt.Sprintf("another process of worker %s has the seat of this host; when that is another machine, one is a copy of the other: "+
			"give it a name and a key of its own, and remove its state folder", h.Worker)
	}
	return fmt.Sprintf("worker %s has the seat of this host since %s", h.Worker, h.Since.UTC().Format(time.RFC3339))
}

// serve keeps the seats as the store has them until ctx ends. It calls ready
// once it has what was there at first.
func (s *seats) serve(ctx context.Context, ready func()) error {
	return s.keeper.WatchSeats(ctx, s.log.subjects.Tenant, func(key string, body []byte, number uint64) {
		if key == "" {
			ready()
			return
		}
		// A seat that cannot be read is nobody's: whoever asks for it writes it
		// anew.
		var h held
		if json.Unmarshal(body, &h) != nil {
			h = held{}
		}
		h.Number = number
		if host, ok := log.Host(key); ok {
			s.take(host, h)
		}
	})
}

// take notes who has a seat, unless something newer is known, and tells the
// host's workers when it changed hands.
func (s *seats) take(host string, h held) {
	s.mu.Lock()
	old := s.byHost[host]
	if old != nil && old.Number >= h.Number {
		s.mu.Unlock()
		return
	}
	s.byHost[host] = &seat{held: h}
	s.mu.Unlock()
	if old != nil && old.Worker != "" && old.Worker != h.Worker {
		s.tell(host, h)
	}
}

// heard notes a sign of life of a process of a worker and reports whether it
// has the seat.
func (s *seats) heard(host, worker, session string) (held, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.byHost[host]
	switch {
	case at == nil:
		return held{}, worker == ""
	case at.Worker != worker:
		return at.held, false
	case !at.admits(session):
		other := at.held
		other.Session = at.session
		return other, false
	}
	at.heard = time.Now()
	return at.held, true
}

// who returns the holder of a seat, and whether it is a worker.
func (s *seats) who(host, worker string) (held, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.byHost[host]
	if at == nil {
		return held{}, false
	}
	return at.held, at.Worker == worker
}

// tell has a host's workers know which of them has the seat.
func (s *seats) tell(host string, h held) {
	body, err := json.Marshal(h)
	if err == nil {
		_ = s.log.nats.Publish(s.log.subjects.SeatNews(host), body)
	}
}

// errLeaving means that the seat is being given back, by an earlier process of
// the worker that asks for it.
var errLeaving = errors.New("the seat is being given back; ask again")

// ask grants the seat to a worker if nobody has it, the worker itself has it,
// or its holder has been silent for too long. session is the worker's process.
func (s *seats) ask(ctx context.Context, host, worker, session string) answer {
	if worker == "" || len(worker) > maxWorker || message.CleanText(worker) != worker {
		return refuse("%.100q does not identify a worker; use at most %d bytes of plain text", worker, maxWorker)
	}
	if len(session) > maxWorker {
		return refuse("%.100q does not identify a process; use at most %d bytes", session, maxWorker)
	}
	h, has := s.who(host, worker)
	switch {
	case has:
		return s.enter(host, h.Number, session)
	case h.Worker != "" && !s.silent(host):
		until := s.until(host).UTC().Format(time.RFC3339)
		return answer{Taken: true, Error: fmt.Sprintf("%v, and until %s at the most, if that worker is not heard of again", h, until)}
	}
	next := held{Worker: worker, Since: time.Now().UTC()}
	if h.Last == worker {
		next.Tenure = h.tenure()
	}
	body, err := json.Marshal(next)
	if err != nil {
		return failed(err)
	}
	next.Number, err = s.keeper.PutSeat(ctx, s.log.subjects.Tenant, log.Token(host), body, h.Number)
	if err != nil {
		return failed(err)
	}
	s.take(host, next)
	return s.enter(host, next.Number, session)
}

// leave frees the seat with a number for whoever asks next. A call that comes
// late is refused: the seat has another number once it was free, and one that
// was not is of another session once its worker was started anew.
func (s *seats) leave(ctx context.Context, host, worker, session, number string) answer {
	left, ok := s.begin(host, worker, session, number)
	if !ok {
		return refuse("worker %s does not have the seat %.20q of this host in this session", worker, number)
	}
	next := held{Since: time.Now().UTC(), Last: worker, Tenure: left.tenure()}
	body, err := json.Marshal(next)
	if err == nil {
		next.Number, err = s.keeper.PutSeat(ctx, s.log.subjects.Tenant, log.Token(host), body, left.Number)
	}
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if at := s.byHost[host]; at != nil && at.Number == left.Number {
			at.leaving = false
		}
		return failed(err)
	}
	s.take(host, next)
	return answer{}
}

// begin begins to give a seat back. While the store writes that, its worker
// must not be told that it has the seat.
func (s *seats) begin(host, worker, session, number string) (held, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.byHost[host]
	if at == nil || worker == "" || at.Worker != worker || strconv.FormatUint(at.Number, 10) != number || at.leaving {
		return held{}, false
	}
	if at.session != "" && at.session != session {
		return held{}, false
	}
	at.leaving = true
	return at.held, true
}

// silent reports whether the holder of a seat was not heard of for so long
// that another may have it.
func (s *seats) silent(host string) bool { return !time.Now().Before(s.until(host)) }

// until is when that will be, if its holder is not heard of again.
func (s *seats) until(host string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.begun
	if at := s.byHost[host]; at != nil && at.heard.After(last) {
		last = at.heard
	}
	return last.Add(message.Silence)
}
