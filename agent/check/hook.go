package check

import (
	"context"
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/policy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wait"
)

// hook runs a hook until it succeeds or has no retry left.
func (r *Runner) hook(ctx context.Context, t message.Task, h policy.Hook) error {
	attempt, err := r.attempt(t, h)
	if err != nil {
		return err
	}
	for tried := 1; ; tried++ {
		err := within(ctx, h.Timeout.Duration(), attempt)
		if err == nil {
			return nil
		}
		r.failed(ctx, t, "hook", err)
		if tried > h.Retried() || wait.Sleep(ctx, h.RetryInterval.Duration()) != nil {
			return fmt.Errorf("%s failed; the last one said: %w", tries(tried), err)
		}
	}
}

// attempt returns what tries a hook. The error is one that never could succeed
// here.
func (r *Runner) attempt(t message.Task, h policy.Hook) (try, error) {
	switch h.Type {
	case policy.Exec:
		return r.script(t, h.Script, h.Args)
	case policy.HTTP:
		return func(ctx context.Context) error { return r.call(ctx, t, h) }, nil
	default:
		return nil, fmt.Errorf("the type %q is unknown to this agent; update it", h.Type)
	}
}

func within(ctx context.Context, limit time.Duration, attempt try) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return attempt(ctx)
}
