// Package trouble decides which failures are told of something that is tried
// again and again, as on a disk that is full for a night: the first, one in a
// while, and the end.
//
// It reads no clock.
package trouble

import (
	"log/slog"
	"time"
)

// Again is how often it is told that something still fails.
const Again = 10 * time.Minute

// Spell is the time in which one thing fails again and again. It is for one
// goroutine; the zero value is one in which all is well.
type Spell struct{ since, told time.Time }

// Tell takes in a failure and reports whether it is to be told. A clock that was
// set back does not silence it for long.
func (s *Spell) Tell(now time.Time) bool {
	if s.since.IsZero() {
		s.since = now
	} else if after := now.Sub(s.told); after >= 0 && after < Again {
		return false
	}
	s.told = now
	return true
}

// Over takes in that all is well, and reports whether it was not before.
func (s *Spell) Over() bool {
	failed := !s.since.IsZero()
	*s = Spell{}
	return failed
}

// Note takes in how a try came out, and writes what is to be told of it: failing
// with the error and since when, or well at the end.
func (s *Spell) Note(log *slog.Logger, now time.Time, err error, failing, well string, args ...any) {
	switch {
	case err == nil && s.Over():
		log.Warn(well, args...)
	case err != nil && s.Tell(now):
		log.Warn(failing, append(args[:len(args):len(args)], "since", s.since.UTC().Format(time.RFC3339), "error", err)...)
	}
}
