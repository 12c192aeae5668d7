package jetstream

import (
	"testing"
	"time"
)

// TestReconnectDelay checks that hosts come back soon at first, and the more
// spread out the longer the site does not let them in.
func TestReconnectDelay(t *testing.T) {
	t.Parallel()
	for attempt, most := range map[int]time.Duration{0: 3 * time.Second, 1: 3 * time.Second, 2: 5 * time.Second, 5: 33 * time.Second, 1 << 40: 33 * time.Second} {
		var longest time.Duration
		for range 1000 {
			delay := ReconnectDelay(attempt)
			if delay < time.Second || delay >= most {
				t.Fatalf("before attempt %d it waits for %s", attempt, delay)
			}
			longest = max(longest, delay)
		}
		if longest < most/2 {
			t.Errorf("before attempt %d it waits for %s at the most, and should for up to %s", attempt, longest, most)
		}
	}
}
