package client

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestLimit_holdsAllRequests: a 429 to one request is one to all; a request that may not
// wait so long fails at once, and says why.
func TestLimit_holdsAllRequests(t *testing.T) {
	t.Parallel()
	var sent atomic.Int32
	bubble(t, func(w http.ResponseWriter, _ *http.Request) {
		if sent.Add(1) == 1 {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		_, _ = w.Write([]byte("[]"))
	}, func(t *testing.T, c *Client) {
		begin := time.Now()
		done := make(chan time.Duration, 2)
		ask := func() {
			if _, err := c.Hosts(t.Context(), "acme", ""); err != nil {
				t.Error(err)
			}
			done <- time.Since(begin)
		}
		go ask()
		time.Sleep(time.Second)
		short, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := c.Hosts(short, "acme", "")
		wantError(t, err, "not sent: the server has answered 429 Too Many Requests and wants no request for another 6s")
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the cause of %v is not the deadline", err)
		}
		wantEqual(t, "simulated time of the request that may not wait", time.Since(begin), time.Second)
		go ask()
		first, second := <-done, <-done
		if first != 7*time.Second || second < 7*time.Second || second > 8*time.Second {
			t.Errorf("the requests were answered after %s and %s, want 7s, and soon after it", first, second)
		}
		wantEqual(t, "requests sent", sent.Load(), 3)
	})
}

// TestLimit_keepsToTheRateOfTheServer: ten at once against a server that takes so many
// requests a second, and says when to come again. Every request succeeds, with few refusals
// and not much slower than the server allows; afterwards the gap is gone.
func TestLimit_keepsToTheRateOfTheServer(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		every      time.Duration
		retryAfter string
		most       time.Duration
		refusals   int
	}{
		"one a second":        {time.Second, "1", 150 * time.Second, 40},
		"ten a second":        {100 * time.Millisecond, "1", 40 * time.Second, 40},
		"without Retry-After": {100 * time.Millisecond, "", 40 * time.Second, 60},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var next time.Time
			var refusals int
			bubble(t, func(w http.ResponseWriter, _ *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				if now := time.Now(); !now.Before(next) {
					next = now.Add(row.every)
					_, _ = w.Write([]byte("[]"))
					return
				}
				refusals++
				if row.retryAfter != "" {
					w.Header().Set("Retry-After", row.retryAfter)
				}
				w.WriteHeader(http.StatusTooManyRequests)
			}, func(t *testing.T, c *Client) {
				begin := time.Now()
				var all sync.WaitGroup
				for range 10 {
					all.Go(func() {
						for range 8 {
							if _, err := c.Hosts(t.Context(), "acme", ""); err != nil {
								t.Error(err)
							}
						}
					})
				}
				all.Wait()
				if took := time.Since(begin); took > row.most || refusals > row.refusals {
					t.Errorf("took %s with %d refusals, want %s and %d at most", took, refusals, row.most, row.refusals)
				}
				row.every = 0
				for range 200 {
					if _, err := c.Hosts(t.Context(), "acme", ""); err != nil {
						t.Fatal(err)
					}
				}
				wantEqual(t, "gap after success", c.limit.gap, 0)
			})
		})
	}
}
