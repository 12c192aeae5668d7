package controller

import (
	"context"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

const (
	// trimAfter is how many records the log may have before the newest run: if there
	// are more, they are removed.
	trimAfter = 50_000
	// carryAfter is how many records the log may have before an environment that keeps it from being
	// trimmed, because it has had no run for long, is told anew.
	carryAfter = 2 * trimAfter
	// trimPause is the wait before a failed trim is tried again.
	trimPause = time.Minute
	// trimTimeout bounds one try.
	trimTimeout = 30 * time.Second
)

// trimWhenDue removes the records before all newest runs once all ended runs are in the history,
// and what they tell is among the news. It returns when to look again.
func (s *state) trimWhenDue(ctx context.Context, now time.Time) time.Time {
	if s.alone() && s.standard().ledger.Current() != nil || !s.allKept() || !s.news.empty() {
		return time.Time{}
	}
	if event := s.relock(); event != nil {
		return s.append(ctx, eventEntry(0, event))
	}
	if upTo := s.guard.markBefore(s.neededFrom()); s.trim.mayTrim(upTo + 1) {
		return s.trim.trim(ctx, now, upTo)
	}
	if env := s.oldest(); env != nil && s.mayCarry(env, now) {
		return s.append(ctx, eventEntry(0, s.ledger.Carrying(env.ledger)))
	}
	return time.Time{}
}

// noteBeginning notes from which record on the log tells all of an environment, and of a host.
func (s *state) noteBeginning(r message.Decoded) {
	if env := s.ledger.Last(); env != nil && beginsAnew(r.Event) {
		if _, missed := r.Event.(message.Missed); !missed || env.Key() == 0 {
			s.environment(env.Name).since = r.Seq
		}
	}
	s.named(r)
}

// neededFrom is the first record of the log that is needed: of the newest runs, and of an
// environment that has only missed windows the last of these.
func (s *state) neededFrom() uint64 {
	from := s.ledger.NeededFrom()
	for _, env := range s.inOrder {
		if env.ledger.Key() == 0 && env.since != 0 && s.isDeclared(env.name) {
			from = min(from, env.since)
		}
	}
	return from
}

// oldest returns the environment that needs the oldest record of the log for its newest run; nil when
// none has had one.
func (s *state) oldest() (oldest *environment) {
	for _, env := range s.inOrder {
		if env.ledger.Key() != 0 && (oldest == nil || env.ledger.NeededFrom() < oldest.ledger.NeededFrom()) {
			oldest = env
		}
	}
	return oldest
}

// allKept reports whether all ended runs are in the history.
func (s *state) allKept() bool {
	if !s.past.empty() {
		return false
	}
	for _, env := range s.inOrder {
		if newest := env.ledger.Newest(); newest != nil && newest.Over() && !s.past.has(newest.Key()) {
			return false
		}
	}
	return true
}

// mayCarry reports whether an environment keeps a long log from being trimmed and what is known of
// it may be told anew, without its runs: the window of the last one is over.
func (s *state) mayCarry(env *environment, now time.Time) bool {
	if s.alone() || env.ledger.Current() != nil || s.ledger.LastSeq <= s.trim.first+carryAfter {
		return false
	}
	opening, found := s.intent.of(env.name).nextOpening(now)
	return !found || !opening.Contains(now)
}

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

// mayTrim reports whether the log is long enough, given the sequence from which on it has to
// be kept.
func (t *trimmer) mayTrim(since uint64) bool { return since > t.first+trimAfter }

// trim removes the records up to a sequence. It does so beside the loop, because the
// disk may take long. If an earlier trim has failed, trim returns when to call it
// again. The records of the runs under way, and of one that is opened in the meantime, come
// after the removed ones.
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
