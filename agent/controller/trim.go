package controller

import (
	"context"
	"time"
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

// trimmer removes from the log what is before the newest run, once the log is
// long and all runs are in the history.
type trimmer struct {
	Options
	// post has a function run in the loop.
	post func(context.Context, func())
	// first is the oldest record that the log has.
	first uint64
	// running tells that a trim is under way, retryAt when one that has failed is
	// tried again.
	running bool
	retryAt time.Time
}

// mayTrim reports whether a log whose newest run was opened at a record is long
// enough.
func (t *trimmer) mayTrim(opened uint64) bool { return opened > t.first+trimAfter }

// trim removes the records up to one beside the loop: how long that takes is up to
// the disk. It returns when to look again if an earlier try has failed. It is for
// when no run is under way; a run that is opened in the meantime stands behind
// what is removed.
func (t *trimmer) trim(ctx context.Context, now time.Time, upTo uint64) time.Time {
	switch {
	case t.running:
		return time.Time{}
	case now.Before(t.retryAt):
		return t.retryAt
	}
	t.At("before trim")
	// The guard goes first: a log that begins later than it knows is damaged.
	if err := t.Guard.Trim(upTo); err != nil {
		t.ended(upTo, err)
		return t.retryAt
	}
	t.running = true
	go func() {
		limited, cancel := context.WithTimeout(ctx, trimTimeout)
		defer cancel()
		err := t.Log.Trim(limited, upTo)
		t.At("after trim")
		t.post(ctx, func() { t.ended(upTo, err) })
	}()
	return time.Time{}
}

// ended notes how a trim came out.
func (t *trimmer) ended(upTo uint64, err error) {
	t.running = false
	if err != nil {
		t.retryAt = t.Now().Add(trimPause)
		t.Logger.Warn("cannot trim the log; trying again", "tenant", t.Tenant, "up-to", upTo, "error", err)
		return
	}
	t.first = upTo + 1
	t.Logger.Info("the log was trimmed", "tenant", t.Tenant, "up-to", upTo)
}

func (t *trimmer) setBack() { t.retryAt = time.Time{} }
