package roster

import (
	"slices"
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

// AddLocked adds a locked host to the roster of all locked hosts. Cells are those of a host that is in
// no roster, and only they count then; one that is in a roster keeps its own. It reports
// whether the lists of cells are other ones now.
func (c *Cells) AddLocked(locks *Roster, host string, cells []message.Cell, since time.Time) (recounted bool) {
	if locks.index == nil {
		locks.index = map[string]int{}
	}
	if !slices.Contains(c.rosters, locks) {
		c.rosters = append(slices.Clone(c.rosters), locks)
		locks.cells = c
	}
	named := slices.ContainsFunc(c.rosters, func(r *Roster) bool { return r.Has(host) })
	i := locks.add(host, NoGroup)
	if recounted = !named && (len(cells) > 0 || c.places[host] != nil); recounted {
		c.admit(cells, map[string]bool{host: true})
	} else {
		locks.hosts[i].place = c.places[host]
	}
	locks.Lock(i, since)
	return recounted
}

// RemoveLocked takes a host out of the roster of all locked hosts. Its cells forget it, if no other
// roster has it.
func (c *Cells) RemoveLocked(locks *Roster, host string, at time.Time) {
	i, known := locks.index[host]
	if !known {
		return
	}
	locks.Unlock(i, at)
	locks.hosts = slices.Delete(slices.Clone(locks.hosts), i, i+1)
	delete(locks.index, host)
	for n, h := range locks.hosts {
		locks.index[h.Name] = n
	}
	if slices.ContainsFunc(c.rosters, func(r *Roster) bool { return r.Has(host) }) {
		return
	}
	delete(c.places, host)
	for n := range c.list {
		c.list[n].Hosts = slices.DeleteFunc(slices.Clone(c.list[n].Hosts), func(other string) bool { return other == host })
	}
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
			known := c.list[n]
			full = Cell{Cell: known.Cell, Out: known.out, Reserved: known.reserved, Holders: c.holdersOf(n)}
		}
		if full.Full() {
			return full, true
		}
	}
	return Cell{}, false
}

// index returns the index of a cell, or -1.
func (c *Cells) index(key message.CellKey) int {
	return slices.IndexFunc(c.list, func(known cell) bool { return known.Key() == key })
}
