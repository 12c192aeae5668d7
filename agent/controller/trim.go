package controller

import (
	"context"
	"time"
)

const (
	// trimAfter is how many records the log may have before the newest run: if there
	// are more, they are removed.
	trimAfter = 50_000
	// trimPause is the wait before a failed trim is tried again.
	trimPause = time.Minute
	// trimTimeout bounds one try.
	trimTimeout = 30 * time.Second
)

// trimmer removes the records before the newest run from the log, once the log is
// long, all runs are in the history, and the last runs of the hosts are stored.
type trimmer struct {
	Options
	// post runs a function in the loop.
	post func(context.Context, func())
	// first is the sequence of the oldest record of the log.
	first uint64
	// running means that a trim is under way; retryAt is when a failed trim is tried
	// again.
	running bool
	retryAt time.Time
}

// mayTrim reports whether the log is long enough, given the sequence at which its
// newest run was opened.
func (t *trimmer) mayTrim(opened uint64) bool { return opened > t.first+trimAfter }

// trim removes the records up to a sequence. It does so beside the loop, because the
// disk may take long. If an earlier trim has failed, trim returns when to call it
// again. It is called while no run is under way; the records of a run that is opened
// in the meantime come after the removed ones.
func (t *trimmer) trim(ctx context.Context, now time.Time, upTo uint64) time.Time {
	switch {
	case t.running:
		return time.Time{}
	case now.Before(t.retryAt):
		return t.retryAt
	}
	t.At("before trim")
	// The guard is told first: it takes a log that begins later than expected for
	// damaged.
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

// ended notes the result of a trim.
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
