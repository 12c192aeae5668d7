package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/view"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// lockRequest is what a host that reboots by itself asks for.
type lockRequest struct {
	v1.FleetLock
	by     string
	unlock bool
	// host is the name of the host once it was found.
	host string
	// decided tells that the request is decided: seq is its record, 0 if none was needed, and
	// refused says why there is none.
	decided bool
	seq     uint64
	refused error
}

// Lock locks a host that reboots by itself, and returns its name once that is on disk. A host that
// is locked stays so. The error is *run.Refused if it has to wait, *run.LockError if it can never be
// locked as things are declared, and run.ErrNotReady.
func (c *Controller) Lock(ctx context.Context, by string, who v1.FleetLock) (host string, err error) {
	return c.askLock(ctx, &lockRequest{FleetLock: who, by: by})
}

// Unlock notes that a host that was locked has rebooted, as Lock does. A host that is not locked
// stays so.
func (c *Controller) Unlock(ctx context.Context, by string, who v1.FleetLock) (host string, err error) {
	return c.askLock(ctx, &lockRequest{FleetLock: who, by: by, unlock: true})
}

func (c *Controller) askLock(ctx context.Context, q *lockRequest) (host string, err error) {
	return waitAs(ctx, c, waiter{ctx: ctx, lock: q}, func(s *state) (string, error) {
		switch {
		case q.refused != nil:
			return q.host, q.refused
		case s.alarm != nil || !s.active:
			return q.host, s.mayWrite()
		case !q.decided || q.seq > s.ledger.LastSeq:
			return "", errPending
		}
		return q.host, nil
	})
}

// undecidedLocks are the lock requests that are not decided and whose callers still wait, in the
// order in which they came.
func (s *state) undecidedLocks() iter.Seq[*lockRequest] {
	return func(yield func(*lockRequest) bool) {
		for _, w := range s.waiters {
			if q := w.lock; q != nil && !q.decided && w.ctx.Err() == nil && !yield(q) {
				return
			}
		}
	}
}

// serveLocks carries out the next decision about locks, if there is one, and returns when to decide again if its
// append has failed. It comes after the decisions of all runs: these may be the news that a host has
// fallen silent, which takes a place in its cells.
func (s *state) serveLocks(ctx context.Context, now time.Time) (retryAt time.Time) {
	event, q := s.nextLockEvent(ctx, now)
	if event == nil {
		return time.Time{}
	}
	retryAt = s.append(ctx, eventEntry(0, event))
	if q != nil && retryAt.IsZero() {
		q.decided, q.seq = true, s.log.last
		s.Logger.Info(message.Name(event), "tenant", s.Tenant, "host", q.host, "by", q.by)
	}
	return retryAt
}

// nextLockEvent returns the next event of locks, and the request that it carries out; nil if there is
// none. It decides the requests that need no event.
func (s *state) nextLockEvent(ctx context.Context, now time.Time) (message.Event, *lockRequest) {
	locks := s.ledger.Locks()
	for _, lock := range locks {
		if d, deleted := s.hosts.deleted[lock.Host]; deleted {
			return s.ledger.Unlock(lock.Host, d.By, cmp.Or(d.Why, "the host was deleted")), nil
		}
	}
	if len(locks) > 0 {
		if edited := s.editedBudgets(s.intent.effectiveOf(defaultName).Absent); edited != nil {
			return *edited, nil
		}
	}
	for q := range s.undecidedLocks() {
		event, err := s.decideLock(ctx, q, now)
		switch {
		case errors.Is(err, errAwaitsAnswer):
			continue
		case event != nil:
			if _, edited := event.(message.Budgeted); edited {
				return event, nil
			}
			return event, q
		case err != nil:
			q.refused = err
		}
		q.decided = true
	}
	return nil, nil
}

// decideLock returns the event that a request comes to; neither an event nor an error if nothing is
// to be done.
func (s *state) decideLock(ctx context.Context, q *lockRequest, now time.Time) (message.Event, error) {
	known, err := s.hostOf(q.ClientParams.ID)
	if err != nil {
		return nil, err
	}
	q.host = known.Name
	if _, locked := s.ledger.Locked(q.host); locked {
		if q.unlock { // Also after somebody has switched FleetLock off.
			return s.ledger.Unlock(q.host, q.by, ""), nil
		}
		return nil, nil
	}
	if err := s.lockable(known, q.ClientParams.Group); err != nil || q.unlock {
		return nil, err
	}
	if err := s.mayLock(known, now); err != nil {
		return nil, err
	}
	absent := s.intent.effectiveOf(known.Environment).Absent
	if edited := s.editedBudgets(absent); edited != nil {
		return *edited, nil
	}
	cells := s.cellsOf(absent, func(host string) bool { return host == q.host })
	event, err := s.ledger.Lock(run.LockRequest{Host: q.host, Environment: known.Environment, By: q.by, Cells: cells})
	if err == nil && !s.countsAsOut(q.host) {
		err = s.allowed(ctx, cells, now)
	}
	if err != nil {
		return nil, err
	}
	return event, nil
}

// countsAsOut reports whether a host is out of service already because of a run.
func (s *state) countsAsOut(host string) bool {
	hosts := s.lastOf(host).ledger.Roster()
	i, known := hosts.Index(host)
	return known && hosts.CountsAsOut(i)
}

// lockable returns why a host can never be locked as things are declared; nil when it can.
func (s *state) lockable(known *host, group string) error {
	environment := nameOf(known.Environment)
	switch rollout := s.intent.rolloutOf(known.Environment); {
	case rollout == nil || !rollout.FleetLock:
		return &run.LockError{Kind: run.LockOff, Message: fmt.Sprintf("FleetLock is off for host %s: set fleetlock to true in the rollout of environment %s: %s", known.Name, environment, run.Command("edit rollout"))}
	case group != v1.FleetLockGroup && group != environment:
		return &run.LockError{Kind: run.LockGroup, Message: fmt.Sprintf("client_params.group: %q is not the environment of host %s; use %q, or %q for whatever environment it is in", group, known.Name, environment, v1.FleetLockGroup)}
	}
	return nil
}

// hostOf returns the host that has an id of the FleetLock protocol: as its label, or else as its
// name.
func (s *state) hostOf(id string) (*host, error) {
	var found []string
	for _, known := range s.hosts.sorted() {
		if known.Labels[v1.FleetLockLabel] == id {
			found = append(found, known.Name)
		}
	}
	switch {
	case len(found) == 1:
		return s.hosts.known[found[0]], nil
	case len(found) > 1:
		return nil, &run.LockError{Kind: run.LockUnknown, Message: fmt.Sprintf("client_params.id: the hosts %s all have %q as their label %s; give each host its own", strings.Join(found[:min(len(found), mostNamed)], ", "), id, v1.FleetLockLabel)}
	case s.hosts.known[id] != nil:
		return s.hosts.known[id], nil
	}
	return nil, &run.LockError{Kind: run.LockUnknown, Message: fmt.Sprintf("client_params.id: no host has %q as its label %s or as its name; start its worker with --label %s=%s", id, v1.FleetLockLabel, v1.FleetLockLabel, id)}
}

// mayLock returns why no host of an environment may be locked now, whatever its place; nil when one
// may.
func (s *state) mayLock(known *host, now time.Time) error {
	if hold := cmp.Or(s.intent.hold(known.Environment), s.witnesses.hold(s.hosts.present.online)); hold != nil {
		return &run.Refused{Message: fmt.Sprintf("no host may leave service: %s", heldBy(*hold))}
	}
	if freeze, found := s.intent.nextFreeze(s.clock.forFreezes(now)); found && freeze.Contains(now) {
		return &run.Refused{Message: fmt.Sprintf("no host may leave service before %s: the freeze %s is in force", freeze.End.UTC().Format(time.RFC3339), freezeName(freeze))}
	}
	for _, env := range s.inOrder {
		current := env.ledger.Current()
		if current != nil && now.Before(s.judgeAt(env, current, now)) {
			return fmt.Errorf("%w: the site has just started, and does not know yet which hosts are silent", run.ErrNotReady)
		}
	}
	return nil
}

// heldBy says what holds up all runs.
func heldBy(hold message.Paused) string {
	if hold.By == message.ByRollout {
		return `the rollout has "paused": true`
	}
	return hold.Why
}

// counted reports whether a host counts in the cells of disruption budgets: it is in a roster, or
// locked.
func (s *state) counted(host string) bool {
	_, locked := s.ledger.Locked(host)
	return locked || s.ledger.InRoster(host)
}

// releasesLock returns the event that a request to release a host comes to, if the host is locked;
// nil if it is not.
func (s *state) releasesLock(q *request) message.Event {
	if q == nil || q.Ask != run.Release {
		return nil
	}
	event := s.ledger.Unlock(q.Host, q.By, q.Why)
	q.unlocks = event != nil
	return event
}

// relock returns the event that tells anew of the oldest lock, if only locks keep a long log from
// being trimmed; nil if they do not.
func (s *state) relock() message.Event {
	if !s.trim.mayTrim(s.guard.markBefore(s.ledger.NeededByRuns()) + 1) {
		return nil
	}
	return s.ledger.Relock()
}

// lockStates shows the first of the locks that are held, those held longest first.
func (s *state) lockStates() (all []v1.LockState, count int) {
	locks := s.ledger.Locks()
	for _, lock := range locks[:min(len(locks), maxSilent)] {
		all = append(all, v1.LockState{Host: lock.Host, Since: view.Time(lock.Since), By: lock.By})
	}
	return all, len(locks)
}

// lockedSince is since when a host is locked; nil when it is not.
func (s *state) lockedSince(host string) *time.Time {
	lock, locked := s.ledger.Locked(host)
	if !locked {
		return nil
	}
	return view.OptionalTime(lock.Since)
}
