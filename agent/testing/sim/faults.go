package sim

import (
	"maps"
	"math"
	"slices"
	"sync"
	"time"
)

// fault is something that goes wrong at an instant, by chance: a message is lost,
// a process dies at a label, an action fails.
type fault struct {
	// group names the faults that a seed has all or none of.
	group string
	// p is the probability of the fault each time that it could happen.
	p float64
}

// faults are all faults that happen by chance. Each of them must happen in
// 10,000 seeds.
var faults = map[string]fault{
	"append: request lost":      {"log", 0.02},
	"append: late":              {"log", 0.02},
	"append: acknowledged late": {"log", 0.02},
	"append: ack lost":          {"log", 0.04},
	"append: hangs":             {"log", 0.01},
	"follow: stalls":            {"log", 0.01},
	"follow: breaks":            {"log", 0.003},
	"follow: stale":             {"log", 0.01},
	"log: asked in vain":        {"log", 0.02},

	"crash log before append": {"log crash", 0.01},
	"crash log after append":  {"log crash", 0.02},

	"call: lost":          {"net", 0.03},
	"call: doubled":       {"net", 0.05},
	"call: delayed":       {"net", 0.03},
	"call: answer lost":   {"net", 0.03},
	"push: lost":          {"net", 0.05},
	"push: doubled":       {"net", 0.1},
	"push: delayed":       {"net", 0.1},
	"heartbeat: lost":     {"net", 0.05},
	"heartbeat: doubled":  {"net", 0.02},
	"heartbeat: delayed":  {"net", 0.02},
	"ask: lost":           {"net", 0.1},
	"ask: doubled":        {"net", 0.1},
	"ask: delayed":        {"net", 0.1},
	"task: lost":          {"net", 0.1},
	"task: doubled":       {"net", 0.1},
	"task: delayed":       {"net", 0.1},
	"outcome: lost":       {"net", 0.1},
	"outcome: doubled":    {"net", 0.1},
	"outcome: delayed":    {"net", 0.1},
	"lease push: lost":    {"net", 0.3},
	"lease push: doubled": {"net", 0.1},
	"lease push: delayed": {"net", 0.2},
	"ping: lost":          {"net", 0.1},
	"ping: doubled":       {"net", 0.1},
	"ping: delayed":       {"net", 0.1},

	"lease write: request lost":         {"lease", 0.03},
	"lease write: late":                 {"lease", 0.1},
	"lease write: acknowledged late":    {"lease", 0.05},
	"lease write: ack lost":             {"lease", 0.05},
	"lease write: hangs":                {"lease", 0.02},
	"lease write: another is under way": {"lease", 0.05},
	"lease watch: behind":               {"lease", 0.1},
	"gate: deaf to leases":              {"lease", 0.03},
	"gate: deaf to commands":            {"lease", 0.01},

	"replay: old command":       {"replay", 0.1},
	"replay: another's command": {"replay", 0.01},

	"a worker is paused":     {"pause", 0.01},
	"a controller is paused": {"pause", 0.005},

	"crash of a worker":     {"crash worker", 0.012},
	"crash of a machine":    {"crash worker", 0.008},
	"crash of a controller": {"crash controller", 0.01},

	"plan fails":                  {"host", 0.03},
	"prepare fails":               {"host", 0.03},
	"prepare takes long":          {"host", 0.1},
	"prepare finds a lock":        {"host", 0.06},
	"upgrade finds a lock":        {"host", 0.06},
	"upgrade fails at once":       {"host", 0.04},
	"upgrade fails in the end":    {"host", 0.05},
	"upgrade hangs":               {"host", 0.02},
	"upgrade is slow":             {"host", 0.1},
	"verify fails":                {"host", 0.05},
	"rollback fails":              {"host", 0.3},
	"reboot is refused":           {"host", 0.08},
	"reboot is ignored":           {"host", 0.08},
	"reboot is late":              {"host", 0.08},
	"reboot call hangs":           {"host", 0.04},
	"boot is slow":                {"host", 0.1},
	"a new system does not start": {"host", 0.3},
	"booted cannot be had":        {"host", 0.05},
	"confirm fails":               {"host", 0.05},
	"machine stays down":          {"host", 0.05},
	"soft-reboot":                 {"host", 0.05},
	"power cut in an upgrade":     {"host", 0.06},
	"versions cannot be had":      {"host", 0.05},
	"strategy does not fit":       {"host", 0.01},
	"task fails":                  {"task", 0.1},
	"task hangs":                  {"task", 0.03},
	"busy: watch breaks":          {"host", 0.02},
	"journal: disk full":          {"disk", 0.02},
	"journal: lost":               {"disk", 0.05},
	"journal: damaged":            {"disk", 0.01},
	"store: write fails":          {"store", 0.1},
	"store: watch breaks":         {"store", 0.01},
	"store: watch stale":          {"store", 0.02},
	"store: read fails":           {"store", 0.02},
	"news: write fails":           {"store", 0.1},
	"news: ack lost":              {"store", 0.1},
}

// strengths multiply the probabilities of a group in a seed. Half of all seeds
// are spared the group.
var strengths = []float64{0, 0, 0, 1, 1, 3}

// fault decides whether a fault happens now. None does in the quiet phase.
func (w *World) fault(what, whose string) bool {
	f := faults[what]
	if f.p == 0 {
		panic("sim: there is no fault " + what)
	}
	strength := w.strength[f.group]
	if strength == 0 || w.quiet.Load() || !w.rng.chance(what+"/"+whose, f.p*strength) {
		return false
	}
	w.count(what)
	return true
}

// Faults returns the names of all faults that happen by chance.
func Faults() []string { return slices.Sorted(maps.Keys(faults)) }

// startOutages starts the faults that last for a while. A seed has each kind with
// a probability of about a third.
func (w *World) startOutages(running *sync.WaitGroup) {
	for what, set := range map[string]func(on bool, n int){
		"the log's disk is full": func(on bool, _ int) {
			w.mu.Lock()
			w.log.full = on && !w.quiet.Load()
			w.mu.Unlock()
		},
		"a host is cut off": func(on bool, n int) { w.cut(w.inOrder[n%len(w.inOrder)], on) },
		"a controller is cut off": func(on bool, n int) {
			s := w.sites[n%len(w.sites)]
			if s.link.set(on && !w.quiet.Load()); !on {
				s.reconnected()
			}
		},
		"a host becomes busy": func(on bool, n int) {
			if m := w.inOrder[n%len(w.inOrder)]; on && !m.traits.byzantine {
				m.becomeBusy()
			}
		},
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
		"a controller is passive": func(on bool, n int) {
			w.sites[n%len(w.sites)].setActive(!on || w.quiet.Load())
		},
		"a clock is set":      w.setClock,
		"a machine is cloned": w.cloneOutage(running.Go),
	} {
		if w.rng.chance("outage: "+what, 0.35) {
			running.Go(func() { w.repeat(what, set) })
		}
	}
}

// repeat begins and ends one kind of outage again and again, at a random place.
func (w *World) repeat(what string, set func(on bool, n int)) {
	for !w.quiet.Load() {
		n := w.rng.n(what+" where", math.MaxInt32)
		if sleep(w.ctx, w.rng.span(what+" in", 20*time.Second, 10*time.Minute)) != nil || w.quiet.Load() {
			return
		}
		w.note("%s (%d)", what, n%len(w.inOrder))
		w.count(what)
		set(true, n)
		if sleep(w.ctx, w.rng.span(what+" for", time.Second, 3*time.Minute)) != nil {
			return
		}
		set(false, n)
		w.note("no more: %s", what)
	}
}

func (w *World) cut(m *machine, off bool) {
	m.link.set(off && !w.quiet.Load())
	if !off {
		w.reconnect(m.name)
	}
}

// setClock sets a clock by seconds, hours or years. It corrects every second
// time.
func (w *World) setClock(on bool, n int) {
	if !on && w.rng.chance("clock stays", 0.5) || w.quiet.Load() {
		return
	}
	n %= len(w.clocks)
	c := w.clocks[n]
	if !on {
		c.set(0)
		return
	}
	if n < len(w.sites) {
		w.mu.Lock()
		w.oracle.ClockSet()
		w.mu.Unlock()
	}
	size := one(w.rng, "clock step", "seconds", "hours", "years")
	w.count("a clock is set by " + size)
	unit := map[string]time.Duration{"seconds": 30 * time.Second, "hours": 5 * time.Hour, "years": 3 * 365 * 24 * time.Hour}[size]
	c.set(w.rng.span("clock", -unit, unit))
}

// Expected returns what must happen in 10,000 seeds beside the faults: a simulation
// that does not reach a result or a recovery proves nothing about it.
func Expected() []string {
	return []string{
		"result completed", "result partial", "result failed", "result aborted", "result timed-out",
		"command prepare", "command upgrade", "command reboot",
		"event opened", "event silent", "event recovered", "event busy", "event idle", "journal: deferred", "event released", "event admitted", "event slot", "event ran", "event overdue", "event cancelled", "event deleted",
		"event approved", "event paused", "event resumed", "event aborted", "event finished",
		"outcome of before-host: false", "outcome of drain: false", "outcome of after-host: false", "outcome of undrain: false", "outcome of fleet: false",
		"runs opened by window", "runs opened by manual", "runs that retry", "runs kept in the history",
		"append refused: behind", "reply refused: answered", "reply refused: of another run", "reports refused", "outcome of another host dropped",
		"the log's disk is full", "a host is cut off", "a host becomes busy", "a controller is cut off", "a controller is passive", "a machine loses power", "crashes of the log",
		"a clock is set by seconds", "a clock is set by hours", "a clock is set by years",
		"upgrades resumed", "upgrades that outlived their worker", "upgrades rolled back", "systems confirmed", "systems given up because nobody confirmed them", "new systems confirmed without checks", "new systems confirmed after their checks", "new systems confirmed because a later run has no checks", "hosts whose checks passed on a confirmed system", "releases withheld", "reboots inside upgrades", "reboots asked for again",
		"leases taken over", "leases given back", "leases given back late", "leases that come back to the worker that gave them back",
		"leases that another worker has after they were given back", "leases renewed by a process that was started again",
		"lease write refused: the lease has changed", "workers refused that do not hold the lease",
		"machines cloned", "machines removed", "cloned machines refused", "leases taken over by a cloned machine",
		"false replies to commands", "messages that nobody asked for", "replies that come late", "tasks at the site",
		"windows judged", "windows judged that follow another", "windows of environments judged", "windows that are skipped", "operator: skip", "operator: unskip", "looks at a host that could begin", "event missed", "windows that need no run", "offers by a release", "event frozen", "operator: freeze", "operator: thaw", "operator: release", "operator: delete", "operator: retry", "operator: rollout", "operator: approve", "operator: pause", "operator: resume", "operator: abort", "operator: abort now", "runs aborted at once", "hosts left as they are when a run ends",
		"members that are left out because they have not answered before", "hosts that are released and may still be at work when a run is opened",
		"event late", "event unprepared", "event differing", "hosts that are refused because their plans differ", "upgrades to what all others get", "news run.differing", "hosts that are late and join", "stages whose hosts were late and failed to prepare", "looks at a run that is due to go on without hosts",
		"event budgeted", "places taken in a cell", "neighbours that fall silent", "budgets that are lowered below what is out of service", "hosts out of service in a cell when a run is opened", "operator: budget",
		"hosts of an ended run that another one takes in", "runs that are opened with edited budgets", "turns of runs side by side",
		"environments that come after another", "runs that follow another environment", "runs that override the order of environments",
		"event locked", "event unlocked", "hosts locked in a stage", "places taken by locked hosts", "hosts locked that are out of service", "hosts that die locked", "operator: lock", "operator: unlock", "operator refused: lock",
		"news run.opened", "news stage.done", "news host.failed", "news run.blocked", "news run.overdue", "news run.waiting", "news run.finished", "news window.missed", "news window.up-to-date",
		"runs whose start checks pass", "runs whose start checks fail", "start checks whose outcome never came", "event begun", "steps run", "steps that are taken again", "steps that failed and are passed over", "steps whose outcome never came", "hosts that begin after a step",
		"steps that see outputs", "scripts of hosts that see outputs", "scripts of hosts that see outputs of earlier runs", "undos that see outputs",
		"runs until a stage", "runs that go on where others ended", "runs after which the next one goes on",
		"news kept twice", "long waits for a person",
	}
}
