package controller

import (
	"reflect"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/plan"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// byEnvironment are the known hosts by environment. While all are in default there is no need of them.
type byEnvironment struct {
	hosts map[string]map[string]*host
	// unplaced are the hosts that are in no environment.
	unplaced map[string]*host
}

// in returns the known hosts of an environment.
func (h *hosts) in(environment string) map[string]*host {
	if h.byEnvironment == nil {
		if environment == defaultName {
			return h.known
		}
		return nil
	}
	return h.byEnvironment.hosts[environment]
}

// enter notes where a host is.
func (p *byEnvironment) enter(h *host) {
	if h.Unplaced {
		p.unplaced[h.Name] = h
		return
	}
	if p.hosts[h.Environment] == nil {
		p.hosts[h.Environment] = map[string]*host{}
	}
	p.hosts[h.Environment][h.Name] = h
}

// leave lets go of a host.
func (p *byEnvironment) leave(h *host) {
	if p == nil || h == nil {
		return
	}
	delete(p.unplaced, h.Name)
	if delete(p.hosts[h.Environment], h.Name); len(p.hosts[h.Environment]) == 0 {
		delete(p.hosts, h.Environment)
	}
}

// where is in which environment the host is.
func (h *host) where() plan.Where {
	return plan.Where{Environment: h.Environment, Unplaced: h.Unplaced, Assigned: h.Assigned}
}

// showWhere shows where the host is.
func (h *host) showWhere(on *v1.Host) {
	if on.Unplaced = h.Unplaced; !h.Unplaced {
		on.Environment, on.Assigned = nameOf(h.Environment), h.Assigned != ""
	}
}

// sortOut enters all known hosts where they are.
func (h *hosts) sortOut() {
	h.byEnvironment = &byEnvironment{hosts: map[string]map[string]*host{}, unplaced: map[string]*host{}}
	for _, known := range h.known {
		h.byEnvironment.enter(known)
	}
}

// place decides in which environment a host is, and reports whether that has changed.
func (h *hosts) place(known *host, m *plan.Membership) (changed bool) {
	var was *plan.Where
	if known.placed {
		was = new(known.where())
	}
	known.placed = true
	if h.byEnvironment == nil {
		if m == nil {
			return false // All are in default.
		}
		h.sortOut()
	}
	now := plan.Where{}
	if m != nil {
		now = m.Of(known.inPlan(), was)
	}
	if now.Environment == known.Environment && now.Unplaced == known.Unplaced {
		h.byEnvironment.enter(known) // It may be new.
		return false
	}
	h.byEnvironment.leave(known)
	known.Environment, known.Unplaced = now.Environment, now.Unplaced
	h.byEnvironment.enter(known)
	logger := h.logger.With("tenant", h.tenant, "host", known.Name)
	if now.Unplaced {
		logger.Warn("no run upgrades a host, because several environments match it", "environments", now.Matching)
	} else {
		logger.Info("host is in another environment", "environment", nameOf(now.Environment))
	}
	return true
}

// place decides in which environment a host is that has described itself. Before all was read
// that is declared, nobody knows that.
func (s *state) place(known *host) {
	if s.intent.complete {
		s.hosts.place(known, s.intent.sorting())
	}
}

// placeAll decides in which environment each host is, after a change of what is declared.
func (s *state) placeAll() { s.placeThose(func(*host) bool { return true }) }

// placeOf decides in which environment those hosts are that are or were in an environment, or that it
// matches or has matched before: all others stay where they are. It reports whether one has moved.
func (s *state) placeOf(name string, before *declared) (moved bool) {
	next := s.intent.environments[name]
	if before != nil && next != nil && reflect.DeepEqual(before.Match, next.Match) {
		return false
	}
	fits := []func(plan.Host) bool{}
	for _, d := range []*declared{before, next} {
		if d != nil {
			fits = append(fits, plan.Fits(d.Match))
		}
	}
	return s.placeThose(func(h *host) bool {
		return !h.placed || h.Environment == name || h.Assigned == name || slices.ContainsFunc(fits, func(fits func(plan.Host) bool) bool { return fits(h.inPlan()) })
	})
}

// placeThose decides in which environment some hosts are, and reports whether one has moved.
func (s *state) placeThose(concerned func(*host) bool) (some bool) {
	if !s.intent.complete {
		return false
	}
	m := s.intent.sorting()
	for _, known := range s.hosts.sorted() {
		if !concerned(known) {
			continue
		}
		unassigned := s.unassign(known)
		moved := s.hosts.place(known, m)
		if (moved || unassigned) && s.active {
			s.writer.put(known.Host)
		}
		some = some || moved
	}
	if m == nil {
		s.hosts.byEnvironment = nil // All are in default.
	}
	return some
}

// inPlan is the host as matches see it.
func (h *host) inPlan() plan.Host {
	return plan.Host{Name: h.Name, Application: h.Application, Role: h.Role, Labels: h.Labels}
}

// named notes the hosts that a record adds to the run of an environment: those that its opening names,
// and neighbours that fall silent. From then on they are in its environment, whatever is declared.
func (s *state) named(r message.Decoded) {
	switch e := r.Event.(type) {
	case message.Opened:
		if e.Environment == defaultName && len(s.ranIn) == 0 {
			return
		}
		s.takesIn(e.Environment, e.Members)
		for _, entry := range e.Roster {
			s.takesIn(e.Environment, []string{entry.Host})
		}
	case message.Silent:
		if len(e.Cells) > 0 {
			s.takesIn(s.ledger.Last().Name, e.Hosts)
		}
	}
}

// takesIn notes that hosts are in the run of an environment.
func (s *state) takesIn(environment string, hosts []string) {
	for _, host := range hosts {
		if environment != defaultName {
			s.ranIn[host] = environment
		} else {
			delete(s.ranIn, host)
		}
	}
}

// lastOf returns the environment of the last run that named a host.
func (s *state) lastOf(host string) *environment { return s.environment(s.ranIn[host]) }

// newestOf returns the newest run that people see of that environment; nil when there is none.
func (s *state) newestOf(host string) *run.State { return s.lastOf(host).visible() }

// isElsewhere reports whether a host is a member of a run under way in another environment. It
// moves once that has ended.
func (s *state) isElsewhere(env *environment, host string) bool {
	last := s.lastOf(host)
	if last == env || last.ledger.Current() == nil {
		return false
	}
	_, member := last.ledger.Current().Host(host)
	return member
}

// elsewhere returns an environment whose run under way has a host of this one; nil when none has.
func (s *state) elsewhere(env *environment) *environment {
	for host := range s.hosts.in(env.name) {
		if s.isElsewhere(env, host) {
			return s.lastOf(host)
		}
	}
	return nil
}
