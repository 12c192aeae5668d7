package decide

import (
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
)

// Back-off between two tries of an action.
const (
	firstRetry = 5 * time.Second
	// longestRetry is shorter than the default of prepare-patience, so that a host prepares
	// in time once its mirror is back.
	longestRetry = time.Minute
)

// retry returns the journal of an action that has failed and is to be taken again; false
// if it is not. All tries and the pauses between them fit in the limit of one action,
// however often the worker is started again in between. began is when this try began.
func (j Journal) retry(do Do, err error, began, now time.Time, limit time.Duration) (Journal, bool) {
	if err == nil || !strategy.ClassOf(err).Passes() || !isStrategy(do) {
		return j, false
	}
	r := j.Retry
	if r.Since.IsZero() {
		r.Since = began.UTC().Round(0)
	}
	r.Tries++
	r.Due = now.Add(backOff(r.Tries)).UTC().Round(0)
	late := j.Phase != Verifying && j.Phase != RollingBack && !r.Due.Before(j.NotAfter)
	if late || !r.Due.Before(r.Since.Add(limit)) {
		return j, false
	}
	r.Resume = do == DoUpgrade || do == DoResume
	j.Retry = r
	return j, true
}

// Lasts reports whether several tries have failed, so that a person should know why.
func (r Retry) Lasts() bool { return r.Tries > 1 }

// UntilRetry returns how long the worker waits before the next try; 0 when it is due. A
// clock that was set back delays it by one pause at most.
func (j Journal) UntilRetry(now time.Time) time.Duration {
	if j.Retry.Due.IsZero() {
		return 0
	}
	if pause := j.Retry.Due.Sub(now); pause > 0 && pause <= longestRetry {
		return pause
	}
	return 0
}

// inVain adds to the error of an action how often it was tried.
func (j Journal) inVain(err error) error {
	if err == nil || j.Retry.Tries == 0 {
		return err
	}
	return fmt.Errorf("%w; it was tried %d times since %s", err, j.Retry.Tries+1, j.Retry.Since.UTC().Format(time.RFC3339))
}

// backOff returns the pause after a number of tries.
func backOff(tries int) time.Duration {
	pause := firstRetry
	for range tries - 1 {
		if pause *= 2; pause >= longestRetry {
			return longestRetry
		}
	}
	return pause
}
