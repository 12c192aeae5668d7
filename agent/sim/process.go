package sim

import (
	"context"
	"sync/atomic"
)

// process is one that may die at any moment: from then on it has no effect on
// anything outside of itself, and it is told to stop.
type process struct {
	w    *World
	name string
	// fault is what kills it at a label; labels are counted under kind.
	fault, kind string
	gone        atomic.Bool
	cancel      context.CancelFunc
	// run is that of its last journal; the world's lock guards it.
	run uint64
	// power is what to do when the machine dies with it; nil when it cannot.
	power func(why string)
}

func (p *process) dead() bool { return p.gone.Load() }

// die kills the process.
func (p *process) die(why string) {
	if p.gone.CompareAndSwap(false, true) {
		p.w.note("%s dies: %s", p.name, why)
		p.cancel()
	}
}

// at is told the labels that the process comes by.
func (p *process) at(label string) {
	if p.dead() || p.w.calm.Load() {
		return
	}
	p.w.count(p.kind + " at " + label)
	switch {
	case p.w.fault(p.fault, p.name):
		p.w.count(p.kind + " crashed " + label)
		p.die("crash " + label)
	case p.power != nil && p.w.fault("crash of a machine", p.name):
		p.w.count(p.kind + " cut off " + label)
		p.power("power cut " + label)
	}
}
