package worker

import (
	"context"
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy"
)

// Retry says that a step has failed for a reason that may pass by itself, and is to be
// taken again.
type Retry struct {
	// Tries counts the tries that failed so, and Since is when the first of them began.
	Tries int       `json:"tries"`
	Since time.Time `json:"since,omitzero"`
	// Due is when the next try begins.
	Due time.Time `json:"due,omitzero"`
	// Resume means that the next try asks first what the last one has done.
	Resume bool `json:"resume,omitempty"`
}

// Back-off between two tries of a step.
const (
	firstRetry   = 5 * time.Second
	longestRetry = 5 * time.Minute
)

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

// retry returns the journal of a step that has failed and is to be taken again; false
// if it is not. All tries and the pauses between them fit in the limit of one step,
// however often the worker is started again in between. began is when this try began.
func (j Journal) retry(do Do, err error, began, now time.Time, limit time.Duration) (Journal, bool) {
	if err == nil || !strategy.ClassOf(err).Passes() || !isStrategy(do) {
		return j, false
	}
	r := j.Retry
	if r.Tries == 0 {
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

// isStrategy reports whether a step is a call of the strategy.
func isStrategy(do Do) bool {
	switch do {
	case DoPrepare, DoUpgrade, DoResume, DoVerify, DoRollback:
		return true
	default:
		return false
	}
}

// untilRetry returns how long the worker waits before the next try; 0 when it is due. A
// clock that was set back delays it by one pause at most.
func (j Journal) untilRetry(now time.Time) time.Duration {
	if j.Retry.Tries == 0 {
		return 0
	}
	if pause := j.Retry.Due.Sub(now); pause > 0 && pause <= longestRetry {
		return pause
	}
	return 0
}

// inVain adds to the error of a step how often it was tried.
func (j Journal) inVain(err error) error {
	if err == nil || j.Retry.Tries == 0 {
		return err
	}
	return fmt.Errorf("%w; it was tried %d times since %s", err, j.Retry.Tries+1, j.Retry.Since.UTC().Format(time.RFC3339))
}

// awaitRetry waits until the next try is due, or the lease changes.
func (w *Worker) awaitRetry(ctx context.Context, now leaseTerm) error {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(now.ctx, cancel)
	defer stop()
	if wait.Sleep(waiting, w.journal.untilRetry(w.Now())) != nil && ctx.Err() == nil {
		return errMoved
	}
	return ctx.Err()
}

// tellRetry tells people why a step is taken again, and when.
func (w *Worker) tellRetry(do Do, next Journal, err error) {
	text := fmt.Sprintf("%s: %s; it is tried again in %s, for the %s time", do, message.CleanText(err.Error()),
		next.untilRetry(w.Now()).Round(time.Second), ordinal(next.Retry.Tries+1))
	w.Log.Warn("step is to be taken again", "host", w.Host, "run", next.Run, "step", do, "class", strategy.ClassOf(err), "due", next.Retry.Due, "error", err)
	if err := w.HostLog.Progress(message.Progress{Run: next.Run, Percent: -1, Message: text}); err != nil {
		w.Log.Debug("cannot send progress", "host", w.Host, "error", err)
	}
}

func ordinal(n int) string {
	switch n {
	case 2:
		return "2nd"
	case 3:
		return "3rd"
	default:
		return fmt.Sprintf("%dth", n)
	}
}
