package controller

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/topic"
)

// host is what is known of a host.
type host struct {
	store.Host
	// seen is when its worker was last heard of; zero when not since the
	// start.
	seen       time.Time
	versions   map[string]string
	versionsAt time.Time
	progress   message.Progress
	progressAt time.Time
}

func (h *host) online(now time.Time) bool {
	return !h.seen.IsZero() && now.Sub(h.seen) < message.Silence
}

// heard takes in a heartbeat. What a host says of itself is kept when it is
// new, so that a controller knows its hosts from the start.
func (s *state) heard(ctx context.Context, name string, a message.Alive) {
	h, known := s.hosts[name]
	if !known {
		h = &host{}
		s.hosts[name] = h
		s.joined = s.Now()
	}
	wasOnline := h.online(s.Now())
	h.seen = s.Now()
	now := store.Host{Tenant: s.Tenant, Name: name, Application: a.Application, AgentVersion: a.AgentVersion}
	if h.Host != now {
		h.Host = now
		if err := s.Store.PutHost(ctx, topic.Token(name), now); err != nil {
			s.Logger.Warn("cannot keep host", "tenant", s.Tenant, "host", name, "error", err)
		}
	}
	if !wasOnline {
		s.Logger.Info("host is online", "tenant", s.Tenant, "host", name, "application", a.Application)
		s.notify()
	}
}

func (s *state) progressed(name string, p message.Progress) {
	if h, known := s.hosts[name]; known {
		h.progress, h.progressAt = p, s.Now()
		s.notify()
	}
}

// foldVersions takes in a host's report of its versions.
func (s *state) foldVersions(r message.Record) {
	versions, err := message.DecodeVersions(r.Body)
	if err != nil {
		s.Logger.Warn("versions ignored", "tenant", s.Tenant, "host", r.Host, "error", err)
		return
	}
	h, known := s.hosts[r.Host]
	if !known {
		h = &host{Host: store.Host{Tenant: s.Tenant, Name: r.Host}}
		s.hosts[r.Host] = h
	}
	h.versions, h.versionsAt = versions, r.Time
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
