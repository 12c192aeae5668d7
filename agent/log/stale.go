package log

import (
	"context"
	"errors"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
)

// ErrStale means that a follower of the log, or a watch of a store, may have missed
// something and must start again after the last record or entry that it has seen.
var ErrStale = errors.New("something may be missing; follow anew")

// StaleRest is the wait before something is followed again.
const StaleRest = time.Second

// Again calls follow, and calls it again each time it fails with ErrStale. Before
// that it calls warn with the error; warn may be nil.
func Again(ctx context.Context, follow func() error, warn func(error)) error {
	for {
		err := follow()
		if ctx.Err() != nil || !errors.Is(err, ErrStale) {
			return err
		}
		if warn != nil {
			warn(err)
		}
		_ = wait.Sleep(ctx, StaleRest)
	}
}
