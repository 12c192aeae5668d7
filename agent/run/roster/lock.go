package roster

import (
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// A host that reboots by itself may be locked: it has a place in all its cells until it is
// unlocked, whatever runs do. The ledger has one roster of all locked hosts, so that a host counts
// that no run has ever named, and every roster that has a locked host knows it, so that the host
// counts in the group of its stage.

// IsLocked reports whether the host is locked.
func (h *Host) IsLocked() bool { return !h.locked.IsZero() }

// LockedSince is when the host was locked; zero while it is not.
func (h *Host) LockedSince() time.Time { return h.locked }

// Lock notes that a host reboots by itself, since a time.
func (r *Roster) Lock(i int, since time.Time) {
	r.change(i, since, func(h *Host) { h.locked = since })
}

// Unlock notes that a host reboots by itself no more.
func (r *Roster) Unlock(i int, at time.Time) {
	r.change(i, at, func(h *Host) { h.locked = time.Time{} })
}

// AddLocked adds a locked host to the roster of all locked hosts. The cells of the event count if no
// other roster has the host, and then only they. It reports whether the lists of cells are other ones
// now.
func (c *Cells) AddLocked(locks *Roster, e message.Locked, since time.Time) (recounted bool) {
	if locks.index == nil {
		locks.index = map[string]int{}
	}
	if c.budgets == "" { // It is the first record that says which budgets are in force.
		c.budgets = e.Budgets
	}
	if !slices.Contains(c.rosters, locks) {
		c.rosters = append(slices.Clone(c.rosters), locks)
		locks.cells = c
	}
	named := slices.ContainsFunc(c.rosters, func(r *Roster) bool { return r != locks && r.Has(e.Host) })
	i := locks.addInOrder(e.Host)
	locks.leaveCell(i)
	locks.enterCell(i)
	if recounted = !named && (len(e.Cells) > 0 || c.places[e.Host] != nil); recounted {
		c.enter([]string{e.Host}, e.Cells)
	}
	locks.Lock(i, since)
	return recounted
}

// addInOrder adds a host, and returns its index. The hosts are in the order of their names, so that it
// does not depend on records that may be trimmed.
func (r *Roster) addInOrder(host string) int {
	i, known := slices.BinarySearchFunc(r.hosts, host, func(h *Host, name string) int { return strings.Compare(h.Name, name) })
	if !known {
		r.hosts = slices.Insert(r.hosts, i, &Host{Name: host, Group: NoGroup})
		r.reindex()
	}
	return i
}

// reindex follows a change of the order of the hosts.
func (r *Roster) reindex() {
	clear(r.index)
	for i, h := range r.hosts {
		r.index[h.Name] = i
	}
}

// RemoveLocked takes a host out of the roster of all locked hosts. Its cells forget it, if no other
// roster has it: then the lists of cells may be other ones now, which it reports.
func (c *Cells) RemoveLocked(locks *Roster, host string) (recounted bool) {
	i, known := locks.index[host]
	if !known {
		return false
	}
	locks.leaveCell(i)
	locks.hosts = slices.Delete(slices.Clone(locks.hosts), i, i+1)
	locks.reindex()
	if len(locks.hosts) == 0 {
		c.rosters = slices.DeleteFunc(slices.Clone(c.rosters), func(r *Roster) bool { return r == locks })
	}
	recounted = c.places[host] != nil && !c.has(host)
	if recounted {
		c.enter([]string{host}, nil)
	}
	return recounted
}

// Knows reports whether the cells of a host are known, because a roster has it.
func (c *Cells) Knows(host string) bool { return c.places[host] != nil }

// Limited returns cells with the limits that count now, of those that are known.
func (c *Cells) Limited(cells []message.Cell) []message.Cell {
	limited := slices.Clone(cells)
	for n := range limited {
		if known := c.index(limited[n].Key()); known >= 0 {
			limited[n].MaxUnavailable = c.list[known].MaxUnavailable
		}
	}
	return limited
}

// BlockingAny returns the first of some cells that is full, with its holders; false when none is.
func (c *Cells) BlockingAny(cells []message.Cell) (Cell, bool) {
	for _, named := range cells {
		full := Cell{Cell: named}
		if n := c.index(named.Key()); n >= 0 {
			full = c.list[n].seen()
			full.Holders = c.holdersOf(n)
		}
		if full.Full() {
			return full, true
		}
	}
	return Cell{}, false
}
