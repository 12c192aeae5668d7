package jetstream

import (
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// maxFormer is how many processes of before are remembered: of a copied machine
// there are two, and each start of one adds itself.
const maxFormer = 8

// admits reports whether a process of the holder is the one that has the seat,
// which is the first that is heard of here. Of one that does not say which it is
// nobody knows better.
func (at *seat) admits(session string) bool {
	if at.session == "" {
		at.session = session
	}
	return session == "" || session == at.session
}

// enter grants a seat to a process of its holder, unless the seat is another
// one by now, and tells the one that has it no more.
func (s *seats) enter(host string, number uint64, session string) answer {
	a, news := s.grant(host, number, session)
	if news != nil {
		s.tell(host, *news)
	}
	return a
}

// grant decides on that. A process that is new has the seat at once: its worker
// was started again. One that lost it to such a process, and yet is there, is no
// process of before: there are two of them, on machines of which one is a copy
// of the other. It has to wait until the other one is silent.
func (s *seats) grant(host string, number uint64, session string) (a answer, news *held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.byHost[host]
	if at == nil || at.Number != number || at.leaving {
		return failed(errLeaving), nil
	}
	mine, now := at.held, time.Now()
	if !at.admits(session) {
		other := at.held
		other.Session = at.session
		if slices.Contains(at.former, session) && now.Before(at.heard.Add(message.Silence)) {
			return answer{Taken: true, Error: other.String()}, nil
		}
		at.former = append(at.former, at.session)
		at.former = at.former[max(0, len(at.former)-maxFormer):]
		at.session, other.Session = session, session
		news = &other
	}
	at.heard = now
	return answer{Seat: &mine}, news
}
