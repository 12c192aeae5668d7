// Package wait lets goroutines wait: for some time (Sleep), for a change (Signal, and
// Watchers when many wait), for the latest values of something that changes faster
// than it can be handled (Queue), or for the result of a call that many need at once
// (Shared). The sender of a signal or value never waits for the reader.
package wait

import (
	"context"
	"sync"
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

// Watchers are the signals of those who watch something that changes. The zero value
// has none.
type Watchers struct {
	mu  sync.Mutex
	all map[Signal]bool
}

// Add adds a watcher, who calls leave in the end.
func (w *Watchers) Add() (changed Signal, leave func()) {
	signal := NewSignal()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[Signal]bool{}
	}
	w.all[signal] = true
	return signal, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.all, signal)
	}
}

// Notify sets the signals of all watchers.
func (w *Watchers) Notify() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for signal := range w.all {
		signal.Set()
	}
}

// Count returns how many watchers there are.
func (w *Watchers) Count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.all)
}
