package sim

import (
	"math"
	"sync"
	"time"
)

// prevail has the weather that goes on for some time.
func (w *World) prevail(parts *sync.WaitGroup) {
	for what, each := range map[string]func(on bool, n int){
		"the log's disk is full": func(on bool, _ int) {
			w.mu.Lock()
			w.log.full = on && !w.calm.Load()
			w.mu.Unlock()
		},
		"a host is cut off":       func(on bool, n int) { w.cut(w.inOrder[n%len(w.inOrder)], on) },
		"a controller is cut off": func(on bool, n int) { w.sites[n%len(w.sites)].link.set(on && !w.calm.Load()) },
		"a machine loses power": func(on bool, n int) {
			if on {
				w.inOrder[n%len(w.inOrder)].cutPower("power cut")
			}
		},
		"a worker is killed": func(on bool, n int) {
			if on {
				w.inOrder[n%len(w.inOrder)].killAll("kill -9")
			}
		},
		"a controller is killed": func(on bool, n int) {
			if on {
				w.sites[n%len(w.sites)].die("kill -9")
			}
		},
		"a clock is set": w.setClock,
	} {
		if w.dice.chance("weather: "+what, 0.35) {
			parts.Go(func() { w.spells(what, each) })
		}
	}
}

// spells has one kind of weather come and go.
func (w *World) spells(what string, turn func(on bool, n int)) {
	for !w.calm.Load() {
		n := w.dice.n(what+" where", math.MaxInt32)
		if sleep(w.ctx, w.dice.span(what+" in", 20*time.Second, 10*time.Minute)) != nil || w.calm.Load() {
			return
		}
		w.note("%s (%d)", what, n%len(w.inOrder))
		w.count(what)
		turn(true, n)
		if sleep(w.ctx, w.dice.span(what+" for", time.Second, 3*time.Minute)) != nil {
			return
		}
		turn(false, n)
		w.note("no more: %s", what)
	}
}

func (w *World) cut(m *machine, off bool) {
	m.link.set(off && !w.calm.Load())
	if !off {
		w.reconnect(m.name)
	}
}

// setClock steps a clock by seconds, hours or years, and sometimes sets it
// right again.
func (w *World) setClock(on bool, n int) {
	if !on && w.dice.chance("clock stays", 0.5) || w.calm.Load() {
		return
	}
	c := w.clocks[n%len(w.clocks)]
	if !on {
		c.set(0)
		return
	}
	size := one(w.dice, "clock step", "seconds", "hours", "years")
	w.count("a clock is set by " + size)
	unit := map[string]time.Duration{"seconds": 30 * time.Second, "hours": 5 * time.Hour, "years": 3 * 365 * 24 * time.Hour}[size]
	c.set(w.dice.span("clock", -unit, unit))
}
