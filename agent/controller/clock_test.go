package controller

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
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
		c.fold(message.Record{Time: noon}, noon, true)
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
		c.fold(message.Record{Time: noon.Add(-time.Hour)}, noon.Add(-time.Hour), true)
		if got := c.ahead(noon.Add(-time.Hour)); got != 0 {
			t.Errorf("after a record by the clock that was set back the run is ahead by %s", got)
		}
	})
}

// TestClockForFreezes checks which of two clocks tells what freeze is on, when
// the log's newest record is of noon and five minutes have passed since.
func TestClockForFreezes(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	byTheLog := noon.Add(5 * time.Minute)
	for name, c := range map[string]struct {
		// then is what the controller's clock showed when the record came, now what
		// it shows now.
		then, now time.Time
		live      bool
		want      time.Time
	}{
		"both are right":                           {noon, byTheLog, true, byTheLog},
		"it is as far behind as ever":              {noon.Add(-3 * time.Hour), byTheLog.Add(-3 * time.Hour), true, byTheLog},
		"it drifts":                                {noon, byTheLog.Add(-slack), true, byTheLog},
		"it was set back":                          {noon, byTheLog.Add(-2 * time.Hour), true, byTheLog.Add(-2 * time.Hour)},
		"it was behind, and was set back":          {noon.Add(-time.Hour), byTheLog.Add(-3 * time.Hour), true, byTheLog.Add(-3 * time.Hour)},
		"it was behind, and was corrected":         {noon.Add(-3 * time.Hour), byTheLog, true, byTheLog},
		"it is ahead":                              {noon.Add(time.Hour), byTheLog.Add(time.Hour), true, byTheLog.Add(time.Hour)},
		"it is behind a record of before":          {noon.Add(-3 * time.Hour), byTheLog.Add(-3 * time.Hour), false, byTheLog.Add(-3 * time.Hour)},
		"it is right, and the record is of before": {noon, byTheLog, false, byTheLog},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var clock runClock
				clock.fold(message.Record{Time: noon}, c.then, c.live)
				time.Sleep(5 * time.Minute)
				if got := clock.forFreezes(c.now); !got.Equal(c.want) {
					t.Errorf("the time is %s, not %s", got, c.want)
				}
			})
		})
	}
}
