package roster

import (
	"cmp"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// Open begins the roster of a run with what the event says that opens the run: records
// before that may be trimmed. The members come first, in their order, each in the group
// of its stage; then the other hosts of which the event knows something.
func Open(e message.Opened, at time.Time) *Roster {
	r := &Roster{hosts: make([]*Host, 0, len(e.Members)), index: make(map[string]int, len(e.Members)), groups: make([]group, len(e.Rollout.Stages))}
	first := 0
	for n, stage := range e.Rollout.Stages {
		r.groups[n].most = stage.MaxUnavailable
		for _, name := range e.Members[first : first+stage.Size] {
			r.add(name, n)
		}
		first += stage.Size
	}
	for _, entry := range e.Roster {
		r.enter(entry, e, at)
	}
	return r
}

// add adds a host that is in service, and returns its index. A host that is there
// already stays in its group.
func (r *Roster) add(name string, group int) int {
	if i, known := r.index[name]; known {
		return i
	}
	i := len(r.hosts)
	r.index[name] = i
	r.hosts = append(r.hosts, &Host{Name: name, Group: group})
	return i
}

// enter adds what was known of a host when the run was opened. A member does not owe
// what this run's policy has no hook or checks for.
func (r *Roster) enter(entry message.Entry, e message.Opened, at time.Time) {
	group := NoGroup
	if entry.Stage != "" {
		group = slices.IndexFunc(e.Rollout.Stages, func(g rollout.ResolvedStage) bool { return g.Name == entry.Stage })
	}
	i := r.add(entry.Host, group)
	owes := entry.Owes
	if i < len(e.Members) {
		owes.Undrain = owes.Undrain && e.Rollout.Hooks.Undrain != nil
		if owes.Checks.Of(&e.Rollout.Rollout).RunsNothing() {
			owes.Checks = ""
		}
	}
	r.change(i, at, func(h *Host) {
		h.since, h.before, h.owes, h.absent = entry.Since, true, owes, entry.Absent()
		h.works, h.worksBefore, h.unanswered = entry.Works, true, entry.Run
		if entry.Silent && (!h.absent || e.Rollout.Absent != rollout.Skip) {
			h.silent = cmp.Or(entry.Since, at)
		}
	})
}

// Opening returns the entries that the next run is opened with: the members that
// are silent, the hosts that count and are no members, and whoever is out of service
// since the runs before, or was released and may still be at work.
func (r *Roster) Opening(silent []string, others []message.Entry) []message.Entry {
	entries := slices.Clone(others)
	for _, host := range silent {
		entries = append(entries, message.Entry{Host: host, Silent: true})
	}
	known := make(map[string]int, len(entries))
	for i, e := range entries {
		known[e.Host] = i
	}
	for _, lasting := range r.Lasting() {
		i, listed := known[lasting.Host]
		switch {
		case !listed:
			entries = append(entries, lasting)
		case lasting.Owes.Any() || entries[i].Silent: // Who was silent and is not has recovered.
			entries[i].Since, entries[i].Owes, entries[i].Run = lasting.Since, lasting.Owes, lasting.Run
		}
	}
	return r.addWorking(entries)
}

// Take adds to the entries that a run is opened with what another roster knows of a host that
// comes from there (Entry).
func Take(entries []message.Entry, brought message.Entry) []message.Entry {
	i := slices.IndexFunc(entries, func(e message.Entry) bool { return e.Host == brought.Host })
	if i < 0 {
		return append(entries, brought)
	}
	e := &entries[i]
	if brought.Owes.Any() || e.Silent { // Who was silent and is not has recovered.
		e.Since, e.Owes, e.Run = brought.Since, brought.Owes, brought.Run
	}
	if brought.Works != "" {
		e.Works, e.Run = brought.Works, brought.Run
	}
	return entries
}

// Entry returns what the next run of a host has to know of it; false when that is nothing.
func (r *Roster) Entry(host string) (e message.Entry, some bool) {
	i, known := r.index[host]
	if !known {
		return e, false
	}
	h := r.hosts[i]
	if h.lasts() {
		e = h.lasting()
	}
	if h.works != "" {
		e.Works, e.Run = h.works, h.unanswered
	}
	e.Host = host
	return e, h.lasts() || h.works != ""
}

// addWorking adds which hosts may still carry out a command though they were released.
func (r *Roster) addWorking(entries []message.Entry) []message.Entry {
	for _, h := range r.hosts {
		if h.works == "" {
			continue
		}
		i := slices.IndexFunc(entries, func(e message.Entry) bool { return e.Host == h.Name })
		if i < 0 {
			i = len(entries)
			entries = append(entries, message.Entry{Host: h.Name})
		}
		entries[i].Works, entries[i].Run = h.works, h.unanswered
	}
	return entries
}

// Lasting returns the hosts that are out of service beyond the end of the run, by
// their index.
func (r *Roster) Lasting() []message.Entry {
	var hosts []message.Entry
	for _, h := range r.hosts {
		if h.lasts() {
			hosts = append(hosts, h.lasting())
		}
	}
	return hosts
}

// lasting is the entry of a host that is out of service beyond the end of the run.
func (h *Host) lasting() message.Entry {
	e := message.Entry{Host: h.Name, Since: h.OutSince(), Owes: h.owes, Silent: h.IsSilent() && !h.absent}
	if h.owes.Answer != "" {
		e.Run = h.unanswered
	}
	return e
}

// Clone returns a copy of the roster.
func (r *Roster) Clone() *Roster { return CloneAll([]*Roster{r})[0] }

// CloneAll returns copies of rosters whose hosts are in the same cells: what changes in one copy
// counts for the others, and for nobody else.
func CloneAll(all []*Roster) []*Roster {
	copies, of, places := make([]*Roster, len(all)), make(map[*Roster]*Roster, len(all)), map[*place]*place{}
	for n, r := range all {
		hosts := make([]Host, len(r.hosts))
		c := &Roster{hosts: make([]*Host, len(r.hosts)), index: r.index, groups: slices.Clone(r.groups), run: r.run, finished: r.finished}
		for i, h := range r.hosts {
			hosts[i] = *h
			c.hosts[i] = &hosts[i]
		}
		if r.cells != nil && r.cells.Counts() {
			copyPlaces(hosts, places)
		}
		copies[n], of[r] = c, c
	}
	if cells := all[0].cells; cells != nil {
		shared := cells.clone(of)
		for _, c := range copies {
			c.cells = shared
		}
	}
	return copies
}
