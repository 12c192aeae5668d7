package controller

import (
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

func (h *host) online(now time.Time) bool {
	return !h.seen.IsZero() && now.Sub(h.seen) < message.Silence
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
		s.joined = at
	}
	wasOnline := h.online(at)
	h.seen = at
	now := store.Host{Tenant: s.Tenant, Name: name, Application: a.Application, AgentVersion: a.AgentVersion}
	if wasOnline && h.Host == now {
		return
	}
	if h.Host != now {
		h.Host = now
		s.keeper.put(now)
	}
	if !wasOnline {
		s.Logger.Info("host is online", "tenant", s.Tenant, "host", name, "application", a.Application)
	}
	s.changed()
}

// progressed takes in what a host tells for people: nothing is decided on it.
func (s *state) progressed(name string, p message.Progress, at time.Time) {
	if h, known := s.hosts[name]; known {
		h.progress, h.progressAt = p, at
		s.notify()
	}
}

// members returns the hosts whose application the configuration lists, by
// name, and which of them are silent (AV-14).
func (s *state) members(now time.Time) (online, silent []string) {
	if s.config == nil {
		return nil, nil
	}
	listed := map[string]bool{}
	for _, a := range s.config.WorkerApplications {
		listed[a.Name] = true
	}
	for name, h := range s.hosts {
		switch {
		case !listed[h.Application]:
		case h.online(now):
			online = append(online, name)
		default:
			silent = append(silent, name)
		}
	}
	slices.Sort(online)
	slices.Sort(silent)
	return online, silent
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
