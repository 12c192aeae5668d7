package log

import (
	"context"
	"errors"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wait"
)

// ErrStale means that who follows the log, or a store, may have missed something
// and has to begin anew from what was seen last.
var ErrStale = errors.New("something may be missing; follow anew")

// StaleRest is the wait before something is followed anew.
const StaleRest = time.Second

// Again calls follow, and calls it anew each time that it fails with ErrStale.
// warn is called with that error before; nil is allowed.
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
