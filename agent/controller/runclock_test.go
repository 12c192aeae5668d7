package controller

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// TestRunClock checks that a clock which is set back in the middle of a run is
// made up for, and one that is right or ahead is left as it is.
func TestRunClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c runClock
		noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
		if got := c.ahead(noon); got != 0 {
			t.Errorf("before any record the run is ahead by %s", got)
		}
		c.fold(message.Record{Time: noon})
		time.Sleep(5 * time.Minute)
		for shown, want := range map[time.Duration]time.Duration{
			5 * time.Minute:               0,
			5*time.Minute - time.Hour:     time.Hour,
			5*time.Minute + time.Hour:     0,
			5*time.Minute - time.Second:   time.Second,
			-20 * 365 * 24 * time.Hour:    20*365*24*time.Hour + 5*time.Minute,
			5*time.Minute + 100*time.Hour: 0,
		} {
			if got := c.ahead(noon.Add(shown)); got != want {
				t.Errorf("where the clock shows %s after the record, the run is ahead by %s, not %s", shown, got, want)
			}
		}
		c.fold(message.Record{Time: noon.Add(-time.Hour)})
		if got := c.ahead(noon.Add(-time.Hour)); got != 0 {
			t.Errorf("after a record by the clock that was set back the run is ahead by %s", got)
		}
	})
}
