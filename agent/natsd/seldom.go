package natsd

import (
	"sync"
	"time"
)

// seldom keeps lines that others can cause from filling the log: in each span
// it lets the first few through, and at its end says how many there were more.
type seldom struct {
	few  int
	span time.Duration
	// rest is told how many lines were kept back.
	rest func(kept int)

	mu         sync.Mutex
	begun      time.Time
	said, kept int
}

// let reports whether a line may be written.
func (s *seldom) let() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.Sub(s.begun) >= s.span {
		s.begun, s.said = now, 0
	}
	if s.said < s.few {
		s.said++
		return true
	}
	if s.kept++; s.kept == 1 {
		time.AfterFunc(s.begun.Add(s.span).Sub(now), s.tell)
	}
	return false
}

func (s *seldom) tell() {
	s.mu.Lock()
	kept := s.kept
	s.kept = 0
	s.mu.Unlock()
	s.rest(kept)
}

// maxChosen is how much is shown of what others chose, in bytes.
const maxChosen = 400

// short cuts a text that others chose.
func short(text string) string {
	if len(text) <= maxChosen {
		return text
	}
	return text[:maxChosen] + "..."
}
