package exec

import (
	"fmt"
	"time"
)

// Timeouts bounds each action, twice over: the wait for an earlier script to
// end, and then the script itself. Zero means the default.
type Timeouts struct {
	// Versions is 1 minute by default.
	Versions time.Duration
	// Prepare is 1 hour by default.
	Prepare time.Duration
	// Upgrade is 1 hour by default.
	Upgrade time.Duration
	// Resume is 1 hour by default: it waits for an upgrade that goes on.
	Resume time.Duration
	// Verify is 10 minutes by default.
	Verify time.Duration
	// Rollback is 1 hour by default.
	Rollback time.Duration
}

// WithStep is the limits of scripts that may take as long as a step. Those that
// only look at the host have no more than their default: one that hangs keeps
// the others waiting for the lock.
func WithStep(step time.Duration) Timeouts {
	return Timeouts{
		Versions: min(step, defaultLimit(actionVersions)), Verify: min(step, defaultLimit(actionVerify)),
		Prepare: step, Upgrade: step, Resume: step, Rollback: step,
	}
}

// limits is the table of them with the defaults filled in.
func (t Timeouts) limits() (map[action]time.Duration, error) {
	limits := map[action]time.Duration{
		actionVersions: t.Versions,
		actionPrepare:  t.Prepare,
		actionUpgrade:  t.Upgrade,
		actionResume:   t.Resume,
		actionVerify:   t.Verify,
		actionRollback: t.Rollback,
	}
	for a, limit := range limits {
		if limit < 0 {
			return nil, fmt.Errorf("the time limit of %s is %s; use more than 0s", a, limit)
		}
		if limit == 0 {
			limits[a] = defaultLimit(a)
		}
	}
	return limits, nil
}

func defaultLimit(a action) time.Duration {
	switch a {
	case actionVersions:
		return time.Minute
	case actionVerify:
		return 10 * time.Minute
	default:
		return time.Hour
	}
}
