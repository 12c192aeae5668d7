package controller

import (
	"container/list"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
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
	if e, online := p.places[name]; online {
		of(e).at = at
		p.order.MoveToBack(e)
		return
	}
	p.places[name] = p.order.PushBack(&heardOf{name, at})
}

// of returns the host at a place in the order.
func of(e *list.Element) *heardOf {
	h, _ := e.Value.(*heardOf)
	return h
}

// hearAll notes that all who are online still are.
func (p presence) hearAll(at time.Time) {
	for e := p.order.Front(); e != nil; e = e.Next() {
		of(e).at = at
	}
}

func (p presence) forget(name string) {
	if e, known := p.places[name]; known {
		p.order.Remove(e)
		delete(p.places, name)
	}
}

func (p presence) online(name string) bool {
	_, known := p.places[name]
	return known
}

// count returns how many hosts are online.
func (p presence) count() int { return len(p.places) }

// expire removes the hosts that are silent by now and returns their names. A
// clock that was set back does not keep a host online for ever: what was heard
// in the future counts as heard now.
func (p presence) expire(now time.Time) []string {
	var silent []string
	for e := p.order.Front(); e != nil; e = p.order.Front() {
		h := of(e)
		if h.at.After(now) {
			h.at = now
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
		return of(e).at.Add(message.Silence)
	}
	return time.Time{}
}
