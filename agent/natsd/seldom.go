package natsd

import (
	"sync"
	"time"
)

// seldom keeps what others can cause from filling the log: of each span it
// lets the first few lines through, and says with the first one after it how
// many there were more.
type seldom struct {
	few  int
	span time.Duration

	mu    sync.Mutex
	begun time.Time
	// said counts the lines of this span that were let through, kept those that
	// were not since the last one that was.
	said, kept int
}

// let reports whether a line may be written, and how many were kept back
// before it.
func (s *seldom) let(now time.Time) (kept int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.begun) >= s.span {
		s.begun, s.said = now, 0
	}
	if s.said >= s.few {
		s.kept++
		return 0, false
	}
	s.said++
	kept, s.kept = s.kept, 0
	return kept, true
}
