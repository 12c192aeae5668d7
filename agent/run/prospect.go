package run

import (
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/roster"
)

// prospect is a forecast that is being made.
type prospect struct {
	*State
	f    Forecast
	took time.Duration
	// last is when the last host is done, of those so far.
	last time.Time
}

// done adds when a host is expected to be done.
func (p *prospect) done(m *member, at time.Time) {
	p.f.Hosts[m.Name], p.last = at, later(p.last, at)
	if at.After(p.NotAfter) {
		p.f.Left++
	}
}

// crew are the hosts of a stage, by what is to be expected of them.
type crew struct {
	// ends are when the hosts under way are done, and their slots free.
	ends []time.Time
	// held and free are those that can begin, in their order: held are out of
	// service already, since a run before.
	held, free []*member
	// stuck names those of which nobody knows when they can begin.
	stuck []string
	// lost counts the slots of which nobody knows when they will be free, ours
	// those of them that were taken in this run. holders names who has them.
	lost, ours int
	holders    []string
}

// toBegin reports whether the stage has hosts that have not begun.
func (c *crew) toBegin() bool { return len(c.held)+len(c.free)+len(c.stuck) > 0 }

// crew returns the hosts of a stage, and adds when those under way are done.
func (p *prospect) crew(g *stage, now time.Time) *crew {
	c := &crew{}
	for _, i := range g.order {
		switch m := &p.members[i]; {
		case m.final == "" && m.underWay():
			end := later(now, m.takenAt.Add(p.took))
			p.done(m, end)
			if m.IsSilent() {
				c.lose(m)
			} else {
				c.ends = append(c.ends, end)
			}
		case m.final == "" && (m.IsSilent() || m.Owes.Look):
			c.stuck = append(c.stuck, m.Name+" ("+m.Reason()+")")
			c.lose(m)
		case m.final == "" && m.Held():
			c.held = append(c.held, m)
		case m.final == "":
			c.free = append(c.free, m)
		case m.Out():
			c.lose(m)
		}
	}
	for _, h := range p.others() {
		if h.Out() && h.Group != roster.NoGroup && &p.stages[h.Group] == g {
			c.lost++
			c.holders = append(c.holders, h.Name+" ("+h.Reason()+")")
		}
	}
	return c
}

func (c *crew) lose(m *member) {
	c.lost++
	if m.Held() && !m.takenAt.IsZero() {
		c.ours++
	}
	c.holders = append(c.holders, m.Name+" ("+m.Reason()+")")
}

// begin adds when the hosts of a stage are done that have not begun. Those that
// are out of service anyway go first; those that need a slot have one once it
// is free.
func (p *prospect) begin(n int, c *crew, begins, now time.Time) {
	g := &p.stages[n]
	splayed := later(begins, g.approvedAt)
	if n == p.current {
		splayed = later(p.reached(), g.approvedAt)
	}
	wellAgain := list(c.holders) + " to be well again, to be released or to be deleted"
	if p.f.Waits = p.unforeseen(n, now); p.f.Waits != "" {
		return
	}
	if !p.queue(c, c.held, g.MaxUnavailable-c.ours, begins, splayed) {
		c.lost += len(c.held)
		p.f.Waits = wellAgain
	}
	if !p.queue(c, c.free, g.MaxUnavailable-c.lost, begins, splayed) {
		p.f.Waits = wellAgain
	}
	if len(c.stuck) > 0 {
		p.f.Waits = list(c.stuck) + " to come back, to be released or to be deleted"
	}
}

// unforeseen says in words what keeps the hosts of a stage from beginning that
// nobody can foresee the end of; empty when there is nothing.
func (s *State) unforeseen(n int, now time.Time) string {
	_, wanted := s.fleetTask(now)
	switch g := &s.stages[n]; {
	case s.Paused != nil:
		return s.pausing().Detail
	case !s.approved(g):
		return fmt.Sprintf("stage %s to be approved", g.Name)
	case wanted && s.fleet.text != "":
		return taskWords[message.Fleet] + ", which failed: " + s.fleet.text
	}
	return ""
}

// queue adds when hosts are done that go one after the other in so many lanes;
// false when there is no lane. Each may not begin before begins, nor before its
// splay lets it.
func (p *prospect) queue(c *crew, hosts []*member, count int, begins, splayed time.Time) bool {
	l := newLanes(c.ends, count, len(hosts), begins)
	for _, m := range hosts {
		if len(l.free) == 0 {
			return false
		}
		end := l.take(p.splays(m, splayed), p.took)
		p.done(m, end)
		c.ends = append(c.ends, end)
	}
	return true
}

// lanes are the slots of a stage, each with the time from which on it is free:
// the earliest is at next. All hosts take equally long, so they become free in
// the order in which they are taken.
type lanes struct {
	free []time.Time
	next int
}

// newLanes makes so many lanes, for so many hosts. Some are taken by hosts under
// way, until ends; if there are more of these than lanes, the first of them leave
// none behind.
func newLanes(ends []time.Time, count, hosts int, begins time.Time) lanes {
	if count <= 0 || hosts == 0 {
		return lanes{}
	}
	ends = slices.SortedFunc(slices.Values(ends), time.Time.Compare)
	ends = ends[max(0, len(ends)-count):]
	free := slices.Repeat([]time.Time{begins}, min(hosts, count-len(ends)))
	return lanes{free: append(free, ends...)}
}

// take has a host begin that may not do so before a time, and returns when it is
// done.
func (l *lanes) take(from time.Time, took time.Duration) time.Time {
	end := later(l.free[l.next], from).Add(took)
	l.free[l.next] = end
	l.next = (l.next + 1) % len(l.free)
	return end
}
