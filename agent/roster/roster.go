// Package roster knows which hosts are out of service, and what would show that
// each is well again.
//
// That is a fact about a host and outlives the run that took it out of service
// (design.md 5): a run changes its hosts' entries as it folds the log, also
// after its end, and the next run is opened with what is left. A host is out of
// service while a run has it in hand, while it owes something, and while it is
// silent. Recovery, deletion or a person's release ends that; the end of a run
// does not.
//
// The package does no I/O and has no clock.
package roster

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// Host is a host and why it is out of service, if it is.
type Host struct {
	Name string
	// Group is the group in which it counts, NoGroup when it counts in none.
	Group int
	// Since is when it was taken out of service; zero while only its silence
	// keeps it out, or nothing does.
	Since time.Time
	// InHand means that the run under way has it out of service, whatever it
	// owes.
	InHand bool
	// Before means that all of this goes back to an earlier run.
	Before bool
	Owes   message.Debt
	// Silent is since when it has not been heard of; zero while it is heard of.
	Silent time.Time
	// Absent means that it was silent before the run was opened and has not been heard
	// of since. It counts as long as Silent is set, and not beyond the run.
	Absent bool
	// Removed means that somebody deleted or released it: nobody waits for it, and
	// its silence says nothing.
	Removed bool
}

// NoGroup is the group of a host that counts in none.
const NoGroup = -1

// Held reports whether the host is out of service for more than its silence.
func (h *Host) Held() bool { return h.InHand || h.Owes.Any() }

// IsSilent reports whether the host has fallen silent.
func (h *Host) IsSilent() bool { return !h.Silent.IsZero() }

// Out reports whether the host is out of service (design.md 5, invariant 1).
func (h *Host) Out() bool { return h.Held() || h.IsSilent() }

// OutSince is when the host went out of service; zero while it is in service.
func (h *Host) OutSince() time.Time {
	if h.Held() {
		return h.Since
	}
	return h.Silent
}

// Reason says why the host is out of service; empty while it is in service.
func (h *Host) Reason() string {
	switch owes := h.Owes; {
	case owes.Look:
		return "nobody knows what it did"
	case owes.Answer != "" && h.Before:
		return "it has not answered " + string(owes.Answer) + " of an earlier run"
	case h.Held() && h.Before && h.IsSilent():
		return notWell + ", and is silent"
	case h.Held() && h.Before:
		return notWell
	case owes.Answer != "":
		return "it has not answered " + string(owes.Answer)
	case h.InHand:
		return "it is being upgraded"
	case owes.Undrain:
		return "it is not undrained"
	case owes.Any():
		return "it failed and is still unhealthy"
	case h.IsSilent():
		return "it is silent"
	}
	return ""
}

const notWell = "it was unhealthy when the previous run ended"

// Answered notes that the host has answered the command that it owed an answer
// to, and so is at work no more. A host that says that it does not know what it
// did proves nothing by that: somebody has to look.
func (h *Host) Answered(unknown bool) {
	h.Owes.Answer, h.Owes.Look = "", h.Owes.Look || unknown
}

// Recover notes that the host is heard of.
func (h *Host) Recover() { h.Silent, h.Absent = time.Time{}, false }

// Lasts reports whether the host is out of service beyond the end of the run.
func (h *Host) Lasts() bool { return h.Owes.Any() || h.IsSilent() && !h.Absent }

// Remove ends all that keeps the host out of service: somebody deleted or
// released it.
func (h *Host) Remove() {
	h.Recover()
	h.InHand, h.Owes, h.Removed = false, message.Debt{}, true
}

// Roster is a list of hosts. A host keeps its index.
type Roster struct {
	hosts []*Host
	index map[string]int
	// out counts the hosts of each group that are out of service, so that a step of
	// a run costs the same however many hosts there are.
	out []int
}

// New makes a roster with room for some hosts in so many groups.
func New(groups, hosts int) *Roster {
	return &Roster{hosts: make([]*Host, 0, hosts), index: make(map[string]int, hosts), out: make([]int, groups)}
}

// Add adds a host that is in service, and returns its index. A host that is
// there already stays in its group.
func (r *Roster) Add(name string, group int) int {
	if i, known := r.index[name]; known {
		return i
	}
	i := len(r.hosts)
	r.index[name] = i
	r.hosts = append(r.hosts, &Host{Name: name, Group: group})
	return i
}

// Index returns the index of a host; false when there is no such host.
func (r *Roster) Index(name string) (int, bool) {
	i, known := r.index[name]
	return i, known
}

// Host returns a host by its index. Only Edit may change it.
func (r *Roster) Host(i int) *Host { return r.hosts[i] }

// From returns the hosts from an index on. Only Edit may change them.
func (r *Roster) From(i int) []*Host { return r.hosts[i:] }

// Out returns how many hosts of a group are out of service.
func (r *Roster) Out(group int) int { return r.out[group] }

// Edit changes a host and keeps the counts right. A host that the change takes
// out of service is out of service since then.
func (r *Roster) Edit(i int, at time.Time, change func(*Host)) {
	h := r.hosts[i]
	before := h.Out()
	change(h)
	switch {
	case !h.Held():
		h.Since, h.Before = time.Time{}, false
	case h.Since.IsZero():
		h.Since = at
	}
	if after := h.Out(); after != before && h.Group != NoGroup {
		if after {
			r.out[h.Group]++
		} else {
			r.out[h.Group]--
		}
	}
}

// Lasting returns the hosts that are out of service beyond the end of the run, by
// their index: the next run is opened with them.
func (r *Roster) Lasting() []message.Entry {
	var hosts []message.Entry
	for _, h := range r.hosts {
		if h.Lasts() {
			hosts = append(hosts, message.Entry{Host: h.Name, Since: h.OutSince(), Owes: h.Owes, Silent: h.IsSilent() && !h.Absent})
		}
	}
	return hosts
}

// Earlier moves each time that is after now to now: the log's clock was set
// back.
func (r *Roster) Earlier(now time.Time) {
	for _, h := range r.hosts {
		for _, t := range []*time.Time{&h.Since, &h.Silent} {
			if t.After(now) {
				*t = now
			}
		}
	}
}

// Clone returns a copy of the roster.
func (r *Roster) Clone() *Roster {
	hosts := make([]Host, len(r.hosts))
	c := &Roster{hosts: make([]*Host, len(r.hosts)), index: r.index, out: append([]int(nil), r.out...)}
	for i, h := range r.hosts {
		hosts[i] = *h
		c.hosts[i] = &hosts[i]
	}
	return c
}
