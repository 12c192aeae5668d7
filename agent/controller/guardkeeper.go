package controller

import (
	"log/slog"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/throttle"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/guard"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// keepAfter is how long records may go unguarded. The guards of all tenants are kept
// at the same instants, the multiples of it, and so share one write.
const keepAfter = time.Second

// mostMarks bounds the marks: those of a log that is trimmed when it is due are fewer.
const mostMarks = 10_000

// guardKeeper shows each record to the guard of the log, and has the guard write
// down how far it has seen the log some time after.
type guardKeeper struct {
	guard  *guard.Guard
	tenant string
	logger *slog.Logger
	now    func() time.Time
	// keepAt is when the guard is to write; zero when it has. pause is the wait
	// after it could not.
	keepAt  time.Time
	pause   time.Duration
	keeping throttle.Failing
	telling throttle.Failing
	// marks are the records after which the log may begin one day, in their order.
	marks []uint64
	// damaged tells that the log is not the one of before: what the guard knows of
	// that one is left as it is.
	damaged bool
}

func newGuardKeeper(o Options) guardKeeper {
	return guardKeeper{guard: o.Guard, tenant: o.Tenant, logger: o.Logger, now: o.Now}
}

// see shows the guard the next record. An error means that the log is not the one
// of before. mayBegin tells that a run may begin at the record, so that the log
// may be trimmed up to it one day.
func (g *guardKeeper) see(r message.Record, mayBegin bool) error {
	if mayBegin {
		g.guard.Note()
		if g.marks = append(g.marks, r.Seq-1); len(g.marks) > mostMarks {
			g.marks = g.marks[1:]
		}
	}
	if err := g.guard.See(r); err != nil {
		return err
	}
	if g.keepAt.IsZero() {
		g.keepAt = g.now().Truncate(keepAfter).Add(keepAfter)
	}
	return nil
}

// markBefore returns the last record before another one after which the log may begin; 0 for none.
func (g *guardKeeper) markBefore(seq uint64) uint64 {
	i, _ := slices.BinarySearch(g.marks, seq)
	if i == 0 {
		return 0
	}
	return g.marks[i-1]
}

// keepWhenDue has the guard write if it is time to.
func (g *guardKeeper) keepWhenDue(now time.Time) {
	if !g.keepAt.IsZero() && !now.Before(g.keepAt) {
		g.keep()
	}
}

// keep has the guard write now. That it cannot is no alarm: the log is still the
// one of before.
func (g *guardKeeper) keep() {
	if g.keepAt = (time.Time{}); g.damaged {
		return
	}
	err := g.guard.Keep()
	g.keeping.Note(g.logger, g.now(), err, "the guard of the log is behind; trying again", "the guard of the log is kept again", "tenant", g.tenant)
	if err != nil {
		g.pause = min(max(2*g.pause, keepAfter), longestPause)
		g.keepAt = g.now().Add(g.pause)
		return
	}
	g.pause = 0
}

// told has the guard write down how far a host knows the log.
func (g *guardKeeper) told(seq uint64) {
	err := g.guard.Told(seq)
	g.telling.Note(g.logger, g.now(), err, "cannot keep what hosts know of the log", "what hosts know of the log is kept", "tenant", g.tenant)
}

func (g *guardKeeper) setBack(now time.Time) {
	if !g.keepAt.IsZero() {
		g.keepAt = now
	}
}
