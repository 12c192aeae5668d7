package oracle

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// host is the state of a host by the log, over all runs.
type host struct {
	name string
	// member is the host's part in the newest run; nil when it is no member.
	member *member
	owes   debt
	// works is the command that the host had not answered when it was released; empty once
	// it has. worksBefore means that it is of an earlier run.
	works       message.Action
	worksBefore bool
	// silent means that the host counts as silent. absent means that it was silent
	// before the run was opened and was not heard of since: by the policy it does not
	// count, or not beyond the end of the run.
	silent, absent bool
	// removed means that the host was deleted or released in the newest run; forced,
	// in any run.
	removed, forced bool
	// home is the environment whose roster has the host: that of the last opening that has
	// named it. homed means that one has.
	home  string
	homed bool
	// locked means that it may reboot by itself, lockedIn the environment in which it was locked.
	locked   bool
	lockedIn string
	// lateAt is the record by which the host last answered after the end of its run, and
	// lateOwed and lateWorks are what it owed and worked on before that.
	lateAt    uint64
	lateOwed  debt
	lateWorks message.Action
}

// debt is what a host owes: what it must deliver before it is in service again.
type debt struct {
	// answer is the command of the run answerOf that the host has not answered.
	answer   message.Action
	answerOf uint64
	// look means that the host answered that it does not know what it did. An
	// operator has to look.
	look bool
	// undrain means that the host was drained and is not undrained.
	undrain bool
	// checks is the kind of checks that the host has to pass.
	checks message.TaskKind
}

// isOf reports whether the answer that is owed is that of a run. A run that still asks its start checks
// has no id, and no host has been sent a command of it.
func (d debt) isOf(p *run) bool { return p.id != 0 && d.answerOf == p.id }

// out reports whether a host is out of service: the run under way has taken it out
// of service, or it owes something, or it is silent and not absent, or it is locked.
func (h *host) out() bool { return h.outByRun() || h.locked }

// outByRun reports whether a host is out of service for another reason than its lock.
func (h *host) outByRun() bool { return h.held() || h.silent }

// held reports whether a host is out of service for another reason than silence.
func (h *host) held() bool { return h.member.inHand() || h.owes != (debt{}) }

// release puts a host back in service whatever it owes, and remembers which command it may
// still carry out.
func (h *host) release() {
	switch m := h.member; {
	case h.owes.answer != "":
		h.works, h.worksBefore = h.owes.answer, m == nil || !h.owes.isOf(m.run)
	case m != nil && m.phase == upgrading:
		h.works, h.worksBefore = message.Upgrade, false
	case m != nil && m.phase == rebooting:
		h.works, h.worksBefore = message.Reboot, false
	}
	works := h.works
	h.remove()
	h.works = works
}

// remove puts a host back in service whatever it owes: it was deleted.
func (h *host) remove() {
	h.works = ""
	h.owes, h.silent, h.absent, h.removed, h.forced = debt{}, false, false, true, true
	if m := h.member; m != nil {
		m.givenUp = m.givenUp || !m.ended
		m.phase, m.ended = over, true
	}
}

// host returns a host by its name; a new name makes a host.
func (o *Oracle) host(name string) *host {
	h := o.hosts[name]
	if h == nil {
		h = &host{name: name}
		o.hosts[name] = h
	}
	return h
}

// announced returns what the hosts owe according to an opening.
func announced(e message.Opened) map[string]debt {
	all := map[string]debt{}
	for _, entry := range e.Roster {
		if u := entry.Owes; u.Any() {
			all[entry.Host] = debt{answer: u.Answer, look: u.Look, undrain: u.Undrain, checks: u.Checks}
		}
	}
	return all
}

// open makes a run and its members. The opening lists all that hosts owe: a debt does
// not end with the run in which it arose (invariant 1).
func (o *Oracle) open(r message.Decoded, e message.Opened, sent time.Time) {
	if o.run != nil && !o.run.finished {
		o.violated("run %d is opened while run %d is under way", r.Seq, o.run.id)
	}
	owed := announced(e)
	o.compareDebts(r, e, owed)
	o.compareSilence(r, e)
	for _, entry := range e.Roster {
		if h := o.hosts[entry.Host]; h == nil || o.run == nil && !h.homed {
			o.host(entry.Host).works, o.host(entry.Host).owes = entry.Works, owed[entry.Host]
		}
	}
	o.compareWorks(r, e)
	o.takeOver(e)
	for _, h := range o.hosts {
		if o.ours(h, e) {
			h.member, h.silent, h.absent, h.removed, h.worksBefore = nil, false, false, false, true
		}
	}
	o.usesWindow(r, e)
	o.mayFollow(r, e, sent)
	o.goesOn(r, e)
	o.opensRollback(r, e)
	o.samePromotion(r.Seq, e.Environment, e.Promotion)
	o.untilReached(r, e)
	o.run = newRun(r, e)
	o.run.outputs = o.doneIn(e.Environment).standing(e.RollsBack())
	o.runs[e.Environment] = o.run
	o.windowTold(Opening{e.Environment, e.Window})
	if e.Trigger == message.TriggerWindow {
		o.notSkipped("has its run", r, Opening{e.Environment, e.Window})
	}
	for _, entry := range e.Roster {
		h := o.host(entry.Host)
		h.absent = entry.Silent && entry.Since.IsZero()
		h.silent = entry.Silent && (!h.absent || e.Rollout.Absent != rollout.Skip)
	}
	o.enlist(e)
	o.openCells(e)
	o.stagesDone(r.Time)
	o.count("runs opened by " + e.Trigger)
	if e.RetryOf != 0 {
		o.count("runs that retry")
	}
}

// ours reports whether an opening takes a host over, or its environment has the host already.
func (o *Oracle) ours(h *host, e message.Opened) bool {
	return !h.homed || h.home == e.Environment || has(names(e), h.name)
}

// compareDebts judges that an opening lists exactly what hosts owe, those that come from
// another environment included (invariant 11). It may have been written before the last answer.
func (o *Oracle) compareDebts(r message.Decoded, e message.Opened, announced map[string]debt) {
	for name, h := range o.hosts {
		if !o.ours(h, e) || o.run == nil && !h.homed {
			continue
		}
		owes := h.owes
		if e.RosterAsOf != 0 && h.lateAt > e.RosterAsOf {
			owes = h.lateOwed
			o.count("answers that come while the next run is opened")
		}
		owes.answerOf = 0
		if got := announced[name]; got != owes {
			o.violated("invariant %d: run %d is opened as if %s owed %+v, and it owes %+v", o.debts(h, e), r.Seq, name, got, owes)
		}
		if owes != (debt{}) {
			o.count("hosts that are not well when a run is opened")
		}
	}
	for name, owes := range announced {
		if o.run != nil && o.hosts[name] == nil {
			o.violated("run %d is opened as if %s owed %+v, which no run has had", r.Seq, name, owes)
		}
	}
}

// debts is the invariant that an opening breaks which says something else of what a host owes.
func (o *Oracle) debts(h *host, e message.Opened) int {
	if h.homed && h.home != e.Environment {
		return 11
	}
	return 1
}

// usesWindow judges that a window has no further run by itself after one that touched a
// host or was aborted, and counts those that it has.
func (o *Oracle) usesWindow(r message.Decoded, e message.Opened) {
	p := o.run
	if p == nil || e.Trigger != message.TriggerWindow || e.Window.IsZero() || !e.Window.Equal(p.window) {
		return
	}
	if p.windowUsed || p.touched || p.aborted {
		o.violated("run %d is opened in the window of %s, which run %d has used up", r.Seq, e.Window, p.id)
	}
	o.count("windows that are tried again")
}

// compareWorks judges that an opening says which released hosts may still be at work.
func (o *Oracle) compareWorks(r message.Decoded, e message.Opened) {
	said := map[string]message.Action{}
	for _, entry := range e.Roster {
		said[entry.Host] = entry.Works
	}
	for name, h := range o.hosts {
		if !o.ours(h, e) {
			continue
		}
		works := h.works
		if e.RosterAsOf != 0 && h.lateAt > e.RosterAsOf {
			works = h.lateWorks
		}
		if said[name] != works {
			o.violated("run %d is opened as if %s worked on %q of an earlier run, and it works on %q", r.Seq, name, said[name], works)
		}
		if h.works != "" {
			o.count("hosts that are released and may still be at work when a run is opened")
		}
	}
}

// compareSilence judges that a host that fell silent while a run was under way is out of
// service in the next run too, unless it was heard of (invariant 1).
func (o *Oracle) compareSilence(r message.Decoded, e message.Opened) {
	entries := map[string]message.Entry{}
	for _, entry := range e.Roster {
		entries[entry.Host] = entry
	}
	for name, h := range o.hosts {
		entry, listed := entries[name]
		switch {
		case !h.silent, h.absent, !o.ours(h, e), o.run == nil && !h.homed:
		case entry.Silent && entry.Since.IsZero(), !listed && !has(e.Members, name):
			o.violated("invariant 1: run %d is opened as if %s had been silent before all runs, and it fell silent in a run", r.Seq, name)
		case entry.Silent:
			o.count("hosts that are silent since an earlier run")
		}
	}
}

// enlist makes the members and stages of a run. A member does not owe an undrain or
// checks that the policy of this run does not have.
func (o *Oracle) enlist(e message.Opened) {
	p, first := o.run, 0
	for n, planned := range p.policy.Stages {
		s := stage{ResolvedStage: planned}
		for _, name := range e.Members[first : first+planned.Size] {
			h := o.host(name)
			h.member = &member{host: h, run: p, stage: n}
			h.owes.undrain = h.owes.undrain && p.policy.Hooks.Undrain != nil
			if len(p.checks(h.owes.checks)) == 0 {
				h.owes.checks = ""
			}
			if h.owes.answer == "" {
				h.owes.answerOf = 0
			}
			if e.Rollout.Absent == rollout.Skip && (h.absent || h.silent) && h.owes == (debt{}) {
				h.member.phase, h.member.ended = over, true
				o.count("members that are left out because they are silent")
			}
			p.members = append(p.members, h.member)
			s.hosts = append(s.hosts, h)
		}
		for _, entry := range e.Roster {
			if entry.Stage == planned.Name {
				s.hosts = append(s.hosts, o.host(entry.Host))
			}
		}
		p.stages = append(p.stages, s)
		first += planned.Size
	}
}
