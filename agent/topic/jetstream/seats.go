package jetstream

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/topic"
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
}

// held is who has a seat, and since when. Number counts the changes of hands.
type held struct {
	Worker string    `json:"worker"`
	Since  time.Time `json:"since"`
	Number uint64    `json:"number,omitempty"`
}

// String says it in words.
func (h held) String() string {
	if h.Worker == "" {
		return "nobody has the seat of this host; ask for it first"
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
		if host, ok := topic.Host(key); ok {
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

// heard notes a sign of life of a worker and reports whether it has the seat.
func (s *seats) heard(host, worker string) (held, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.byHost[host]
	if at == nil {
		return held{}, worker == ""
	}
	if at.Worker != worker {
		return at.held, false
	}
	at.heard = time.Now()
	return at.held, true
}

// tell has a host's workers know which of them has the seat.
func (s *seats) tell(host string, h held) {
	body, err := json.Marshal(h)
	if err == nil {
		_ = s.log.nats.Publish(s.log.subjects.SeatNews(host), body)
	}
}

// ask grants the seat to a worker if nobody has it, the worker itself has it,
// or its holder has been silent for too long.
func (s *seats) ask(ctx context.Context, host, worker string) answer {
	if worker == "" || len(worker) > maxWorker || message.CleanText(worker) != worker {
		return refuse("%.100q does not identify a worker; use at most %d bytes of plain text", worker, maxWorker)
	}
	h, has := s.heard(host, worker)
	switch {
	case has:
		return answer{Seat: &h}
	case h.Worker != "" && !s.silent(host):
		return answer{Taken: true, Error: h.String()}
	}
	next := held{Worker: worker, Since: time.Now().UTC()}
	body, err := json.Marshal(next)
	if err != nil {
		return failed(err)
	}
	next.Number, err = s.keeper.PutSeat(ctx, s.log.subjects.Tenant, topic.Token(host), body, h.Number)
	if err != nil {
		return failed(err)
	}
	s.take(host, next)
	s.heard(host, worker)
	return answer{Seat: &next}
}

// silent reports whether the holder of a seat was not heard of for so long
// that another may have it.
func (s *seats) silent(host string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.begun
	if at := s.byHost[host]; at != nil && at.heard.After(last) {
		last = at.heard
	}
	return time.Since(last) >= message.Silence
}
