package sim

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/oracle"
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
	ctx         context.Context
	cancel      context.CancelFunc
	// paused tells that it is stopped, as by SIGSTOP: it sends and answers nothing.
	paused atomic.Bool
	// run is the run in its journal; the world's lock guards it.
	run uint64
	// frozen is the freeze that a controller was given last; nil before the first. skips are the
	// skipped windows that it was given, and since when.
	frozen atomic.Pointer[oracle.Frozen]
	skips  knownSkips
	// withdrawn are the releases that it was given as withdrawn, and since when.
	withdrawn knownWithdrawn
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
	p.w.visit(p.kind, label)
	switch {
	case p.w.fault(p.fault, p.name):
		p.w.count(p.kind + " crashed " + label)
		p.die("crash " + label)
	case p.power != nil && p.w.fault("crash of a machine", p.name):
		p.w.count(p.kind + " cut off " + label)
		p.power("power cut " + label)
	case strings.HasPrefix(label, "after ") && p.w.fault("a "+p.kind+" is paused", p.name):
		p.pause(label)
	}
}

// pause stops the process for a while at a label: after an action, because nothing keeps
// a process from being stopped between its last look at the clock and its next action.
func (p *process) pause(label string) {
	p.w.note("%s is paused %s", p.name, label)
	p.paused.Store(true)
	defer p.paused.Store(false)
	for rest := p.w.rng.span("pause of "+p.name, time.Second, 4*time.Minute); rest > 0 && !p.w.quiet.Load(); rest -= poll {
		if sleep(p.ctx, min(rest, poll)) != nil {
			return
		}
	}
	p.w.note("%s goes on", p.name)
	p.given(p.freeze()) // It may find only now what it was given meanwhile.
	p.skips.again()
	p.withdrawn.again()
}

// given notes that a controller is given a freeze, or none, just now.
func (p *process) given(f oracle.Frozen) {
	f.Given = time.Now()
	p.frozen.Store(&f)
}

// freeze is the freeze that a controller was given last.
func (p *process) freeze() oracle.Frozen {
	if f := p.frozen.Load(); f != nil {
		return *f
	}
	return oracle.Frozen{}
}

// knownSkips are the skipped windows that a controller was given, and when.
type knownSkips struct {
	mu sync.Mutex
	at map[oracle.Opening]time.Time
}

// forget notes that the controller reads anew what is skipped.
func (k *knownSkips) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.at = nil
}

// again notes that the controller may learn only now what it was given.
func (k *knownSkips) again() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for of := range k.at {
		k.at[of] = time.Now()
	}
}

// give notes that the controller is given just now which windows of an environment are skipped.
func (k *knownSkips) give(environment string, skipped []oracle.Opening) {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.at
	k.at = map[oracle.Opening]time.Time{}
	for of, at := range before {
		if of.Environment != environment {
			k.at[of] = at
		}
	}
	for _, of := range skipped {
		k.at[of] = time.Now()
		if at, known := before[of]; known {
			k.at[of] = at
		}
	}
}

// known are the skipped windows that the controller was given long enough ago to act on that.
func (k *knownSkips) known() (all []oracle.Opening) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for of, at := range k.at {
		if time.Since(at) > oracle.Reaction {
			all = append(all, of)
		}
	}
	return all
}
