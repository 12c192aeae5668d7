package v1

import (
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
)

// SkippedWindow is a window that somebody has skipped: it opens no run by itself. Its start is its
// identity, so a window that an edit moves is another one, and is not skipped.
type SkippedWindow struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
	// By is who has skipped it, and when.
	By     string    `json:"by,omitempty"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
}

// maxPastSkips is how many skipped windows are kept after they have closed, so that none of them is
// taken for one that was missed.
const maxPastSkips = 10

// MaxSkips bounds the windows of an environment that are skipped and have not closed. Nobody decides
// further ahead window by window; that is what a freeze of a calendar is for.
const MaxSkips = 50

// Skips are the skipped windows of an environment, by their start.
type Skips struct {
	Windows []SkippedWindow `json:"windows"`
}

// Of returns the skip of the window that opens at a time; nil when nobody has skipped it.
func (s *Skips) Of(start time.Time) *SkippedWindow {
	if s == nil {
		return nil
	}
	for i := range s.Windows {
		if s.Windows[i].Start.Equal(start) {
			return &s.Windows[i]
		}
	}
	return nil
}

// With returns the skips with another one, and false if the window is skipped already. Those that are
// long over at a time are left out.
func (s Skips) With(skip SkippedWindow, now time.Time) (Skips, bool) {
	if s.Of(skip.Start) != nil {
		return s, false
	}
	next := Skips{}
	for _, w := range append(append([]SkippedWindow{}, s.Windows...), skip) {
		n := len(next.Windows)
		for n > 0 && next.Windows[n-1].Start.After(w.Start) {
			n--
		}
		next.Windows = append(next.Windows[:n], append([]SkippedWindow{w}, next.Windows[n:]...)...)
	}
	for past := next.past(now); past > maxPastSkips; past-- {
		next.Windows = next.Windows[1:]
	}
	return next, true
}

// Full reports whether there are as many windows that have not closed by a time as there may be.
func (s Skips) Full(now time.Time) bool { return len(s.Windows)-s.past(now) >= MaxSkips }

// past counts the windows that have closed by a time.
func (s Skips) past(now time.Time) (n int) {
	for _, w := range s.Windows {
		if !w.End.After(now) {
			n++
		}
	}
	return n
}

// Without returns the skips without that of the window that opens at a time, or without the next one
// if the time is zero, and the one that was taken out; nil if there is none that has not closed by now.
func (s Skips) Without(start, now time.Time) (Skips, *SkippedWindow) {
	for i, w := range s.Windows {
		if w.End.After(now) && (start.IsZero() || w.Start.Equal(start)) {
			return Skips{append(append([]SkippedWindow{}, s.Windows[:i]...), s.Windows[i+1:]...)}, &w
		}
	}
	return s, nil
}

// SkipWindow is the body of POST .../os-upgrade/skip-window.
type SkipWindow struct {
	// Environment is the environment whose window is skipped; absent for the default one.
	Environment string `json:"environment,omitempty"`
	// WindowStart is when the window opens, such as 2026-11-29T01:00:00Z; absent for the next one.
	WindowStart string `json:"window-start,omitempty"`
	// Reason is kept and shown; required.
	Reason string `json:"reason"`
}

// DecodeSkipWindow reads the body of a request that skips a window and validates it, as
// DecodeOSUpgrade does.
func DecodeSkipWindow(contentType string, body []byte) (SkipWindow, error) {
	return decode(contentType, body, SkipWindow{}, SkipWindow.Validate)
}

// Validate returns everything that is wrong with the values, and nothing when all is right.
func (s SkipWindow) Validate() Problems {
	found := validateEnvironment(s.Environment)
	if _, err := s.Start(); err != nil {
		found = append(found, document.Wrong("window-start", s.WindowStart, "is not a time; write it as in 2026-11-29T01:00:00Z"))
	}
	if strings.TrimSpace(s.Reason) == "" {
		return append(found, document.Wrong("reason", s.Reason, "is empty; it is shown with the window"))
	}
	return append(found, validateReason(s.Reason)...)
}

// Start returns when the window opens; zero for the next one.
func (s SkipWindow) Start() (time.Time, error) {
	if s.WindowStart == "" {
		return time.Time{}, nil
	}
	return time.Parse(time.RFC3339, s.WindowStart)
}
