package sim

import (
	"slices"
	"strings"
	"time"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// overdue is how often in a row a run was seen that should have gone on without hosts that
// are late, while its site was well.
type overdue struct {
	at    time.Time
	looks int
}

// watchPatience looks each while whether the run under way waits for hosts that are late
// beyond its patience, at a site that is well and says no other reason. The oracle knows when
// a run should have gone on; only a controller that could have done so is to blame.
func (w *World) watchPatience() {
	seen := map[*site]overdue{}
	for sleep(w.ctx, lookEvery) == nil {
		for _, s := range w.sites {
			if !w.anyDue() {
				delete(seen, s)
				continue
			}
			waits, of := s.waitsForLate()
			w.mu.Lock()
			at, due := w.oracle.In(of).Due()
			now := w.oracle.Now()
			w.mu.Unlock()
			if !due || now.Before(at) || !waits {
				delete(seen, s)
				continue
			}
			w.count("looks at a run that is due to go on without hosts")
			o := seen[s]
			if !o.at.Equal(at) {
				o = overdue{at: at}
			}
			if o.looks++; o.looks >= prompt {
				w.mu.Lock()
				w.violated("one host costs the others their window: the run waits for hosts that are late since %s, and it is %s: %s", at, now, w.oracle.In(of).Summary())
				w.mu.Unlock()
				return
			}
			seen[s] = o
		}
	}
}

// anyDue reports whether a run under way should have gone on without hosts.
func (w *World) anyDue() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.oracle.Now()
	return slices.ContainsFunc(w.oracle.Environments(), func(name string) bool {
		at, due := w.oracle.In(name).Due()
		return due && !now.Before(at)
	})
}

// waitsForLate reports whether the active controller of a site that is well shows a run that
// waits for answers to prepare, and for nothing else, and the environment of that run.
func (s *site) waitsForLate() (waits bool, environment string) {
	c := s.controller()
	if c == nil || !s.isWell(c) {
		return false, ""
	}
	shown, err := c.Snapshot(s.w.ctx)
	if err != nil || shown.Run == nil {
		return false, ""
	}
	return saysLate(shown.Run.WaitingFor), shown.Run.Environment
}

// saysLate reports whether a run waits for hosts to answer prepare, and then goes on without
// them.
func saysLate(w *v1.WaitingFor) bool {
	return w != nil && strings.Contains(w.Detail, " to answer prepare until ")
}
