package oracle

import (
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// health is how the checks before a run prepares any host came out, by the host that is asked; the site
// has no name.
type health map[string]said

// said is what the site or a host said; waiting means that it has yet to say something.
type said struct{ waiting, failed bool }

func newHealth(groups []rollout.StartGroup) health {
	h := health{}
	for _, g := range groups {
		for _, host := range g.Hosts {
			h[host] = said{waiting: true}
		}
		if len(g.Hosts) == 0 {
			h[""] = said{waiting: true}
		}
	}
	return h
}

// healthCounts reports whether the outcome of checks before the run may count.
func (p *run) healthCounts(t message.Outcome) bool {
	return p.id == 0 && t.Run == p.opened && t.Attempt == 0 && p.awaitsHealth(t.Host)
}

// awaitsHealth reports whether the run waits for what the site, which has no name, or a host says that
// still takes part in it.
func (p *run) awaitsHealth(host string) bool {
	m := p.member(host)
	return p.health[host].waiting && (host == "" || m != nil && !m.removed && !m.ended)
}

// healthRan applies the outcome of checks before the run, and judges that they have passed where they were
// run, if it says so.
func (o *Oracle) healthRan(t message.Outcome, r message.Decoded) {
	if o.isMadeUp(t) {
		o.violated("invariant 14: the start checks of %q of run %d pass by record %d, and nobody has passed them", t.Host, t.Run, r.Seq)
	}
	if o.neverCame(t) {
		o.count("start checks whose outcome never came")
	}
	o.run.health[t.Host] = said{failed: !t.OK}
}

// isHealthy judges that each check before a run has passed when it prepares its hosts (invariant 14).
func (o *Oracle) isHealthy(r message.Decoded) {
	for host, says := range o.run.health {
		if o.run.awaitsHealth(host) || says.failed {
			o.violated("invariant 14: prepare %d, and the start checks of %q have not passed: %+v", r.Seq, host, says)
		}
	}
	if len(o.run.health) > 0 {
		o.count("runs whose start checks pass")
	}
}

// healthFinished judges that a run whose checks before it have failed says so, and counts it.
func (o *Oracle) healthFinished(r message.Decoded, e message.Finished) {
	for host, says := range o.run.health {
		if !says.failed {
			continue
		}
		o.count("runs whose start checks fail")
		if o.run.id != 0 || o.run.touched || e.Result == "completed" || e.Result == "partial" {
			o.violated("invariant 14: run %d ends as %s by record %d, and the start checks of %q have failed", o.run.key(), e.Result, r.Seq, host)
		}
		return
	}
}
