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

// AddLocked adds a locked host to the roster of all locked hosts. Its cells are those that the
// others know, if it is in a roster, and else those that are given.
func (c *Cells) AddLocked(locks *Roster, host string, cells []message.Cell, since time.Time) {
	if locks.index == nil {
		locks.index = map[string]int{}
	}
	if !slices.Contains(c.rosters, locks) {
		c.rosters = append(slices.Clone(c.rosters), locks)
		locks.cells = c
	}
	i := locks.add(host, NoGroup)
	locks.hosts[i].place = c.enlist(host, cells)
	locks.Lock(i, since)
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
	if slices.ContainsFunc(c.rosters, func(r *Roster) bool { _, has := r.index[host]; return has }) {
		return
	}
	delete(c.places, host)
	for n := range c.list {
		c.list[n].Hosts = slices.DeleteFunc(slices.Clone(c.list[n].Hosts), func(other string) bool { return other == host })
	}
}

// enlist returns the place of a host; nil when it is in no cell. A host without one gets it in the
// cells that are given. Of those that are known already the limits stay as they are.
func (c *Cells) enlist(host string, cells []message.Cell) *place {
	if p := c.places[host]; p != nil || len(cells) == 0 {
		return p
	}
	if c.places == nil {
		c.places, c.sets = map[string]*place{}, [][]int{nil}
	}
	for _, named := range cells {
		if !slices.ContainsFunc(c.list, func(known cell) bool { return known.Key() == named.Key() }) {
			named.Hosts = nil
			c.list = append(c.list, cell{Cell: named, holders: map[string]bool{}})
		}
	}
	return c.admit(host, cells)
}

// Knows reports whether the cells of a host are known, because a roster has it.
func (c *Cells) Knows(host string) bool { return c.places[host] != nil }

// BlockingAny returns the first cell that keeps a host from leaving service, with its holders; false
// when none does. The cells given count if those of the host are not known.
func (c *Cells) BlockingAny(host string, cells []message.Cell) (Cell, bool) {
	if p := c.places[host]; p != nil {
		for _, n := range c.sets[p.set] {
			if full := c.at(n); full.Full() {
				return full, true
			}
		}
		return Cell{}, false
	}
	for _, named := range cells {
		full := Cell{Cell: named}
		if n := slices.IndexFunc(c.list, func(known cell) bool { return known.Key() == named.Key() }); n >= 0 {
			full = c.at(n)
		}
		if full.Full() {
			return full, true
		}
	}
	return Cell{}, false
}

// at returns a cell with its holders.
func (c *Cells) at(n int) Cell {
	known := c.list[n]
	return Cell{Cell: known.Cell, Out: known.out, Reserved: known.reserved, Holders: c.holdersOf(n)}
}
