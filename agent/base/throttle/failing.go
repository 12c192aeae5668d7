package throttle

import (
	"log/slog"
	"time"
)

// Failing decides what is logged of something that is tried again and again: the
// first failure, one every ten minutes, and the end. It is for one goroutine and
// reads no clock; the zero value has not failed.
type Failing struct{ since, logged time.Time }

// Due takes in a failure and reports whether it is to be logged. A clock that was
// set back does not silence it for long.
func (f *Failing) Due(now time.Time) bool {
	if f.since.IsZero() {
		f.since = now
	} else if after := now.Sub(f.logged); after >= 0 && after < Again {
		return false
	}
	f.logged = now
	return true
}

// Over takes in a success, and reports whether the try before had failed.
func (f *Failing) Over() bool {
	failed := !f.since.IsZero()
	*f = Failing{}
	return failed
}

// Note takes in how a try ended, and logs what is due: failing with the error and
// since when, or well at the end.
func (f *Failing) Note(log *slog.Logger, now time.Time, err error, failing, well string, args ...any) {
	switch {
	case err == nil && f.Over():
		log.Warn(well, args...)
	case err != nil && f.Due(now):
		log.Warn(failing, append(args[:len(args):len(args)], "since", f.since.UTC().Format(time.RFC3339), "error", err)...)
	}
}
