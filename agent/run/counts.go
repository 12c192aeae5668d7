package run

import "maps"

// counts are the numbers of the members of a run, so that no decision has to look at all
// of them.
type counts struct {
	// status counts the hosts in each status.
	status map[Status]int
	// unprepared counts the hosts whose answer to prepare is waited for, unstarted the hosts
	// that have not had a slot, underWay the hosts that the run waits for before it
	// can end, upToDate those of the upgraded ones that had nothing to change.
	unprepared, unstarted, underWay, upToDate int
}

// add adds a member to what is counted, or takes it away, apart from its status.
func (c *counts) add(m *member, n int) {
	if m.underWay() {
		c.underWay += n
	}
	if m.isAwaited() {
		c.unprepared += n
	}
	if m.phase <= ready {
		c.unstarted += n
	}
	if m.final == Upgraded && m.upToDate {
		c.upToDate += n
	}
}

// change counts a member that goes from one status to another.
func (c *counts) change(from, to Status) {
	if from != to {
		c.status[from]--
		c.status[to]++
	}
}

func (c *counts) clone() counts {
	clone := *c
	clone.status = maps.Clone(c.status)
	return clone
}
