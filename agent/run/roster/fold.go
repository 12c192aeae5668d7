package roster

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// What can happen to a host. A record of the log comes to one of these for each of its
// hosts once its run has accepted it: the run knows in which phase a host is and which
// checks and hooks its rollout has, so that neither is kept twice.
//
//	silent                      FellSilent
//	recovered                   Recover
//	deleted                     Remove
//	released                    Release
//	admitted                    Admit
//	slot, command upgrade       Take, and Drain if the host will have to be undrained
//	a reply                     Answer; a failure also Fail
//	overdue, cancelled          Await for a command that may still be carried out; Fail
//	ran                         Pass, or Fail
//	the host is upgraded        Return
//	the host's part has ended   LetGo
//	another run names the host  Leave
//	command prepare             Begin
//	finished                    Finish
//	locked, unlocked            Lock, Unlock

// Begin notes the id of the run.
func (r *Roster) Begin(run uint64) { r.run = run }

// FellSilent notes that a host is silent.
func (r *Roster) FellSilent(i int, at time.Time) { r.change(i, at, func(h *Host) { h.silent = at }) }

// Recover notes that a host is heard of.
func (r *Roster) Recover(i int, at time.Time) { r.change(i, at, (*Host).recover) }

func (h *Host) recover() { h.silent, h.absent = time.Time{}, false }

// Remove ends all that keeps a host out of service, and forgets what it may be at work on:
// somebody deleted it.
func (r *Roster) Remove(i int, at time.Time) {
	r.Release(i, "", at)
	r.hosts[i].works = ""
}

// Release ends all that keeps a host out of service: a person freed its slot. command is what
// the run has told it to do and it has not answered; empty for none. The host may still carry
// that out, or one of an earlier run.
func (r *Roster) Release(i int, command message.Action, at time.Time) {
	r.change(i, at, func(h *Host) {
		switch {
		case command != "":
			h.works, h.worksBefore, h.unanswered = command, false, r.run
		case h.owes.Answer != "":
			h.works, h.worksBefore = h.owes.Answer, h.Before()
		}
		h.recover()
		h.inHand, h.admitted, h.owes, h.removed = false, false, message.Debt{}, true
	})
}

// Leave notes that the roster of another environment has the host from now on, with all that
// keeps it out of service.
func (r *Roster) Leave(i int, at time.Time) {
	r.Remove(i, at)
	r.Unlock(i, at)
	r.leaveCell(i)
	r.hosts[i].moved = true
}

// Admit notes that a host is checked before its upgrade. One that is out of service
// already stays so meanwhile, also when these checks are all that it owed: otherwise it
// would need a slot at once.
func (r *Roster) Admit(i int, at time.Time) {
	r.change(i, at, func(h *Host) { h.inHand, h.admitted = h.HasSlot(), true })
}

// Take takes a host out of service for its upgrade.
func (r *Roster) Take(i int, at time.Time) {
	r.change(i, at, func(h *Host) { h.inHand, h.admitted, h.before = true, false, false })
}

// Drain notes that a host is drained, and has to be undrained.
func (r *Roster) Drain(i int, at time.Time) {
	r.change(i, at, func(h *Host) { h.owes.Undrain = true })
}

// LetGo notes that the run does no more with a host. What that owes still keeps it out of
// service.
func (r *Roster) LetGo(i int, at time.Time) {
	r.change(i, at, func(h *Host) { h.inHand, h.admitted = false, false })
}

// Await notes that a host has not answered a command, and so may be at work.
func (r *Roster) Await(i int, command message.Action, at time.Time) {
	r.change(i, at, func(h *Host) { h.owes.Answer, h.unanswered = command, r.run })
}

// Answer notes that a host has answered the command that it owed an answer to, and so is
// at work no more. A host that says that it does not know what it did proves nothing by
// that: somebody has to look, unless the host was released.
func (r *Roster) Answer(i int, unknown bool, at time.Time) {
	r.change(i, at, func(h *Host) {
		h.owes.Look = h.owes.Look || unknown && h.works == ""
		h.owes.Answer, h.works, h.unanswered = "", "", 0
	})
}

// Fail notes that a host has failed in the run: it has to pass checks, if there are any,
// before it is well.
func (r *Roster) Fail(i int, checks message.TaskKind, at time.Time) {
	r.change(i, at, func(h *Host) { h.owes.Checks, h.failed, h.inHand, h.admitted = checks, true, false, false })
}

// Pass notes that a task of a host has passed.
func (r *Roster) Pass(i int, task message.TaskKind, at time.Time) {
	r.change(i, at, func(h *Host) {
		if task == message.Undrain {
			h.owes.Undrain = false
		}
		if task == h.owes.Checks {
			h.owes.Checks = ""
		}
	})
}

// Return notes that a host is upgraded and well.
func (r *Roster) Return(i int, at time.Time) {
	r.change(i, at, func(h *Host) { h.inHand, h.admitted, h.owes.Checks = false, false, "" })
}

// Finish notes that the run has ended: hosts that were absent count no more.
func (r *Roster) Finish() {
	r.finished = true
	for _, h := range r.hosts {
		if h.absent && h.IsSilent() && !h.HasSlot() && !h.IsLocked() {
			r.cells.count(h.place, -1, 0)
		}
	}
}

// SetBack moves each time that is after now to now: the log's clock was set back.
func (r *Roster) SetBack(now time.Time) {
	for _, h := range r.hosts {
		for _, t := range []*time.Time{&h.since, &h.silent, &h.locked} {
			if t.After(now) {
				*t = now
			}
		}
	}
}

// change changes a host and keeps the counts right, those of its group and of its cells. A host that the change takes out of
// service is out of service since then.
func (r *Roster) change(i int, at time.Time, change func(*Host)) {
	h := r.hosts[i]
	out := h.Out()
	wasOut, wasReserved := r.takes(i)
	change(h)
	switch {
	case !h.HasSlot():
		h.since, h.before = time.Time{}, false
	case h.since.IsZero():
		h.since = at
	}
	if h.Out() != out && h.Group != NoGroup {
		if out {
			r.groups[h.Group].out--
		} else {
			r.groups[h.Group].out++
		}
	}
	isOut, isReserved := r.takes(i)
	r.cells.count(h.place, isOut-wasOut, isReserved-wasReserved)
}
