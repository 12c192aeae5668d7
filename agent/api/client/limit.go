package client

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
)

// limit paces all requests of a client together, by what the server says. After an answer
// 429 no request is sent until the server wants requests again. From then on requests keep
// a gap, which each further 429 doubles and success halves: a client that sent all that
// wait at once would use up the tries of each of them.
type limit struct {
	mu sync.Mutex
	// until is when the server wants requests again, next when the gap since the last
	// request ends.
	until, next time.Time
	gap         time.Duration
	// raised is when the gap was raised last. An answer to a request that was sent
	// before says nothing about it.
	raised time.Time
	// successes counts the answers other than 429 since the gap has changed.
	successes int
}

// The gap between requests after a 429, and how many successes halve it.
const (
	shortestGap = 50 * time.Millisecond
	longestGap  = 5 * time.Second
	proof       = 10
)

// take returns how long a request must wait, after which it asks again; 0 means that it is
// sent now.
func (l *limit) take(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.until
	if l.gap > 0 && l.next.After(at) {
		at = l.next
	}
	if at.After(now) {
		return at.Sub(now)
	}
	l.next = now.Add(l.gap)
	return 0
}

// note learns from the answer to a request. after is the time that the server asked to
// wait; 0 if it named none.
func (l *limit) note(sent, now time.Time, status int, after time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if status != http.StatusTooManyRequests {
		if l.successes++; l.gap > 0 && l.successes >= proof {
			l.gap, l.successes = l.gap/2, 0
		}
		if l.gap < shortestGap {
			l.gap = 0
		}
		return
	}
	if until := now.Add(after); until.After(l.until) {
		l.until = until
	}
	if sent.After(l.raised) {
		l.gap, l.raised, l.successes = min(max(2*l.gap, shortestGap), longestGap), now, 0
	}
}

// wait waits until a request may be sent. It returns how long that would take if ctx ends
// before.
func (l *limit) wait(ctx context.Context) (tooLong time.Duration) {
	for {
		now := time.Now()
		pause := l.take(now)
		if pause <= 0 {
			return 0
		}
		if deadline, bounded := ctx.Deadline(); bounded && now.Add(pause).After(deadline) {
			return pause
		}
		if wait.Sleep(ctx, pause) != nil {
			return 0 // The request fails by the context.
		}
	}
}
