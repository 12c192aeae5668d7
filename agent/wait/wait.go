// Package wait lets goroutines wait: for some time (Sleep), for a change (Signal), or
// for the latest values of something that changes faster than it can be handled
// (Queue). The sender of a signal or value never waits for the reader.
package wait

import (
	"context"
	"time"
)

// Sleep waits for some time. Its error is that of a context that ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Signal wakes one reader. Signals that come before the reader receives are one.
type Signal chan struct{}

// NewSignal makes a signal that is not set.
func NewSignal() Signal { return make(Signal, 1) }

// Set wakes the reader.
func (s Signal) Set() {
	select {
	case s <- struct{}{}:
	default:
	}
}
