package tenantobject

// This file follows a run to its end. It decides when a run has ended and which errors
// to retry. It never starts, changes or ends a run.

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// recheck is how long to rely on events before reading the run again, in case
// the last event was sent before the watch began.
const recheck = 30 * time.Second

// RunReader is the part of the client that reads runs.
type RunReader interface {
	Run(ctx context.Context, tenant string, id uint64) (v1.Run, error)
	Follow(ctx context.Context, tenant, environment string, see func(client.News) (more bool)) error
}

// ForRun returns the run once it has ended, and calls see at each change. It
// retries while the server is unreachable. It fails with the error of ctx, or
// with an answer such as 404 or 403.
func ForRun(ctx context.Context, api RunReader, tenant string, id uint64, see func(v1.Run)) (v1.Run, error) {
	return forRun(ctx, api, tenant, id, see, recheck)
}

func forRun(ctx context.Context, api RunReader, tenant string, id uint64, see func(v1.Run), recheck time.Duration) (v1.Run, error) {
	var last v1.Run
	for asked := false; ; asked = true {
		run, err := api.Run(ctx, tenant, id)
		switch {
		case ctx.Err() != nil:
			return last, ctx.Err()
		case err != nil && (!asked || !temporary(err)):
			return last, err
		case err != nil:
			tflog.Warn(ctx, "cannot read the run; retrying", map[string]any{"run": id, "error": err.Error()})
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

// watch follows the events until the run has ended or recheck has passed.
func watch(ctx context.Context, api RunReader, tenant string, last *v1.Run, see func(v1.Run), recheck time.Duration) error {
	watching, stop := context.WithTimeout(ctx, recheck)
	defer stop()
	err := api.Follow(watching, tenant, "", func(n client.News) bool {
		if n.Run == nil || n.Run.ID != last.ID {
			return true
		}
		*last = *n.Run
		last.Hosts = slices.Clone(last.Hosts) // What is told later changes them.
		see(*last)
		return !last.Finished()
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case watching.Err() != nil, err == nil:
		return nil
	case temporary(err):
		<-watching.Done()
		return ctx.Err()
	default:
		return err
	}
}

// temporary reports whether an error is worth a retry.
func temporary(err error) bool {
	var answer *client.Error
	if !errors.As(err, &answer) {
		return true
	}
	return answer.Status >= http.StatusInternalServerError || answer.Status == http.StatusTooManyRequests
}

// BlockingRun returns the id of the run that the server names as the reason of a refusal, or 0. One
// that freezes changes is not waited for: it may take the whole night, and a person decides what then.
func BlockingRun(err error) uint64 {
	var answer *client.Error
	if !errors.As(err, &answer) || answer.Status != http.StatusPreconditionFailed || client.Frozen(err) {
		return 0
	}
	for _, problem := range answer.Errors {
		if problem.Info.Run != 0 {
			return problem.Info.Run
		}
	}
	return 0
}

// UntilUnblocked waits until the blocking run has ended or is no longer in the
// history. It calls see at each change.
func UntilUnblocked(ctx context.Context, api RunReader, tenant string, id uint64, see func(v1.Run)) error {
	tflog.Info(ctx, fmt.Sprintf("run %d of tenant %s is in progress; waiting for its end", id, tenant))
	last, err := ForRun(ctx, api, tenant, id, see)
	if err == nil || client.HasStatus(err, http.StatusNotFound) {
		return nil
	}
	return fmt.Errorf("cannot wait for the end of run %d, which is in progress%s: %w", id, Standing(last), err)
}

// Standing says what a run waits for, and which hosts are under way, after a semicolon.
func Standing(r v1.Run) string {
	said := ""
	if w := r.WaitingFor; w != nil {
		said = fmt.Sprintf("; it waits for %s: %s", w.What, w.Detail)
	}
	var busy []string
	for _, h := range r.Hosts {
		if !isDone(h.Status) {
			busy = append(busy, h.Hostname+" ("+h.Status+")")
		}
	}
	switch {
	case len(busy) > mostNamed:
		busy = append(busy[:mostNamed], "…")
	case len(busy) == 0:
		return said
	}
	return said + "; not done yet: " + strings.Join(busy, ", ")
}

// mostNamed is how many hosts an error names.
const mostNamed = 10

// isDone reports whether a host of a run is done.
func isDone(status string) bool {
	switch status {
	case "upgraded", "failed", "skipped", "unreachable":
		return true
	default:
		return false
	}
}
