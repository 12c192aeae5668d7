package controller

import (
	"maps"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
)

// lastRuns groups the hosts by the last run that each was in, so that the hosts of other runs do not
// make the end of a run slower.
type lastRuns struct {
	hosts map[uint64]map[string]*host
	// told caches what is kept of the hosts of each run; a run is absent once that has changed.
	told map[uint64][]store.LastRun
}

// lastRuns returns the last runs of all hosts.
func (h *hosts) lastRuns() []store.LastRun {
	if h.ran == nil {
		h.ran = &lastRuns{map[uint64]map[string]*host{}, map[uint64][]store.LastRun{}}
		for _, known := range h.known {
			h.ran.enter(known)
		}
	}
	return h.ran.all()
}

// enter notes the last run of a host.
func (l *lastRuns) enter(h *host) {
	id := h.LastRun.ID
	if l == nil || id == 0 {
		return
	}
	if l.hosts[id] == nil {
		l.hosts[id] = map[string]*host{}
	}
	l.hosts[id][h.Name] = h
	delete(l.told, id)
}

// leave lets go of a host, or of its last run before that changes.
func (l *lastRuns) leave(h *host) {
	if l == nil || h == nil {
		return
	}
	id := h.LastRun.ID
	delete(l.told, id)
	if delete(l.hosts[id], h.Name); len(l.hosts[id]) == 0 {
		delete(l.hosts, id)
	}
}

// all returns the last runs, in the order of their ids.
func (l *lastRuns) all() (all []store.LastRun) {
	for _, id := range slices.Sorted(maps.Keys(l.hosts)) {
		if l.told[id] == nil {
			hosts := make([]store.Host, 0, len(l.hosts[id]))
			for _, name := range slices.Sorted(maps.Keys(l.hosts[id])) {
				hosts = append(hosts, l.hosts[id][name].Host)
			}
			l.told[id] = store.LastRuns(hosts)
		}
		all = append(all, l.told[id]...)
	}
	return all
}
