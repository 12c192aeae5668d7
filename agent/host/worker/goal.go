package worker

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// goal is the release by which a host makes its offers: that of its environment, as the site has said
// last. The worker forgets it when it ends, and the site says it again.
type goal struct {
	// pin is nil if the host offers the newest that it finds.
	pin *release.Pin
	// fetchIn is how long after planned the host fetches next what there is to install; never once done is
	// set. Only the goroutine that makes offers uses them.
	planned time.Time
	fetchIn time.Duration
	done    bool
}

// fetchAgain is how long after a failure a host fetches again what a release installs.
const fetchAgain = time.Hour

// digest returns the digest of the release; empty for none.
func (g *goal) digest() string {
	if g == nil || g.pin == nil {
		return ""
	}
	return g.pin.Digest
}

// fetches reports whether the host fetches what there is to install at a time: once for each release,
// and each day if the release installs what there is on that day. What was planned by a clock that was
// ahead is not waited for.
func (g *goal) fetches(now time.Time) bool {
	if g.digest() == "" || g.done {
		return false
	}
	passed := now.Sub(g.planned)
	return passed < 0 || passed >= g.fetchIn
}

// fetched notes that the host has fetched at a time, or why it could not.
func (g *goal) fetched(now time.Time, err error) {
	if g == nil || g.pin == nil {
		return
	}
	g.planned = now
	if err != nil {
		g.fetchIn = fetchAgain
		return
	}
	installs, err := g.pin.Release()
	g.fetchIn, g.done = day, err == nil && installs.Fixed()
}

// offerBy has the host make its offers by a release. What an upgrade would change is unknown until the
// host has made one, at a moment of its own: hosts that are told together do not all fetch at once.
func (w *Worker) offerBy(ctx context.Context, a log.Ask) {
	after := time.Duration(0)
	if a.Within > 0 {
		after = rand.N(a.Within)
	}
	by := &goal{pin: a.Release, planned: w.Now(), fetchIn: after}
	if w.goal.Load().digest() == by.digest() {
		return
	}
	w.goal.Store(by)
	go func() {
		if wait.Sleep(ctx, after) == nil {
			w.offerDue.Set()
		}
	}()
}

// offered is what the last offer changes, and by which goal it was made.
type offered struct {
	by      *goal
	changes int
}

// of returns what an offer changes that was made by a goal; nil if the last one was made by another.
func (o *offered) of(by *goal) *int {
	if o == nil || o.by != by {
		return nil
	}
	return &o.changes
}
