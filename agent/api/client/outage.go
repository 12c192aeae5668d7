package client

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// outage remembers that the server does not answer, so that many requests do not wait
// for it one after the other.
type outage struct {
	// lasts is for how long a failure is remembered; 0 is never.
	lasts time.Duration

	mu    sync.Mutex
	until time.Time
	why   error
}

// hungAfter is how long a caller must have waited for an answer before the end of its
// patience says something about the server.
const hungAfter = 10 * time.Second

// lastingAt returns why the server did not answer, if that is remembered.
func (o *outage) lastingAt(now time.Time) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now.Before(o.until) {
		return o.why
	}
	return nil
}

// note remembers how a request ended that took so long: err is nil if it had an answer.
func (o *outage) note(ctx context.Context, now time.Time, took time.Duration, err error) {
	stopped := errors.Is(ctx.Err(), context.Canceled) || ctx.Err() != nil && took < hungAfter
	if o.lasts == 0 || err != nil && stopped {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.until, o.why = time.Time{}, nil
	if err != nil {
		o.until, o.why = now.Add(o.lasts), err
	}
}

type patientKey struct{}

// Patient returns a context whose requests are sent although an earlier one had no answer,
// and once only if they have none themselves: the caller waits for the server, and finds out
// what became of a change.
func Patient(ctx context.Context) context.Context { return context.WithValue(ctx, patientKey{}, true) }

func isPatient(ctx context.Context) bool { return ctx.Value(patientKey{}) != nil }

// Silent reports whether err says that the server gave no answer. Whether it has done what
// the request asks for is not known then. An address that does not exist, or a certificate
// that is not trusted, is no silence: waiting does not help.
func Silent(err error) bool {
	call, ok := errors.AsType[*CallError](err)
	if !ok || call.cause == nil || hopeless(call.cause) {
		return false
	}
	name, unresolved := errors.AsType[*net.DNSError](call.cause)
	return !unresolved || !name.IsNotFound
}

// Unsent reports whether err says that there was no connection to send the request on.
func Unsent(err error) bool {
	call, ok := errors.AsType[*CallError](err)
	return ok && unsent(call.cause)
}
