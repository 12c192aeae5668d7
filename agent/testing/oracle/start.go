package oracle

import "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"

// startAsks are the places that are asked before a run prepares any host, by host; the site has no
// name. The value tells that the run waits for the outcome.
type startAsks map[string]bool

func newStartAsks(e message.Opened) startAsks {
	a := startAsks{}
	for _, g := range e.Rollout.Start {
		for _, host := range g.Hosts {
			a[host] = true
		}
		if len(g.Hosts) == 0 {
			a[""] = true
		}
	}
	return a
}

// awaitsPlace reports whether the run waits for the outcome of the site, which has no name, or of a
// host that still takes part in it.
func (p *run) awaitsPlace(host string) bool {
	m := p.member(host)
	return p.startAsks[host] && (host == "" || m != nil && !m.removed && !m.ended)
}

// awaitsStart reports whether an outcome is one that the run waits for before it prepares.
func (p *run) awaitsStart(t message.Outcome) bool {
	return p.id == 0 && !p.finished && t.Run == p.opened && t.Attempt == 0 && p.awaitsPlace(t.Host)
}

// startRan applies the outcome of checks before the run.
func (o *Oracle) startRan(t message.Outcome) {
	o.run.startAsks[t.Host] = false
	if !t.OK {
		o.run.startFailed = true
		o.count("runs that must not begin")
	}
}

// startAllows judges that a run prepares hosts only when all that was to be asked before has passed
// (invariant 14).
func (o *Oracle) startAllows(r message.Decoded) {
	p := o.run
	for host := range p.startAsks {
		if p.awaitsPlace(host) {
			o.violated("invariant 14: prepare, record %d, and the start checks of %q have no outcome", r.Seq, host)
		}
	}
	switch {
	case p.startFailed:
		o.violated("invariant 14: prepare, record %d, and start checks have failed", r.Seq)
	case len(p.startAsks) > 0:
		o.count("runs that begin after their start checks")
	}
}
