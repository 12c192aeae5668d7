package worker

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// versionsFirst is how long a reply waits for the report of the versions that
// the host has come to, so that whoever sees the run end sees them. The reply
// does not depend on it.
const versionsFirst = 10 * time.Second

// desk takes orders for reports. Those that wait are filled by one report.
type desk struct {
	mu      *sync.Mutex
	waiting []chan struct{}
	some    chan struct{}
}

func newDesk() *desk {
	return &desk{mu: &sync.Mutex{}, some: make(chan struct{}, 1)}
}

// order asks for a report that begins from now on; what it returns is closed
// when that is over.
func (d *desk) order() <-chan struct{} {
	done := make(chan struct{})
	d.mu.Lock()
	d.waiting = append(d.waiting, done)
	d.mu.Unlock()
	select {
	case d.some <- struct{}{}:
	default:
	}
	return done
}

// take returns the orders that wait.
func (d *desk) take() []chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	orders := d.waiting
	d.waiting = nil
	return orders
}

// await returns the orders that wait once there are some.
func (d *desk) await(ctx context.Context) ([]chan struct{}, error) {
	for {
		if orders := d.take(); len(orders) > 0 {
			return orders, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-d.some:
		}
	}
}

// reportVersions reports the host's versions at the start and whenever it is
// ordered to, until ctx ends. It runs beside the loop, because a site that
// cannot be reached must not keep the host from its work.
func (w *Worker) reportVersions(ctx context.Context) error {
	// What the log has is not reported again (AV-76).
	reported, err := w.Station.LastVersions(ctx)
	if errors.Is(err, log.ErrTaken) {
		return err
	}
	if err != nil {
		w.Log.Warn("cannot read the versions reported before", "host", w.Host, "error", err)
	}
	orders := w.desk.take()
	for {
		if reported, err = w.report(ctx, reported); err != nil {
			return err
		}
		for _, done := range orders {
			close(done)
		}
		if orders, err = w.desk.await(ctx); err != nil {
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
		err = w.Station.Versions(ctx, body)
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

// versionsBeforeReply orders a report and gives it its time.
func (w *Worker) versionsBeforeReply(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, versionsFirst)
	defer cancel()
	select {
	case <-w.desk.order():
	case <-limited.Done():
		w.warn(ctx, "the reply goes before the versions", limited.Err())
	}
}
