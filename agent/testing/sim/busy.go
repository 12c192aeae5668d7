package sim

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/worker"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// inFlight is how long a worker may take between its last look at the busy leases and the
// start of the package manager.
const inFlight = 5 * time.Second

var _ worker.Busy = system{}

// becomeBusy puts a busy lease on a machine, which ends after a while or is given back.
func (m *machine) becomeBusy() {
	w := m.w
	reason := one(w.rng, "busy reason/"+m.name, "backup", "batch")
	lasts := w.rng.span("busy for/"+m.name, time.Second, 8*time.Minute)
	w.note("%s is busy with %s for %s", m.name, reason, lasts)
	w.mu.Lock()
	defer w.mu.Unlock()
	end := time.Now().Add(lasts)
	m.setBusy(reason, end)
	w.after(lasts, func() { m.endBusy(reason, end) })
	if w.rng.chance("busy given back/"+m.name, 0.5) {
		w.after(w.rng.span("busy given back/"+m.name, 0, lasts), func() { m.endBusy(reason, end) })
	}
}

func (m *machine) endBusy(reason string, end time.Time) {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	if m.busy[reason].Equal(end) { // Another one of this name may have followed.
		m.setBusy(reason, time.Time{})
	}
}

// setBusy puts a busy lease on the machine, or with no end takes it away, with the world's
// lock held.
func (m *machine) setBusy(reason string, end time.Time) {
	if m.busy[reason] = end; end.IsZero() {
		delete(m.busy, reason)
	}
	switch {
	case len(m.busy) == 0:
		m.busySince = time.Time{}
		m.w.note("%s is idle", m.name)
	case m.busySince.IsZero():
		m.busySince = time.Now()
	}
	close(m.busyChanged)
	m.busyChanged = make(chan struct{})
}

// Now implements worker.Busy.
func (s system) Now() *message.NotNow {
	s.m.w.mu.Lock()
	defer s.m.w.mu.Unlock()
	reasons := slices.Sorted(maps.Keys(s.m.busy))
	if len(reasons) == 0 {
		return nil
	}
	said := message.NewNotNow(reasons[0], s.m.busy[reasons[0]])
	return &said
}

// Watch implements worker.Busy.
func (s system) Watch(ctx context.Context, changed func()) error {
	for {
		s.m.w.mu.Lock()
		next := s.m.busyChanged
		s.m.w.mu.Unlock()
		changed()
		if s.m.w.fault("busy: watch breaks", s.m.name) {
			return errors.New("sim: too many watches")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-next:
		}
	}
}
