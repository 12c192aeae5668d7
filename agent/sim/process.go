package sim

import (
	"context"
	"sync/atomic"
)

// process is a controller, a worker or a byzantine host. It may die at any moment:
// from then on it has no effect on anything else. Its goroutines end with its
// context.
type process struct {
	w    *World
	name string
	// fault is the fault that kills it at a label. Labels are counted by kind.
	fault, kind string
	gone        atomic.Bool
	cancel      context.CancelFunc
	// run is the run in its journal; the world's lock guards it.
	run uint64
	// power cuts the power of its machine; nil for a process without a machine.
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

// at is called at each label of the product's code. A fault may kill the process
// there, or cut the power of its machine.
func (p *process) at(label string) {
	if p.dead() || p.w.quiet.Load() {
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
