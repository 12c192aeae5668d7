package sim

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/oracle"
)

// mayTake is at how many looks in a row a host can begin that does not, at a site that is well: its
// controller may have to try each of its writes again and again.
const mayTake = 18

// watchStartable looks each while which hosts could begin, at a site that is well, by the records that its
// controller knows. Whatever other runs do, such a host begins soon.
func (w *World) watchStartable() {
	seen := map[*site]map[oracle.Startable]int{}
	for sleep(w.ctx, lookEvery) == nil {
		w.mu.Lock()
		all := w.oracle.Startable()
		w.mu.Unlock()
		for _, s := range w.sites {
			before := seen[s]
			seen[s] = map[oracle.Startable]int{}
			c := s.controller()
			if c == nil || s.isGathering() || !s.isWell(c) || s.isFrozen() {
				continue
			}
			for _, of := range all {
				w.count("looks at a host that could begin")
				if seen[s][of] = before[of] + 1; seen[s][of] >= mayTake {
					w.mu.Lock()
					w.violated("independence: %s can begin since record %d, and does not: %s", of.Host, of.Since, w.oracle.In(of.Environment).Summary())
					w.mu.Unlock()
					return
				}
			}
		}
	}
}

// isFrozen reports whether the controller of a site was given a freeze that is in force.
func (s *site) isFrozen() bool {
	s.mu.Lock()
	p := s.p
	s.mu.Unlock()
	f, now := p.freeze(), time.Now()
	return !now.Before(f.Start) && now.Before(f.End)
}
