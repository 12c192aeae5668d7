package sim

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/gate"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/memory"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/oracle"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// The tenant of the simulation, and the application of its workers.
const (
	tenant      = "acme"
	application = "os-upgrade-simulated"
)

// Options say how a seed is played.
type Options struct {
	// Dir takes the files of workers; it must be empty.
	Dir string
	// Print gets each line of the trace at once; nil keeps only the last lines.
	Print func(line string)
}

// Report is the result of a seed.
type Report struct {
	// Violations are the invariants that did not hold.
	Violations []string
	// Trace are the last lines of the trace, if there is a violation.
	Trace []string
	// Counts are how often each thing happened.
	Counts map[string]int
	// Lasted is how much virtual time passed.
	Lasted time.Duration
}

// World is everything in one seed.
type World struct {
	trace
	o        Options
	rng      *rng
	strength map[string]float64
	ctx      context.Context
	begun    time.Time
	// quiet tells that the quiet phase has begun: no fault happens any more. calm is since
	// when; mu guards it.
	quiet atomic.Bool
	calm  time.Time
	// mu guards what is shared: log, machines, conns, listeners, oracle.
	mu  sync.Mutex
	log *server
	// conns are the connections of each host's workers.
	conns    map[string][]*hostConn
	oracle   *oracle.Oracle
	store    *memory.Store
	sites    []*site
	clocks   []*clock
	machines map[string]*machine
	// tenants are the windows of the tenant.
	tenants []v1.MaintenanceWindow
	// environments is how many environments there may be besides default.
	environments int
	// inLine tells that they go one after the other. orders are what some of them come after, by name. editions are how often the windows of each were
	// edited, by its name on the log; mu guards them.
	inLine   bool
	orders   map[string]*v1.After
	editions map[string]int
	// pushed are the commands that gates have pushed, by sequence; mu guards it.
	pushed map[uint64]gate.Command
	// given counts the outputs that steps have given.
	given int
	// inOrder are the machines by name.
	inOrder []*machine
	// releases are the names of the releases; none in most seeds.
	releases []string
	// libraries are the versions of the library that hosts have got in each run in which all get the
	// same.
	libraries map[uint64]string
	// budgeted tells that there may be disruption budgets.
	budgeted bool
	// fleetLock tells that hosts reboot by themselves.
	fleetLock bool
}

const (
	// faultPhase is how long faults happen at most.
	faultPhase = 25 * time.Minute
	// grace is how long a run may last beyond the sum of its deadlines.
	grace = 5 * time.Minute
	// poll is the interval at which the end of a phase is looked for.
	poll = 20 * time.Second
	// farAhead is how far ahead the not-after of a run may be that is waited for. A
	// run beyond that was opened under a wrong clock, and is aborted.
	farAhead = 40 * time.Minute
)

// Play plays a seed.
func Play(seed uint64, o Options) Report {
	ctx, cancel := context.WithCancel(context.Background())
	w := newWorld(ctx, seed, o)
	begun := time.Now()
	var running sync.WaitGroup
	w.start(&running)
	w.playPhases(begun)
	cancel()
	running.Wait()
	r := w.report()
	r.Lasted = time.Since(begun)
	return r
}

func newWorld(ctx context.Context, seed uint64, o Options) *World {
	w := &World{
		trace: trace{print: o.Print, counts: map[string]int{}, visits: map[visit]int{}}, o: o, rng: newRNG(seed), begun: time.Now(), strength: map[string]float64{}, ctx: ctx,
		conns: map[string][]*hostConn{}, store: memory.NewStore(), machines: map[string]*machine{}, editions: map[string]int{},
		pushed: map[uint64]gate.Command{},
	}
	w.log = w.newServer()
	w.oracle = oracle.New(w.violated, w.count)
	w.oracle.Passed = func() time.Duration { return time.Since(w.log.written) }
	w.oracle.Opened = w.opened
	w.oracle.Calm = func() time.Duration {
		if w.calm.IsZero() {
			return 0
		}
		return time.Since(w.calm)
	}
	for _, f := range faults {
		if _, drawn := w.strength[f.group]; !drawn {
			w.strength[f.group] = one(w.rng, "strength of "+f.group, strengths...)
		}
	}
	two := w.rng.chance("two controllers", 0.4)
	for n := range 2 {
		if n == 0 || two {
			w.clocks = append(w.clocks, &clock{})
			w.sites = append(w.sites, &site{w: w, name: fmt.Sprint(n), clock: w.clocks[n], link: newLink(), guard: &guardFile{}})
		}
	}
	for n := range 2 + w.rng.n("machines", 3) {
		w.addMachine(fmt.Sprintf("h%02d", n+1))
	}
	w.fleetLock = w.rng.chance("has FleetLock", 0.3)
	w.drawReleases()
	c := w.drawConfig()
	w.setConfig(c)
	w.setRollout(w.drawRollout("first rollout"))
	w.tenants = c.MaintenanceWindows
	w.announce("", w.tenants)
	w.drawEnvironments()
	if w.budgeted = w.rng.chance("has budgets", 0.35); w.budgeted {
		for _, name := range budgetNames {
			w.setBudget(name, w.drawBudget("first budget "+name))
		}
	}
	return w
}

func (w *World) addMachine(name string) {
	d := w.rng
	m := &machine{
		w: w, name: name, host: name, clock: &clock{}, link: newLink(), up: true, powered: make(chan struct{}), boot: 1,
		role: one(d, "role of "+name, "web", "db"), labels: map[string]string{"ring": one(d, "ring of "+name, "0", "1", "2")},
		installed: map[uint64]int{}, undone: map[uint64]bool{}, was: map[uint64]uint64{}, ran: map[uint64]uint64{}, releaseOf: map[uint64]string{}, release: "r0", rejected: map[string]map[string]bool{}, judged: map[string]string{},
		busy: map[string]time.Time{}, busyChanged: make(chan struct{}),
		traits: traits{
			reboots: d.chance("reboots/"+name, 0.6), inside: d.chance("inside/"+name, 0.25), survives: d.chance("survives/"+name, 0.4),
			counts:    d.chance("counts/"+name, 0.5),
			rollsBack: d.chance("rolls back/"+name, 0.5), bootsBack: d.chance("boots back/"+name, 0.5), second: d.chance("second/"+name, 0.15), byzantine: d.chance("byzantine/"+name, 0.1),
			readsNone: d.chance("reads no releases/"+name, 0.2),
			action:    d.span("step/"+name, 500*time.Millisecond, 15*time.Second),
		},
	}
	m.traits.counts = m.traits.counts && m.traits.reboots
	w.machines[name] = m
	w.inOrder = append(w.inOrder, m)
	w.clocks = append(w.clocks, m.clock)
	w.oracle.Enlist(name, m.traits.byzantine)
	if m.traits.readsNone || m.traits.byzantine {
		w.oracle.ReadsNone(name)
	}
}

// start starts all controllers, workers, byzantine hosts, the operator and the
// outages.
func (w *World) start(running *sync.WaitGroup) {
	for _, s := range w.sites {
		running.Go(s.keep)
	}
	for _, m := range w.inOrder {
		if m.traits.byzantine {
			running.Go(func() { w.keepByzantine(m) })
			continue
		}
		running.Go(func() { w.keepWorker(m, 1) })
		if m.traits.second {
			running.Go(func() { w.keepWorker(m, 2) })
		}
	}
	running.Go(w.operate)
	if w.fleetLock {
		running.Go(w.rebootByThemselves)
	}
	running.Go(w.watchPatience)
	running.Go(w.watchStartable)
	w.startOutages(running)
}

// playPhases waits for the end of the fault phase, and then until all runs have
// ended in the quiet phase.
func (w *World) playPhases(begun time.Time) {
	end := w.rng.span("fault phase", faultPhase/3, faultPhase)
	for time.Since(begun) < end && !w.broken() {
		if sleep(w.ctx, poll) != nil {
			return
		}
	}
	w.startQuietPhase()
	w.awaitEnd()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.broken() {
		w.oracle.Close()
	}
}

// startQuietPhase ends all faults: links and disks work, clocks are right, machines
// that stayed down boot, and no further window opens a run.
func (w *World) startQuietPhase() {
	w.note("the quiet phase begins")
	w.mu.Lock()
	w.oracle.WindowsTold(w.begun.Add(time.Minute), time.Now())
	w.mu.Unlock()
	w.thaw()
	w.quiet.Store(true)
	for _, s := range w.sites {
		s.link.set(false)
		s.reconnected()
		s.setActive(true)
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
	c := w.drawConfig()
	c.MaintenanceWindows = c.MaintenanceWindows[:0]
	w.setConfig(c)
	for n := range w.environments {
		w.setEnvironment(environmentNamed(n), nil)
	}
	w.mu.Lock()
	w.calm = time.Now()
	w.mu.Unlock()
}

// awaitEnd waits until no run is under way (invariant 7).
func (w *World) awaitEnd() {
	ended := time.Now()
	for since, last := time.Now(), uint64(0); !w.broken(); {
		w.mu.Lock()
		due, of, under := w.underWay()
		untold := w.oracle.Untold()
		w.mu.Unlock()
		if under {
			ended = time.Now()
		}
		if !under && (len(untold) == 0 || time.Since(ended) > grace) {
			return // What is untold still is a violation.
		}
		if !under {
			if sleep(w.ctx, poll) != nil {
				return
			}
			continue
		}
		notAfter := due.Over
		if due.Opened != last {
			since, last = time.Now(), due.Opened
		}
		if notAfter.After(since.Add(farAhead)) {
			w.abortFar(time.Since(since) > grace/2)
			notAfter = since
		}
		if notAfter.Before(since) {
			notAfter = since
		}
		if time.Now().After(notAfter.Add(due.Rest + grace)) {
			w.mu.Lock()
			w.violated("invariant 7: a run does not end: %s", w.oracle.In(of).Summary())
			w.mu.Unlock()
			return
		}
		if sleep(w.ctx, poll) != nil {
			return
		}
	}
}

// must reports an error that the simulation itself must not have.
func (w *World) must(err error) {
	if err != nil {
		w.violated("the simulation itself failed: %v", err)
	}
}

// abortFar aborts a run that would last for years: at once if a host of it does not end.
func (w *World) abortFar(now bool) {
	w.count("runs aborted that were opened under a wrong clock")
	for _, s := range w.sites {
		if c := s.controller(); c != nil {
			ctx, cancel := context.WithTimeout(w.ctx, 20*time.Second)
			_, err := c.AbortAll(ctx, "operator", v1.Ask{Reason: "the clock was wrong", Now: now})
			cancel()
			w.note("operator: abort: %v", err)
		}
	}
}
