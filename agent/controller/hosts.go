package controller

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/store"
)

// host is what is known of a host.
type host struct {
	store.Host
	// seen is when its worker was last heard of; zero when not since the
	// start.
	seen       time.Time
	progress   message.Progress
	progressAt time.Time
}

// reported is what a host said of its versions, and when.
type reported struct {
	versions map[string]string
	at       time.Time
}

// hear takes in what hosts told of themselves.
func (s *state) hear(letters map[string]letter) {
	for name, l := range letters {
		if !l.aliveAt.IsZero() {
			s.heard(name, l.alive, l.aliveAt)
		}
		if !l.progressAt.IsZero() {
			s.progressed(name, l.progress, l.progressAt)
		}
		if l.outcome != nil {
			s.outcome(name, *l.outcome, false)
		}
	}
}

// heard takes in a heartbeat. What a host says of itself is kept when it is
// new, so that a controller knows its hosts from the start. The heartbeat of a
// host that is known and online changes nothing, and nothing is decided anew.
func (s *state) heard(name string, a message.Alive, at time.Time) {
	h, known := s.hosts[name]
	if !known {
		h = &host{}
		s.hosts[name] = h
		delete(s.forgotten, name)
		s.joined = at
	}
	s.listen(at)
	wasOnline := s.present.online(name)
	h.seen = at
	s.present.hear(name, at)
	now := store.Host{
		Tenant: s.Tenant, Name: name, Application: a.Application, AgentVersion: a.AgentVersion, Role: a.Role, Labels: a.Labels,
	}
	same := sameHost(h.Host, now)
	if wasOnline && same {
		return
	}
	if !same {
		h.Host = now
		s.keeper.put(now)
	}
	if !wasOnline {
		s.Logger.Info("host is online", "tenant", s.Tenant, "host", name, "application", a.Application)
		s.suspect(name)
	}
	s.changed()
}

func sameHost(a, b store.Host) bool {
	return a.Tenant == b.Tenant && a.Name == b.Name && a.Application == b.Application && a.AgentVersion == b.AgentVersion &&
		a.Role == b.Role && maps.Equal(a.Labels, b.Labels)
}

// progressed takes in what a host tells for people: nothing is decided on it.
func (s *state) progressed(name string, p message.Progress, at time.Time) {
	if h, known := s.hosts[name]; known {
		h.progress, h.progressAt = p, at
		s.notify()
	}
}

// sorted returns all known hosts by name.
func (s *state) sorted() []*host {
	hosts := make([]*host, 0, len(s.hosts))
	for _, h := range s.hosts {
		hosts = append(hosts, h)
	}
	slices.SortFunc(hosts, func(a, b *host) int { return strings.Compare(a.Name, b.Name) })
	return hosts
}
