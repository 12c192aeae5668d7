package controller

import (
	"container/list"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// presence knows who is online: whoever was heard of within message.Silence.
// The host that was not heard of for the longest stands at the front, so that
// a heartbeat, and noticing that one is missing, cost the same however many
// hosts there are.
type presence struct {
	order  *list.List
	places map[string]*list.Element
}

// heardOf is a host's place in the order.
type heardOf struct {
	name string
	at   time.Time
}

func newPresence() presence { return presence{order: list.New(), places: map[string]*list.Element{}} }

// hear notes that a host is online.
func (p presence) hear(name string, at time.Time) {
	p.forget(name)
	p.places[name] = p.order.PushBack(heardOf{name, at})
}

// hearAll notes that all who are online still are.
func (p presence) hearAll(at time.Time) {
	for e := p.order.Front(); e != nil; e = e.Next() {
		h, _ := e.Value.(heardOf)
		e.Value = heardOf{h.name, at}
	}
}

func (p presence) forget(name string) {
	if e, known := p.places[name]; known {
		p.order.Remove(e)
		delete(p.places, name)
	}
}

func (p presence) online(name string) bool {
	_, is := p.places[name]
	return is
}

// expire removes the hosts that are silent by now and returns their names. A
// clock that was set back does not keep a host online for ever: what was heard
// in the future counts as heard now.
func (p presence) expire(now time.Time) []string {
	var silent []string
	for e := p.order.Front(); e != nil; e = p.order.Front() {
		h, _ := e.Value.(heardOf)
		if h.at.After(now) {
			e.Value = heardOf{h.name, now}
			break
		}
		if now.Sub(h.at) < message.Silence {
			break
		}
		silent = append(silent, h.name)
		p.forget(h.name)
	}
	return silent
}

// next is when the next host may fall silent; zero when none is online.
func (p presence) next() time.Time {
	if e := p.order.Front(); e != nil {
		h, _ := e.Value.(heardOf)
		return h.at.Add(message.Silence)
	}
	return time.Time{}
}

const (
	// away is how late a decision may come before the controller concludes that
	// its process was stopped, its machine suspended, or the clock set forward.
	away = 2 * time.Second
	// catchingUp is how long nothing is judged after that: what hosts have said
	// meanwhile waits in the sockets of this process.
	catchingUp = 5 * time.Second
)

// pace notices that nothing was decided for a while.
type pace struct {
	// looked is when the last decision was made, due when the next was to be made
	// at the latest.
	looked, due time.Time
	// judgeAt is when hosts may be given up again.
	judgeAt time.Time
}

// wasAway reports whether nothing was decided for a while, and for how long.
// A controller that is late all the time still judges between two such pauses.
func (p *pace) wasAway(now time.Time) (late time.Duration, was bool) {
	if p.judgeAt.After(now.Add(catchingUp)) {
		p.judgeAt = time.Time{} // The clock was set back since.
	}
	late = now.Sub(later(p.looked, p.due))
	if p.due.IsZero() || late < away || now.Before(p.judgeAt.Add(longestSleep)) {
		return 0, false
	}
	p.judgeAt = now.Add(catchingUp)
	return late, true
}
