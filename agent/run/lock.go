package run

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/roster"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Lock is the right of a host to reboot by itself: until it is unlocked, the host is out of service.
type Lock struct {
	Host string
	// Environment is that of the host when it was locked, by its name on the log.
	Environment string
	Since       time.Time
	By          string
	// seq is the record that told of it last.
	seq uint64
}

// LockRequest is what a host asks for that wants to reboot by itself.
type LockRequest struct {
	Host        string
	Environment string
	By          string
	// Cells are those of the host by its labels now, of the budgets that are in force on the log. They
	// count if no roster has the host, with the limits that the log knows.
	Cells []message.Cell
}

// Locked reports whether a host is locked, and since when.
func (l *Ledger) Locked(host string) (Lock, bool) {
	lock, locked := l.locks[host]
	return lock, locked
}

// Locks returns the locks, those that began first at first.
func (l *Ledger) Locks() []Lock {
	return slices.SortedFunc(maps.Values(l.locks), func(a, b Lock) int { return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Host, b.Host)) })
}

// Lock returns the event that locks a host; nil if it is locked already, whoever asks. The error is
// *Refused and says what stands in the way: a run has the host in hand, or no further host of its
// stage or of one of its cells may be out of service. A host in no cell shares one place with all
// others of its environment that are in none.
func (l *Ledger) Lock(q LockRequest) (message.Event, error) {
	if _, locked := l.locks[q.Host]; locked {
		return nil, nil
	}
	home, i := l.rosterOf(q.Host)
	cells := l.cells.Limited(q.Cells)
	if home != nil {
		cells = l.cells.Of([]string{q.Host}) // The log says in which cells it is.
	}
	event := message.Locked{Host: q.Host, Environment: q.Environment, By: q.By, Budgets: l.cells.Budgets(), Cells: cells}
	if home != nil {
		h, current := home.Roster().Host(i), home.Current()
		works, _ := h.Works()
		switch owes := cmp.Or(h.Owes().Answer, works); {
		case current != nil && h.InHand():
			return nil, current.refused("host %s is being upgraded by run %d; it may reboot by itself after that", q.Host, current.Key())
		case owes != "":
			return nil, home.newest.refused("host %s has not answered %s of a run and may still carry it out; it may reboot by itself after that", q.Host, owes)
		case home.Roster().CountsAsOut(i): // It takes no further host out of service.
			return event, nil
		case current != nil && h.Group != roster.NoGroup && !current.hasRoom(h.Group):
			g := &current.stages.list[h.Group]
			return nil, current.refused("stage %s of run %d has no free slot for host %s: %d of at most %d of its hosts are out of service, or about to be",
				g.Name, current.Key(), q.Host, home.Roster().Out(h.Group)+g.waiting, g.MaxUnavailable)
		}
	}
	if full, some := l.cells.BlockingAny(cells); some {
		return nil, &Refused{Message: noPlaceFor(q.Host, full)}
	}
	if len(cells) == 0 {
		for _, other := range l.Locks() {
			if other.Environment == q.Environment && !l.cells.Knows(other.Host) {
				return nil, &Refused{Message: fmt.Sprintf("host %s is locked since %s: no disruption budget matches host %s, and without one at most 1 host of an environment is locked at once; to free its lock: %s",
					other.Host, stamp(other.Since), q.Host, Typed("release "+other.Host))}
			}
		}
	}
	return event, nil
}

// hasRoom reports whether a further host of a stage may be out of service.
func (s *State) hasRoom(group int) bool {
	return s.stages.list[group].roomFor(false, s.roster.Free(group))
}

// noPlaceFor says which cell keeps a host from leaving service, and who holds its places.
func noPlaceFor(host string, full roster.Cell) string {
	holders := make([]string, len(full.Holders))
	for i, h := range full.Holders {
		holders[i] = h.Name
		if reason := h.Reason(); reason != "" {
			holders[i] += " (" + reason + ")"
		}
	}
	text := fmt.Sprintf("%s has no free place for host %s: %d of at most %d hosts are out of service, or about to be", full.Name(), host, full.Out+full.Reserved, full.MaxUnavailable)
	if len(holders) > 0 {
		text += ": " + list(holders)
	}
	return text
}

// Unlock returns the event that unlocks a host; nil if it is not locked.
func (l *Ledger) Unlock(host, by, why string) message.Event {
	if _, locked := l.locks[host]; !locked {
		return nil
	}
	return message.Unlocked{Host: host, By: by, Why: message.CleanText(why)}
}

// Relock returns the event that tells anew of the oldest lock, if only locks keep records before the
// newest runs from being trimmed; nil if they do not. Since when the host is locked stays.
func (l *Ledger) Relock() message.Event {
	oldest, some := l.oldestLock()
	if !some || oldest.seq >= l.NeededByRuns() {
		return nil
	}
	return message.Locked{Host: oldest.Host, Environment: oldest.Environment, By: oldest.By, Since: oldest.Since, Budgets: l.cells.Budgets(), Cells: l.cells.Of([]string{oldest.Host})}
}

// oldestLock returns the lock of which the log has told first.
func (l *Ledger) oldestLock() (oldest Lock, some bool) {
	for _, lock := range l.locks {
		if !some || lock.seq < oldest.seq {
			oldest, some = lock, true
		}
	}
	return oldest, some
}

// lock folds the event that a host is locked, or told anew to be: then all is as if the records before
// had been trimmed.
func (l *Ledger) lock(r *message.Decoded, e message.Locked) error {
	before, locked := l.locks[e.Host]
	if locked && e.Since.IsZero() {
		return fmt.Errorf("%s is locked already, since %s", e.Host, stamp(before.Since))
	}
	home, i := l.rosterOf(e.Host)
	if !locked && home != nil && home.Current() != nil && home.Roster().Host(i).InHand() {
		return fmt.Errorf("%s is in the hand of run %d", e.Host, home.Key())
	}
	if l.locks == nil {
		l.locks, l.lockRoster = map[string]Lock{}, &roster.Roster{}
	}
	lock := Lock{Host: e.Host, Environment: e.Environment, Since: cmp.Or(e.Since, r.Time), By: e.By, seq: r.Seq}
	l.locks[e.Host] = lock
	recounted := l.cells.AddLocked(l.lockRoster, e, lock.Since)
	l.tellLock(e.Host, r.Time)
	if recounted || !e.Since.IsZero() { // A run may have queued the host by the records before.
		l.regroup()
	}
	return nil
}

// unlock folds the event that a host is not locked any more.
func (l *Ledger) unlock(r *message.Decoded, e message.Unlocked) error {
	if _, locked := l.locks[e.Host]; !locked {
		return fmt.Errorf("%s is not locked", e.Host)
	}
	delete(l.locks, e.Host)
	if l.cells.RemoveLocked(l.lockRoster, e.Host) {
		l.regroup()
	}
	if home, i := l.rosterOf(e.Host); home != nil {
		home.newest.serve(i, r.Time, func() { home.newest.roster.Unlock(i, r.Time) })
		l.note(home)
	}
	return nil
}

// tellLock has the roster that has a locked host know that it is locked.
func (l *Ledger) tellLock(host string, at time.Time) {
	if home, i := l.rosterOf(host); home != nil {
		home.newest.serve(i, at, func() { home.newest.roster.Lock(i, l.locks[host].Since) })
		l.note(home)
	}
}

// rosterOf returns the environment whose roster has a host, and its index there; nil when none has.
func (l *Ledger) rosterOf(host string) (*Environment, int) {
	home := l.home(host)
	if home == nil || home.newest == nil {
		return nil, 0
	}
	i, known := home.roster.Index(host)
	if !known || home.roster.Host(i).HasMoved() {
		return nil, 0
	}
	return home, i
}

// LockError means that a host cannot be locked as things are declared: to ask again changes nothing.
type LockError struct {
	// Kind is one of the constants below.
	Kind    string
	Message string
}

// Error implements error.
func (e *LockError) Error() string { return e.Message }

// The kinds of LockError.
const (
	// LockOff means that hosts of this environment cannot be locked at all.
	LockOff = "fleetlock_off"
	// LockUnknown means that the id is of no host, or of several.
	LockUnknown = "unknown_host"
	// LockGroup means that the host is not in the group that it names.
	LockGroup = "other_group"
)

// setLocksBack moves the beginning of each lock that is after now to now: the log's clock was set
// back.
func (l *Ledger) setLocksBack(now time.Time) {
	for host, lock := range l.locks {
		lock.Since = times.Earlier(lock.Since, now)
		l.locks[host] = lock
	}
	if l.lockRoster != nil {
		l.lockRoster.SetBack(now)
	}
}

// lockAll notes in a roster that has just begun which of its hosts are locked.
func lockAll(r *roster.Roster, locks map[string]Lock) {
	for host, lock := range locks {
		if i, known := r.Index(host); known {
			r.Lock(i, lock.Since)
		}
	}
}
