package audit

import (
	"sync"
	"time"
)

// A sender has maxEach records in each limitEach of what it may repeat as often as it
// likes. maxSenders bounds those that are remembered.
const maxEach, limitEach, maxSenders = 20, time.Hour, 10_000

// Limit bounds the records of what somebody may repeat as often as it likes, such as
// requests that are refused: it would push out all other records.
type Limit struct {
	mu      sync.Mutex
	senders map[string]*sender
}

type sender struct {
	begun         time.Time
	kept, omitted int
}

// Keep reports whether one more has a record, and how many before it have none.
func (l *Limit) Keep(name string, now time.Time) (keep bool, omitted int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.senders == nil || len(l.senders) >= maxSenders && l.senders[name] == nil {
		l.senders = map[string]*sender{}
	}
	s := l.senders[name]
	if s == nil {
		s = &sender{begun: now}
		l.senders[name] = s
	}
	if since := now.Sub(s.begun); since >= limitEach || since < 0 { // The clock may have been set back.
		s.begun, s.kept = now, 0
	}
	if s.kept >= maxEach {
		s.omitted++
		return false, 0
	}
	omitted, s.omitted = s.omitted, 0
	s.kept++
	return true, omitted
}
