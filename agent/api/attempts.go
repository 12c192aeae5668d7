package api

import (
	"context"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
)

// maxAttempts is how many attempts may fail from one source in each attemptsEach. A secret
// cannot be guessed; this keeps an attempt from costing the site more than who attempts.
// maxSources bounds the sources that are counted: beyond it all others count as one, but for
// those that have proved who they are before.
const maxAttempts, attemptsEach, maxSources = 10, time.Minute, 10_000

// attemptWait is how long an attempt waits for others of its source.
const attemptWait = 5 * time.Second

// attempts limits attempts to prove something, such as a password, that fail.
//
// Of one source at most maxAttempts fail in each attemptsEach, however many come at once: an
// attempt under way counts as failed until it has ended. One that comes when those under way
// could reach the limit waits until one of them has ended, so that right ones are not
// refused for coming together.
type attempts struct {
	// what says what there were too many of, such as "logins have failed".
	what string
	// known are the sources that always count for themselves; nil means none.
	known *principal.Sources

	mu      sync.Mutex
	begun   time.Time
	sources map[string]*tally
}

// tally counts the attempts from one source since attempts.begun.
type tally struct {
	name             string
	failed, underWay int
	// ended is closed and replaced when one ends.
	ended chan struct{}
}

// try makes an attempt from a source, or returns why it is not made. attempt says whether
// its error counts as failed: what the site cannot do is no fault of who asks.
func (a *attempts) try(ctx context.Context, from string, attempt func() (failed bool, err error)) error {
	at, err := a.begin(ctx, from)
	if err != nil {
		return err
	}
	failed := true // One that panics, too.
	defer func() { a.end(at, failed) }()
	failed, err = attempt()
	return err
}

// begin waits until a source may make one more attempt, and counts it as under way.
func (a *attempts) begin(ctx context.Context, from string) (*tally, error) {
	ctx, stop := context.WithTimeout(ctx, attemptWait)
	defer stop()
	for {
		at, ended, err := a.reserve(from, time.Now())
		if err != nil || ended == nil {
			return at, err
		}
		select {
		case <-ended:
		case <-ctx.Done():
			return nil, principal.ErrBusy
		}
	}
}

// reserve counts an attempt from a source as under way. Otherwise it returns why none may be
// made, or a channel that is closed when one of those under way has ended.
func (a *attempts) reserve(from string, now time.Time) (*tally, <-chan struct{}, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	// A clock that was set back must not block for long.
	if since := now.Sub(a.begun); a.sources == nil || since >= attemptsEach || since < 0 {
		a.begun, a.sources = now, map[string]*tally{}
	}
	name := from
	if _, counted := a.sources[name]; !counted && len(a.sources) >= maxSources && (a.known == nil || !a.known.Has(name)) {
		name = "elsewhere"
	}
	at := a.sources[name]
	if at == nil {
		at = &tally{name: name, ended: make(chan struct{})}
		a.sources[name] = at
	}
	switch {
	case at.failed >= maxAttempts:
		left := a.begun.Add(attemptsEach).Sub(now)
		return nil, nil, problem(http.StatusTooManyRequests, "", "", "too many %s from %s; try again in %s", a.what, from, left.Round(time.Second))
	case at.failed+at.underWay >= maxAttempts:
		return nil, at.ended, nil
	}
	at.underWay++
	return at, nil, nil
}

// end counts an attempt as ended.
func (a *attempts) end(at *tally, failed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at.underWay--
	if failed {
		at.failed++
	}
	close(at.ended)
	at.ended = make(chan struct{})
	if at.failed == 0 && at.underWay == 0 && a.sources[at.name] == at {
		delete(a.sources, at.name)
	}
}

// source is where a request comes from: an address, and of IPv6 the network that one
// machine may have to itself.
func source(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	address := at.Addr().Unmap()
	if address.Is6() {
		if network, err := address.Prefix(64); err == nil {
			return network.String()
		}
	}
	return address.String()
}
