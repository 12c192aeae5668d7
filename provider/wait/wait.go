// Package wait follows a run until it has ended.
//
// It decides when a run is over and when an error is only a gap in what it
// hears. It never starts, changes or ends a run.
package wait

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// recheck is how long the events are trusted before the run is asked for
// again, in case the event that matters came before the watching began.
const recheck = 30 * time.Second

// API is what is needed of the client.
type API interface {
	Run(ctx context.Context, tenant string, id uint64) (v1.Run, error)
	Watch(ctx context.Context, tenant string, see func(v1.Run) (more bool)) error
}

// ForRun returns the run when it has ended. Each change goes to see on the
// way. It ends with the error of ctx, or with an answer that says that the run
// cannot be followed; a server that cannot be reached is waited for.
func ForRun(ctx context.Context, api API, tenant string, id uint64, see func(v1.Run)) (v1.Run, error) {
	return forRun(ctx, api, tenant, id, see, recheck)
}

func forRun(ctx context.Context, api API, tenant string, id uint64, see func(v1.Run), recheck time.Duration) (v1.Run, error) {
	var last v1.Run
	for asked := false; ; asked = true {
		run, err := api.Run(ctx, tenant, id)
		switch {
		case ctx.Err() != nil:
			return last, ctx.Err()
		case err != nil && (!asked || !passing(err)):
			return last, err
		case err != nil:
			tflog.Warn(ctx, "cannot ask for the run, waiting on", map[string]any{"run": id, "error": err.Error()})
		default:
			last = run
			see(run)
		}
		if last.Finished() {
			return last, nil
		}
		if err := watch(ctx, api, tenant, &last, see, recheck); err != nil {
			return last, err
		}
		if last.Finished() {
			return last, nil
		}
	}
}

// watch follows the events until the run has ended or it is time to ask.
func watch(ctx context.Context, api API, tenant string, last *v1.Run, see func(v1.Run), recheck time.Duration) error {
	watching, stop := context.WithTimeout(ctx, recheck)
	defer stop()
	err := api.Watch(watching, tenant, func(run v1.Run) bool {
		if run.ID != last.ID {
			return true
		}
		*last = run
		see(run)
		return !run.Finished()
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case watching.Err() != nil, err == nil:
		return nil
	case passing(err):
		<-watching.Done()
		return ctx.Err()
	default:
		return err
	}
}

// passing reports whether an error may be over by itself soon.
func passing(err error) bool {
	var answer *client.Error
	if !errors.As(err, &answer) {
		return true
	}
	return answer.Status >= http.StatusInternalServerError || answer.Status == http.StatusTooManyRequests
}

// InTheWay is the id of the run that an answer names as the reason of a
// refusal, or 0.
func InTheWay(err error) uint64 {
	var answer *client.Error
	if !errors.As(err, &answer) || answer.Status != http.StatusPreconditionFailed {
		return 0
	}
	for _, problem := range answer.Errors {
		if problem.Info.Run != 0 {
			return problem.Info.Run
		}
	}
	return 0
}

// UntilFree returns when the run that stands in the way has ended, or is not
// kept any more.
func UntilFree(ctx context.Context, api API, tenant string, id uint64) error {
	tflog.Info(ctx, fmt.Sprintf("run %d of tenant %s is under way; waiting for its end", id, tenant))
	_, err := ForRun(ctx, api, tenant, id, func(v1.Run) {})
	if err == nil || client.HasStatus(err, http.StatusNotFound) {
		return nil
	}
	return fmt.Errorf("cannot wait for the end of run %d, which is under way: %w", id, err)
}
