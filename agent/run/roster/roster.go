// Package roster knows which hosts are out of service, and what would show that
// each is well again. It is the one place that is asked whether a host may leave
// service.
//
// That is a fact about a host and outlives the run that took it out of service. A host
// is out of service while a run has it in hand, while it owes something, and while it is
// silent. Recovery, deletion or a person's release ends that; the end of a run does not.
//
// A roster is part of the fold of the log and belongs to the ledger. Open begins it with
// what the log says when a run is opened; fold.go has all that can happen to a host
// afterwards, also after the end of the run; Opening is what the next run is opened
// with. Nobody else can change a host.
//
// # Disruption budgets
//
// A disruption budget of the tenant says how many of some hosts may be out of service at once, for
// each value of a label apart. What it counts together is a cell. cells.go counts the hosts of
// each cell; the ledger has one Cells for all rosters, so that the count is that of the tenant.
// Whoever is out of service by this package counts: held by a run, owing something, or silent
// since during a run. A host that was silent before the run counts only if it does so in its
// stage.
//
// The log decides, not a label: the event that opens a run says in which cells its hosts are and
// how many of each may be out of service, and only an edit of the budgets changes that under it.
// A host takes its place in all its cells by one record, and whoever has a place waits for none,
// so that no two runs can wait for each other. A place is taken when a host is admitted, or else
// when it leaves service: otherwise it would pass its checks and then wait until they are stale.
// It is given back where it was taken. A cell can have more hosts out of service than its limit:
// hosts fall silent, and a limit can be lowered. Then nobody is taken back, and nobody may follow.
//
// A neighbour is a host that shares a cell with hosts of a run, and is either in no roster or in
// service in the roster of an environment whose run has ended. When it falls silent during the run,
// the event says in which cells it is. From then on it is in the roster of the run, where it counts
// as out of service without being a member.
//
// A host that reboots by itself asks before it does so, and is locked until it says that it is back
// (lock.go). It counts in its cells, and in the group of its stage.
//
// The package does no I/O and has no clock.
package roster

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Host is a host and why it is out of service, if it is.
type Host struct {
	Name string
	// Group is the group in which it counts, NoGroup when it counts in none.
	Group int

	// since is when it was taken out of service; zero while only its silence
	// keeps it out, or nothing does.
	since time.Time
	// inHand means that the run under way has it out of service, whatever it
	// owes.
	inHand bool
	// before means that it was out of service before the run was opened, and has been
	// since without a break; failed means that it has failed in the run.
	before, failed bool
	owes           message.Debt
	// silent is since when it has not been heard of; zero while it is heard of.
	silent time.Time
	// absent means that it was silent before the run was opened and has not been heard
	// of since. It counts as long as silent is set, and not beyond the run.
	absent bool
	// works is the command that the host had not answered when it was released: it may
	// still carry it out. worksBefore means that the command is of an earlier run. Neither
	// keeps the host out of service.
	works       message.Action
	worksBefore bool
	// unanswered is the run whose command the host has not answered; 0 if that is not known.
	unanswered uint64
	// removed means that somebody deleted or released it: nobody waits for it, and
	// its silence says nothing.
	removed bool
	// moved means that the roster of another environment has the host.
	moved bool
	// admitted means that the run checks the host before it takes it out of service.
	admitted bool
	// locked is since when the host may reboot by itself; zero while it may not.
	locked time.Time
	// place is what it takes in its cells; nil when it is in none.
	place *place
}

// NoGroup is the group of a host that counts in none.
const NoGroup = -1

// HasSlot reports whether the host is out of service for more than its silence: a run has
// it in hand, or it owes something. It needs no further slot for its upgrade.
func (h *Host) HasSlot() bool { return h.inHand || h.owes.Any() }

// InHand reports whether a run has the host out of service, or is about to.
func (h *Host) InHand() bool { return h.inHand || h.admitted }

// IsSilent reports whether the host has fallen silent.
func (h *Host) IsSilent() bool { return !h.silent.IsZero() }

// SilentSince is when the host fell silent; zero while it is heard of.
func (h *Host) SilentSince() time.Time { return h.silent }

// IsAbsent reports whether the host was silent before the run was opened and has not
// been heard of since.
func (h *Host) IsAbsent() bool { return h.absent }

// IsRemoved reports whether somebody deleted or released the host.
func (h *Host) IsRemoved() bool { return h.removed }

// HasMoved reports whether the roster of another environment has the host.
func (h *Host) HasMoved() bool { return h.moved }

// Owes is what has yet to show that the host is well.
func (h *Host) Owes() message.Debt { return h.owes }

// Works is the command that the host had not answered when it was released, and may still
// carry out; empty once it has answered. before means that it is of an earlier run.
func (h *Host) Works() (command message.Action, before bool) { return h.works, h.worksBefore }

// WorksFor is the run of the command that Works returns; 0 if it is not known.
func (h *Host) WorksFor() uint64 {
	if h.works == "" {
		return 0
	}
	return h.unanswered
}

// Unfinished returns the command of an earlier run that keeps the host out of service because
// it has not answered, and that run, 0 if it is not known; empty when none does.
func (h *Host) Unfinished() (command message.Action, run uint64) {
	if h.owes.Answer == "" || !h.Before() {
		return "", 0
	}
	return h.owes.Answer, h.unanswered
}

// Before reports whether all that keeps the host out of service goes back to an earlier
// run. A host that fails in this run is out of service because of this run, unless it
// still owes the answer to a command of an earlier one.
func (h *Host) Before() bool { return h.before && (!h.failed || h.owes.Answer != "") }

// Out reports whether the host is out of service: a stage never has more such hosts than
// its limit.
func (h *Host) Out() bool { return h.HasSlot() || h.IsSilent() || h.IsLocked() }

// OutSince is when the host went out of service; zero while it is in service.
func (h *Host) OutSince() time.Time {
	switch {
	case h.HasSlot():
		return h.since
	case h.IsLocked():
		return h.locked
	}
	return h.silent
}

// Reason says why the host is out of service; empty while it is in service.
func (h *Host) Reason() string {
	switch owes, before := h.owes, h.Before(); {
	case owes.Look:
		return "nobody knows what it did"
	case owes.Answer != "" && before:
		return "it has not answered " + string(owes.Answer) + " of an earlier run"
	case h.HasSlot() && before && h.IsSilent():
		return notWell + ", and is silent"
	case h.HasSlot() && before:
		return notWell
	case owes.Answer != "":
		return "it has not answered " + string(owes.Answer)
	case h.inHand:
		return "it is being upgraded"
	case owes.Undrain:
		return "it is not undrained"
	case owes.Any():
		return "it failed and is still unhealthy"
	case h.IsLocked():
		return "it is locked, because it reboots by itself"
	case h.IsSilent():
		return "it is silent"
	}
	return ""
}

const notWell = "it was unhealthy when the previous run ended"

// lasts reports whether the host is out of service beyond the end of the run.
func (h *Host) lasts() bool { return h.owes.Any() || h.IsSilent() && !h.absent }

// group is what is known of the hosts that count together.
type group struct {
	// most is how many of them may be out of service, out how many are, so that a
	// decision of a run costs the same however many hosts there are.
	most, out int
}

// Roster is a list of hosts. A host keeps its index. The zero value is empty: no run was
// opened yet.
type Roster struct {
	hosts  []*Host
	index  map[string]int
	groups []group
	// run is the id of the run; 0 before its prepare.
	run uint64
	// finished means that the run has ended: hosts that were absent count no more.
	finished bool
	// cells count the hosts for the disruption budgets; nil before the ledger has entered the
	// roster.
	cells *Cells
}

// Index returns the index of a host; false when there is no such host.
func (r *Roster) Index(name string) (int, bool) {
	i, known := r.index[name]
	return i, known
}

// Has reports whether a host is in the roster, and has not moved to another one.
func (r *Roster) Has(name string) bool {
	i, known := r.index[name]
	return known && !r.hosts[i].moved
}

// Unwatched reports whether the silence of a host is news after the end of the run: only if the host
// is in service. A host that was released and has not answered since is not.
func (r *Roster) Unwatched(name string) bool {
	i, known := r.index[name]
	return !known || !r.CountsAsOut(i) && !r.hosts[i].removed && r.hosts[i].works == ""
}

// Host returns a host by its index.
func (r *Roster) Host(i int) *Host { return r.hosts[i] }

// From returns the hosts from an index on.
func (r *Roster) From(i int) []*Host { return r.hosts[i:] }

// Out returns how many hosts of a group are out of service.
func (r *Roster) Out(group int) int { return r.groups[group].out }

// Free returns how many hosts of a group may leave service; less than 1 when none may,
// because as many are out of service as may be, or more.
func (r *Roster) Free(group int) int { return r.groups[group].most - r.groups[group].out }

// MayLeave reports whether a host may leave service: its group has a free slot, and each of its
// cells a free place. A host that is held is out of service already and takes none.
func (r *Roster) MayLeave(i int) bool {
	h := r.hosts[i]
	return h.HasSlot() || (h.Group == NoGroup || r.Free(h.Group) > 0) && r.blocking(i) < 0
}

// CountsAsOut reports whether a host counts as out of service because of a run.
func (r *Roster) CountsAsOut(i int) bool { return r.hosts[i].HasSlot() || r.CountsAsSilent(i) }

// CountsAsSilent reports whether a host counts as silent. The silence of a host that was
// absent counts only while the run is under way.
func (r *Roster) CountsAsSilent(i int) bool {
	h := r.hosts[i]
	return h.IsSilent() && (!h.absent || !r.finished)
}

// HeedsSilence reports whether it is news that a host is silent: it counts, and is not
// known to be silent or gone.
func (r *Roster) HeedsSilence(i int) bool {
	h := r.hosts[i]
	return h.Counts() && !h.IsSilent() && !h.absent && !h.removed
}

// Counts reports whether the host counts for others: in a group or in a cell.
func (h *Host) Counts() bool { return h.Group != NoGroup || h.place != nil }

// Watched returns the hosts whose silence matters: those that count in a group or a cell and have
// not moved to another roster, and those that are silent.
func (r *Roster) Watched() []string {
	var names []string
	for _, h := range r.hosts {
		if h.Counts() && !h.moved || h.IsSilent() {
			names = append(names, h.Name)
		}
	}
	return names
}

// Service says whether a host is in service and, if not, why.
type Service string

// A host that the roster does not have out of service is InService, unless the site
// knows better: only the site knows who is heard of outside of runs.
const (
	InService Service = "in-service"
	// BeingUpgraded means that the run under way has the host out of service.
	BeingUpgraded Service = "being-upgraded"
	// Unhealthy means that the host owes an answer, a look by an operator, its undrain or
	// its checks.
	Unhealthy Service = "unhealthy"
	// FellSilent means that the host fell silent while a run was under way.
	FellSilent Service = "silent"
	// Absent means that the host was silent before the run was opened.
	Absent Service = "absent"
	// Locked means that the host may reboot by itself.
	Locked Service = "locked"
)

// Services lists them.
func Services() []Service {
	return []Service{InService, BeingUpgraded, Unhealthy, FellSilent, Absent, Locked}
}

// OutOfService returns the hosts that count as out of service, and why.
func (r *Roster) OutOfService() map[string]Service {
	out := map[string]Service{}
	for i, h := range r.hosts {
		switch {
		case h.IsLocked() && !h.HasSlot():
			out[h.Name] = Locked
		case !r.CountsAsOut(i):
		case h.inHand && !r.finished:
			out[h.Name] = BeingUpgraded
		case h.HasSlot():
			out[h.Name] = Unhealthy
		case h.absent:
			out[h.Name] = Absent
		default:
			out[h.Name] = FellSilent
		}
	}
	return out
}
