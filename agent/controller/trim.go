package controller

import (
	"context"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

const (
	// trimAfter is how many records the log may have before the newest run's
	// until those are removed.
	trimAfter = 50_000
	// trimPause is the wait before a failed trim is tried again.
	trimPause = time.Minute
	// trimTimeout bounds one try.
	trimTimeout = 30 * time.Second
)

// noteTrimmable has the guard remember each place at which a run may begin:
// from there on the log may begin one day.
func (s *state) noteTrimmable(r message.Record) {
	if r.Kind == message.EventRecord && s.ledger.Current() == nil {
		s.Guard.Note()
	}
}

// trimWhenDue removes what is before the newest run from the log once all runs
// are in the history and the log is long, and returns when to look again if
// that has failed. It is for when no run is under way; one that is opened in
// the meantime stands behind what is removed.
func (s *state) trimWhenDue(ctx context.Context, now time.Time) time.Time {
	upTo := s.trimmable()
	switch {
	case upTo == 0 || s.trimming:
		return time.Time{}
	case now.Before(s.trimAt):
		return s.trimAt
	}
	s.At("before trim")
	// The guard goes first: a log that begins later than it knows is damaged.
	if err := s.Guard.Trim(upTo); err != nil {
		s.trimmed(now, upTo, err)
		return s.trimAt
	}
	s.trimming = true
	go s.trim(ctx, upTo)
	return time.Time{}
}

// trimmable is the record up to which the log may be removed; 0 when none may.
func (s *state) trimmable() uint64 {
	newest := s.ledger.Newest()
	if newest == nil || newest.OpenedSeq <= s.first+trimAfter {
		return 0
	}
	if id, all := s.past.kept(); !all || id < newest.Key() {
		return 0
	}
	return newest.OpenedSeq - 1
}

// trim removes records beside the loop: how long that takes is up to the disk.
func (s *state) trim(ctx context.Context, upTo uint64) {
	limited, cancel := context.WithTimeout(ctx, trimTimeout)
	defer cancel()
	err := s.Log.Trim(limited, upTo)
	s.At("after trim")
	_ = s.tasks.post(ctx, func(s *state) { s.trimmed(s.Now(), upTo, err) })
}

// trimmed takes in how a trim came out.
func (s *state) trimmed(now time.Time, upTo uint64, err error) {
	s.trimming = false
	if err != nil {
		s.trimAt = now.Add(trimPause)
		s.Logger.Warn("cannot trim the log; trying again", "tenant", s.Tenant, "up-to", upTo, "error", err)
		return
	}
	s.first = upTo + 1
	s.Logger.Info("the log was trimmed", "tenant", s.Tenant, "up-to", upTo)
}
