package worker

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// versionsFirst is how long a reply waits for the report of the versions that
// the host has come to, so that whoever sees the run end sees them. The reply
// does not depend on it.
const versionsFirst = 10 * time.Second

// reportVersions reports the host's versions at the start and whenever it is
// asked to, until ctx ends. It runs beside the loop, because a site that
// cannot be reached must not keep the host from its work.
func (w *Worker) reportVersions(ctx context.Context) error {
	// What the log has is not reported again (AV-76).
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

// report reports the versions when they have changed (AV-74) and returns the
// body that was reported last. A host whose versions cannot be had, or that
// the site refuses, still answers its commands. The error is that of a lost
// seat.
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
	// Checked here, because the site would only refuse it.
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

// warn logs an error unless it only means that the worker is to stop.
func (w *Worker) warn(ctx context.Context, what string, err error) {
	if ctx.Err() == nil {
		w.Log.Warn(what, "host", w.Host, "error", err)
	}
}

// versionsBeforeReply asks for a report that begins from now on, and gives it its
// time.
func (w *Worker) versionsBeforeReply(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, versionsFirst)
	defer cancel()
	reported := make(chan struct{})
	w.reports.Put(reported, struct{}{})
	select {
	case <-reported:
	case <-limited.Done():
		w.warn(ctx, "the reply goes before the versions", limited.Err())
	}
}
