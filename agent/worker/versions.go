package worker

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// versionsFirst is how long a reply waits for the report of the new versions, so
// that they are known when the run ends. The reply does not depend on the report.
const versionsFirst = 10 * time.Second

// reportVersions reports the host's versions at the start and on request, until
// ctx ends. It runs beside the loop, because an unreachable site must not delay
// the steps.
func (w *Worker) reportVersions(ctx context.Context) error {
	// Versions that the site already has are not reported again (AV-76).
	reported, err := w.HostLog.LastVersions(ctx)
	if errors.Is(err, log.ErrTaken) {
		return err
	}
	if err != nil {
		w.Log.Warn("cannot read the versions reported before", "host", w.Host, "error", err)
	}
	for {
		waiting := w.reports.Take()
		if reported, err = w.report(ctx, reported); err != nil {
			return err
		}
		for _, caller := range waiting {
			close(caller.Key)
		}
		if err = w.reports.Wait(ctx); err != nil {
			return err
		}
	}
}

// report reports the versions if they have changed (AV-74) and returns the last
// reported body. It returns an error only if the lease is lost: a host whose
// versions cannot be detected or reported still executes commands.
func (w *Worker) report(ctx context.Context, reported []byte) ([]byte, error) {
	limited, cancel := context.WithTimeout(ctx, w.Limits.Step)
	defer cancel()
	versions, err := w.Strategy.Versions(limited)
	if err != nil {
		w.warn(ctx, "cannot detect versions", err)
		return reported, nil
	}
	body := message.EncodeVersions(versions)
	if bytes.Equal(body, reported) {
		return reported, nil
	}
	// The site would refuse invalid versions.
	if _, err = message.DecodeVersions(body); err == nil {
		err = w.HostLog.Versions(ctx, body)
	}
	if errors.Is(err, log.ErrTaken) {
		return reported, err
	}
	if err != nil {
		w.warn(ctx, "cannot report versions", err)
	}
	if err != nil && !errors.Is(err, log.ErrRefused) {
		return reported, nil
	}
	return body, nil
}

// warn logs an error unless the worker is stopping.
func (w *Worker) warn(ctx context.Context, what string, err error) {
	if ctx.Err() == nil {
		w.Log.Warn(what, "host", w.Host, "error", err)
	}
}

// versionsBeforeReply requests a report that begins now, and waits for it up to
// versionsFirst.
func (w *Worker) versionsBeforeReply(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, versionsFirst)
	defer cancel()
	reported := make(chan struct{})
	w.reports.Put(reported, struct{}{})
	select {
	case <-reported:
	case <-limited.Done():
		w.warn(ctx, "the reply is sent before the versions", limited.Err())
	}
}
