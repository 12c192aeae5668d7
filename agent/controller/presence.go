package controller

import (
	"container/list"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// presence knows who is online: whoever was heard of within message.Silence.
// The host that was not heard of for the longest stands at the front, so that
// a heartbeat, and noticing that one is missing, cost the same however many
// hosts there are.
type presence struct {
	order  *list.List
	places map[string]*list.Element
	// silent are the hosts that are not online, and since when they have not been heard of.
	// Those that were not heard of since the start are missing until judged.
	silent map[string]time.Time
}

// heardOf is a host's place in the order.
type heardOf struct {
	name string
	at   time.Time
}

func newPresence() presence {
	return presence{order: list.New(), places: map[string]*list.Element{}, silent: map[string]time.Time{}}
}

// hear notes that a host is online.
func (p presence) hear(name string, at time.Time) {
	delete(p.silent, name)
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
	delete(p.silent, name)
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
		p.silent[h.name] = h.at
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

// judge notes as silent since a time whoever was not heard of.
func (p presence) judge(name string, since time.Time) {
	if _, noted := p.silent[name]; !noted && !p.online(name) {
		p.silent[name] = since
	}
}

// setBack moves each time that is after now to now: the clock was set back.
func (p presence) setBack(now time.Time) {
	for name, since := range p.silent {
		p.silent[name] = times.Earlier(since, now)
	}
}
