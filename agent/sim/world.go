package sim

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// Whom the simulation is of.
const (
	tenant      = "acme"
	application = "os-upgrade-simulated"
)

// World is all there is in one seed.
type World struct {
	chronicle
	o        Options
	dice     *dice
	strength map[string]float64
	ctx      context.Context
	// calm tells that nothing goes wrong any more.
	calm atomic.Bool
	// mu guards what is shared: log, seats, machines, stations, listeners, book.
	mu       sync.Mutex
	log      *stream
	seats    seats
	stations map[string][]*station
	book     *book
	shelf    *shelf
	sites    []*site
	clocks   []*clock
	machines map[string]*machine
	// inOrder are the machines by name.
	inOrder []*machine
}

const (
	// storm is how long things go wrong at most.
	storm = 25 * time.Minute
	// patience is how long a run may last beyond what its deadlines add up to.
	patience = 5 * time.Minute
	// glance is how often it is looked whether the end has come.
	glance = 20 * time.Second
	// far is how far ahead the not-after of a run may be that is waited for;
	// one that is further ahead was opened under a wrong clock.
	far = 40 * time.Minute
)

// Play plays a seed and returns what came of it.
func Play(seed uint64, o Options) Report {
	ctx, cancel := context.WithCancel(context.Background())
	w := newWorld(ctx, seed, o)
	begun := time.Now()
	var parts sync.WaitGroup
	w.begin(&parts)
	w.settle(begun)
	cancel()
	parts.Wait()
	r := w.report()
	r.Lasted = time.Since(begun)
	return r
}

func newWorld(ctx context.Context, seed uint64, o Options) *World {
	w := &World{
		chronicle: chronicle{tell: o.Tell, counts: map[string]int{}}, o: o, dice: newDice(seed), strength: map[string]float64{}, ctx: ctx,
		log: newStream(), seats: seats{byHost: map[string]*held{}, begun: time.Now()},
		stations: map[string][]*station{}, shelf: newShelf(), machines: map[string]*machine{},
	}
	w.book = newBook(w)
	for _, f := range faults {
		if _, drawn := w.strength[f.group]; !drawn {
			w.strength[f.group] = one(w.dice, "strength of "+f.group, strengths...)
		}
	}
	two := w.dice.chance("two controllers", 0.4)
	for n := range 2 {
		if n == 0 || two {
			w.clocks = append(w.clocks, &clock{})
			w.sites = append(w.sites, &site{w: w, name: fmt.Sprint(n), clock: w.clocks[n], link: newLink()})
		}
	}
	for n := range 2 + w.dice.n("machines", 3) {
		w.addMachine(fmt.Sprintf("h%02d", n+1))
	}
	w.shelf.setConfig(w.drawConfig())
	w.shelf.setRollout(w.draw("first rollout"))
	return w
}

func (w *World) addMachine(name string) {
	d := w.dice
	m := &machine{
		w: w, name: name, clock: &clock{}, link: newLink(), up: true, turn: make(chan struct{}), boot: 1,
		role: one(d, "role of "+name, "web", "db"), labels: map[string]string{"ring": one(d, "ring of "+name, "0", "1", "2")},
		installed: map[uint64]int{}, undone: map[uint64]bool{},
		traits: traits{
			reboots: d.chance("reboots/"+name, 0.6), inside: d.chance("inside/"+name, 0.25), survives: d.chance("survives/"+name, 0.4),
			rollsBack: d.chance("rolls back/"+name, 0.5), second: d.chance("second/"+name, 0.15), lies: d.chance("lies/"+name, 0.1),
			step: d.span("step/"+name, 500*time.Millisecond, 15*time.Second),
		},
	}
	w.machines[name] = m
	w.inOrder = append(w.inOrder, m)
	w.clocks = append(w.clocks, m.clock)
	w.book.enlist(m)
}

// begin starts all there is.
func (w *World) begin(parts *sync.WaitGroup) {
	for _, s := range w.sites {
		parts.Go(s.keep)
	}
	for _, m := range w.inOrder {
		if m.traits.lies {
			parts.Go(func() { w.keepLiar(m) })
			continue
		}
		parts.Go(func() { w.keepWorker(m, 1) })
		if m.traits.second {
			parts.Go(func() { w.keepWorker(m, 2) })
		}
	}
	parts.Go(w.operate)
	w.prevail(parts)
}

// settle lets the storm pass, and then waits until all runs have ended.
func (w *World) settle(begun time.Time) {
	end := w.dice.span("storm", storm/3, storm)
	for time.Since(begun) < end && !w.broken() {
		if sleep(w.ctx, glance) != nil {
			return
		}
	}
	w.clear()
	w.awaitEnd()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.book.close()
}

// clear ends all that goes wrong.
func (w *World) clear() {
	w.note("it is calm")
	w.calm.Store(true)
	for _, s := range w.sites {
		s.link.set(false)
	}
	for _, c := range w.clocks {
		c.set(0)
	}
	w.mu.Lock()
	w.log.full = false
	var stuck []*machine
	for _, m := range w.inOrder {
		m.full = false
		m.link.set(false)
		if m.stuck {
			stuck = append(stuck, m)
		}
	}
	w.mu.Unlock()
	for _, m := range stuck {
		m.start()
	}
	w.reconnect("")
	// No further window and no rollout that holds a run up for ever.
	c := w.drawConfig()
	c.MaintenanceWindows = c.MaintenanceWindows[:0]
	w.shelf.setConfig(c)
}

// awaitEnd waits until no run is under way (design.md 5, invariant 7).
func (w *World) awaitEnd() {
	for since, last := time.Now(), uint64(0); !w.broken(); {
		w.mu.Lock()
		under, opened, notAfter, rest := w.book.underWay()
		w.mu.Unlock()
		if !under {
			return
		}
		if opened != last {
			since, last = time.Now(), opened
		}
		if notAfter.After(since.Add(far)) {
			w.abortFar()
			notAfter = since
		}
		if notAfter.Before(since) {
			notAfter = since
		}
		if time.Now().After(notAfter.Add(rest + patience)) {
			w.mu.Lock()
			w.violated("invariant 7: a run does not end: %s", w.book.story())
			w.mu.Unlock()
			return
		}
		if sleep(w.ctx, glance) != nil {
			return
		}
	}
}

// must tells of an error that no simulation may have.
func (w *World) must(err error) {
	if err != nil {
		w.violated("the simulation itself failed: %v", err)
	}
}

// abortFar has somebody abort a run that would last for years.
func (w *World) abortFar() {
	w.count("runs aborted that were opened under a wrong clock")
	for _, s := range w.sites {
		if c := s.controller(); c != nil {
			ctx, cancel := context.WithTimeout(w.ctx, 20*time.Second)
			_, err := c.Ask(ctx, "operator", run.Abort, v1.Ask{Reason: "the clock was wrong"})
			cancel()
			w.note("operator: abort: %v", err)
		}
	}
}
