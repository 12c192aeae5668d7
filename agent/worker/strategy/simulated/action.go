package simulated

import (
	"context"
	"fmt"
)

// parts is into how many parts a step is cut, each followed by word of how far
// it is.
const parts = 4

// act carries out one action: time passes, then its effect comes about, and
// whatever is to go wrong goes wrong. The effect is told the fault, if any; it
// runs with mu held.
func (h *Host) act(ctx context.Context, action string, progress func(int, string), effect func(fault string) error) error {
	fault, err := h.fault(action)
	if err != nil {
		return err
	}
	if err := h.pass(ctx, action, progress); err != nil {
		return err
	}
	if err := failure(action, fault); err != nil {
		return err
	}
	switch fault {
	case FaultHang:
		<-ctx.Done()
		return fmt.Errorf("%s hangs: %w", action, ctx.Err())
	case FaultCrash, FaultCrashBefore:
		return h.crash(ctx, action)
	}
	if err := h.locked(func() error { return effect(fault) }); err != nil {
		return fmt.Errorf("cannot %s: %w", action, err)
	}
	if fault == FaultCrashAfter {
		return h.crash(ctx, action)
	}
	return nil
}

func (h *Host) fault(action string) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	faults, err := h.faults()
	return faults[action], err
}

func (h *Host) locked(effect func() error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return effect()
}

// pass lets the time of one step go by.
func (h *Host) pass(ctx context.Context, action string, progress func(int, string)) error {
	if h.options.Step == 0 {
		return ctx.Err()
	}
	for part := 1; part <= parts; part++ {
		if err := h.options.Sleep(ctx, portion(int64(h.options.Step), part)); err != nil {
			return err
		}
		progress(100*part/parts, action)
	}
	return nil
}
