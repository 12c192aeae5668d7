package run

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/roster"
)

// What a run may wait for.
const (
	// ForHost means that a host has yet to answer, or to come back.
	ForHost = "host"
	// ForIdle means that busy hosts have yet to be idle, or locked hosts to be unlocked.
	ForIdle = "idle"
	// ForSlot means that the hosts out of service hold all slots.
	ForSlot = "slot"
	// ForBudget means that a disruption budget has no free place.
	ForBudget = "budget"
	// ForCheck and ForHook mean that a task has no outcome yet.
	ForCheck = "check"
	ForHook  = "hook"
	// ForStep means that a step has no outcome yet.
	ForStep = "step"
	// ForApproval and ForResume mean that a person has to approve a stage, or to resume the run.
	ForApproval = "approval"
	ForResume   = "resume"
	// ForSoak and ForSplay mean that some time has to pass.
	ForSoak  = "soak"
	ForSplay = "splay"
)

// Waiting is what a run waits for, and since when.
type Waiting struct {
	What   string
	Detail string
	Since  time.Time
	// Until is when the wait ends by itself; zero when it does not.
	Until time.Time
	// Sending tells that a host is about to be sent a command: the wait has no time at which it
	// ends, and needs no person.
	Sending bool
	// Budget is the disruption budget whose query has to allow it.
	Budget string
	// Stage is the stage that soaks, needs an approval or has the step, also one that failed and
	// that resuming the run begins again. Hosts are the hosts whose answers or whose slots the run
	// waits for.
	Stage string
	Hosts []string
}

// blocked returns why no host starts; false when one may start.
func (s *State) blocked(now time.Time) (Waiting, bool) {
	g := s.stages.current()
	switch s.blocker(now) {
	case nothing:
		return Waiting{}, false
	case answers:
		return s.waitingForAnswers(s.members.awaited(), s.beginsWithoutLate(), "begins without"), true
	case pausing:
		return s.waitingForResume(), true
	case stepping:
		return s.waitingForStep()
	case soak:
		of := s.stages.soak
		return Waiting{
			What: ForSoak, Detail: fmt.Sprintf("stage %s to soak until %s", of.stage, stamp(of.Until)), Since: of.Since,
			Until: of.Until, Stage: of.stage,
		}, true
	case approval:
		until := s.stages.approvalEnds(s.NotAfter)
		return Waiting{
			What: ForApproval, Detail: fmt.Sprintf("stage %s to be approved until %s", g.Name, stamp(until)), Since: s.stages.reached(),
			Until: until, Stage: g.Name,
		}, true
	case slots:
		return s.noSlot(g)
	case budgets:
		return s.noPlace()
	case allBusy:
		return s.waitingHosts(g)
	case splay:
		i, _ := s.firstCandidate()
		return Waiting{
			What: ForSplay, Detail: fmt.Sprintf("the splay of %s until %s", s.members[i].Name, stamp(s.starts(i))),
			Since: times.Later(s.stages.reached(), g.approvedAt), Until: s.starts(i),
		}, true
	case noneLeft, noTime:
	}
	return s.busy()
}

// NeedsPerson returns what the run waits for if a person has to do something about it; false
// when the run goes on by itself. Hosts block a run if no host is under way and none may start
// before others recover, are released or are deleted, or if a step has waited for its host for a while.
func (s *State) NeedsPerson(now time.Time) (w Waiting, blocked, some bool) {
	if s.Over() || s.Phase == Open || s.aborted != nil || s.failures.halt != "" || s.overAt(now) {
		return Waiting{}, false, false
	}
	switch s.blocker(now) {
	case pausing, approval:
		w, _ = s.blocked(now)
		return w, false, true
	case nothing:
		told := s.lacksHost()
		if _, checks := s.fleetTask(now); !told.IsZero() && !now.Before(told) && !checks {
			w, some = s.waitingForStep()
			return w, some, some
		}
	case slots, budgets, allBusy:
		if s.counts.underWay == 0 {
			w, _ = s.blocked(now)
			some = w.Until.IsZero() && (w.What == ForSlot || w.What == ForBudget || w.What == ForHost)
			return w, some, some
		}
	}
	return Waiting{}, false, false
}

// noSlot returns which hosts hold the slots. A host under way is named first, because its slot
// becomes free without a person.
func (s *State) noSlot(g *stage) (Waiting, bool) {
	var h holders
	hosts := s.members.of(g)
	for i := range hosts {
		m := &hosts[i]
		if w, busy := s.busyWith(m); busy {
			return w, true
		}
		h.add(m.Host)
	}
	for _, other := range s.nonMembers() {
		if other.Group == s.stages.index {
			h.add(other)
		}
	}
	return Waiting{What: ForSlot, Detail: h.detail(), Since: h.since, Hosts: h.names}, true
}

// noPlace returns which disruption budget keeps the next host in service, and who holds its places.
// It ends by itself if one of them is under way.
func (s *State) noPlace() (Waiting, bool) {
	i, _ := s.blockedByBudget()
	cell, _ := s.roster.Blocking(i)
	w := Waiting{What: ForBudget, Since: s.changed}
	if len(cell.Holders) == 0 {
		w.Detail = fmt.Sprintf("%s to be edited: it lets no host of %d leave service", cell.Name(), cell.Size)
		return w, true
	}
	var h holders
	for _, holder := range cell.Holders {
		if busy, works := s.holds(holder); works {
			h.working, w.Until, w.Sending = append(h.working, busy.Detail), times.Sooner(w.Until, busy.Until), w.Sending || busy.Sending
			h.names, h.since = append(h.names, holder.Name), times.Sooner(h.since, busy.Since)
			continue
		}
		h.add(holder.Host)
	}
	w.Since, w.Hosts = cmp.Or(h.since, s.changed), h.names // Since when another run has admitted a host is not known.
	w.Detail = fmt.Sprintf("a place in %s (%d of at most %d out of service), and so for %s", cell.Name(), cell.Out+cell.Reserved, cell.MaxUnavailable, h.detail())
	return w, true
}

// holds returns what a host that has a place in a cell is waited for, if a run has it in hand; false
// when it has the place for another reason.
func (s *State) holds(holder roster.Holder) (Waiting, bool) {
	i, known := s.roster.Index(holder.Name)
	if known && s.isMember(i) && s.roster.Host(i) == holder.Host {
		m := &s.members[i]
		if m.phase == ready {
			return Waiting{Detail: m.Name + " to leave service", Since: m.since, Until: s.NotAfter}, true
		}
		return s.busyWith(m)
	}
	if !holder.InHand() {
		return Waiting{}, false
	}
	return Waiting{Detail: fmt.Sprintf("%s to be upgraded by run %d", holder.Name, holder.Run), Since: holder.OutSince(), Until: s.NotAfter}, true
}

// holders are hosts that hold slots though they are not under way.
type holders struct {
	names []string
	since time.Time
	// working are in the hand of a run; unwell have to recover; finishing still carry out a
	// command of an earlier run.
	working, unwell, finishing []string
}

// add adds a host, if it holds a slot.
func (h *holders) add(host *roster.Host) {
	if !host.Out() {
		return
	}
	h.names, h.since = append(h.names, host.Name), times.Sooner(h.since, host.OutSince())
	switch command, of := host.Unfinished(); {
	case host.IsLocked() && !host.HasSlot():
		h.finishing = append(h.finishing, host.Name+" to reboot and be unlocked")
	case command == "" || host.IsSilent() || host.Owes().Look:
		h.unwell = append(h.unwell, host.Name+" ("+host.Reason()+")")
	case of == 0:
		h.finishing = append(h.finishing, fmt.Sprintf("%s to finish the %s of an earlier run", host.Name, command))
	default:
		h.finishing = append(h.finishing, fmt.Sprintf("%s to finish the %s of run %d", host.Name, command, of))
	}
}

// detail says what would free their slots.
func (h *holders) detail() string {
	switch finishing := list(slices.Concat(h.working, h.finishing)); {
	case len(h.unwell) == 0:
		return finishing
	case finishing == "":
		return list(h.unwell) + " to recover, be released or be deleted"
	default:
		return finishing + ", and for " + list(h.unwell) + " to recover, be released or be deleted"
	}
}

// waitingHosts returns which hosts the stage waits for while no host can start.
func (s *State) waitingHosts(g *stage) (Waiting, bool) {
	var names, waits []string
	var since time.Time
	busy, locked, silent, look, late := false, false, false, false, false
	hosts := s.members.of(g)
	for i := range hosts {
		m := &hosts[i]
		if w, works := s.busyWith(m); works {
			return w, true
		}
		switch {
		case m.phase == idle && m.IsLocked():
			names, waits = append(names, m.Name), append(waits, m.Name+" (locked)")
			since, locked = times.Sooner(since, m.LockedSince()), true
		case m.phase == idle && m.IsSilent():
			names, waits = append(names, m.Name), append(waits, m.Name)
			since, silent = times.Sooner(since, m.SilentSince()), true
		case m.phase == idle && m.Owes().Look:
			names, waits = append(names, m.Name), append(waits, m.Name+" ("+m.Reason()+")")
			since, look = times.Sooner(since, m.OutSince()), true
		case m.phase == idle && m.isBusy():
			names, waits = append(names, m.Name), append(waits, m.Name+" (busy "+m.busy.String()+")")
			since, busy = times.Sooner(since, m.busySince), true
		case s.isLate(m):
			names, waits = append(names, m.Name), append(waits, m.Name+" (preparing)")
			since, late = times.Sooner(since, s.sentAt), true
		}
	}
	w := Waiting{What: ForHost, Detail: list(waits) + " " + ways(busy, locked, silent, look, late), Since: since, Hosts: names}
	switch {
	case !g.lateSince.IsZero():
		return s.waitingForLate(g, names), true
	case late: // They answer or run out of time; no person is needed.
		w.Until = s.prepareEnds()
	case (busy || locked) && !silent && !look:
		w.What = ForIdle
	}
	return w, true
}

// ways says what ends the wait for hosts that are busy, are locked, are silent, need a look by an
// operator, or are late.
func ways(busy, locked, silent, look, late bool) string {
	var all []string
	if busy {
		all = append(all, "to be idle")
	}
	if locked {
		all = append(all, "to be unlocked")
	}
	if late {
		all = append(all, "to be prepared")
	}
	if silent {
		all = append(all, "to come back")
	}
	if silent || look {
		all = append(all, "to be released", "to be deleted")
	}
	if len(all) < 2 {
		return strings.Join(all, "")
	}
	return strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
}

// busy returns what the first host under way, or the step, waits for; false when none is.
func (s *State) busy() (Waiting, bool) {
	for i := range s.members {
		if w, busy := s.busyWith(&s.members[i]); busy {
			return w, true
		}
	}
	if _, underWay := s.stepTask(); underWay {
		return s.waitingForStep()
	}
	return Waiting{}, false
}

// busyWith returns what a host that is under way waits for.
func (s *State) busyWith(m *member) (Waiting, bool) {
	w := Waiting{What: ForHost, Since: m.since, Until: s.givesUp(m), Hosts: []string{m.Name}}
	switch m.phase {
	case drained:
		w.Detail, w.Sending = m.Name+" to be sent upgrade", true
	case rebootDue:
		w.Detail, w.Sending = m.Name+" to be sent reboot", true
	case upgrading, rebooting:
		w.Detail = fmt.Sprintf("%s to answer %s", m.Name, m.asked())
	case checkingBefore, checkingAfter:
		w.What, w.Detail = ForCheck, taskOf(m)
	case draining, undraining:
		w.What, w.Detail = ForHook, taskOf(m)
	default:
		return Waiting{}, false
	}
	return w, true
}

// taskOf names the check or hook that a host waits for.
func taskOf(m *member) string {
	what := "checks"
	if m.wants().IsHook() {
		what = "hook"
	}
	return fmt.Sprintf("the %s %s of %s", m.wants(), what, m.Name)
}

// Waiting returns what the run waits for at a time; false when it waits for nothing.
func (s *State) Waiting(now time.Time) (Waiting, bool) {
	if s.Over() {
		return Waiting{}, false
	}
	return s.waitingAt(now)
}

func (s *State) waitingAt(now time.Time) (Waiting, bool) {
	if s.Phase == Open {
		return s.asking()
	}
	// A run that is ending waits only for hosts that have begun.
	if s.counts.underWay > 0 && (s.aborted != nil || s.failures.halt != "" || s.overAt(now)) {
		return s.busy()
	}
	if s.blocker(now) != nothing {
		return s.blocked(now)
	}
	if _, wanted := s.fleetTask(now); wanted {
		return s.fleet.waiting(s.changed), true
	}
	return s.waitingForStep()
}
