package sim_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/sim"
)

var (
	oneSeed  = flag.Uint64("sim.seed", 0, "play this seed alone")
	verbose  = flag.Bool("sim.v", false, "print the whole trace of each seed")
	seeds    = flag.Uint64("sim.seeds", 100, "how many seeds to play")
	first    = flag.Uint64("sim.first", 1, "the first of them")
	failures = flag.Int("sim.failures", 3, "stop after so many seeds that fail")
	counts   = flag.Bool("sim.counts", false, "print how often each thing happened")
)

// many is how many seeds suffice for each fault and each result to happen.
const many = 10_000

// visited is how often a label is visited at least for a crash there to happen in some
// seed: about one visit in two hundred is a crash. What a worker visits less has a test of
// its own that kills it there (TestCrashAnywhere, TestMissedRebootAnywhere). What a
// controller visits less are rare events, all of which one function appends.
const visited = 2000

// tally adds up the reports of all seeds.
type tally struct {
	next   atomic.Uint64
	begun  time.Time
	mu     sync.Mutex
	counts map[string]int
	failed []uint64
	lasted time.Duration
}

// TestMain makes garbage collections rare: a seed leaves much garbage and needs little
// memory.
func TestMain(m *testing.M) {
	debug.SetGCPercent(3000)
	m.Run()
}

// TestSimulation plays seeds, each a fleet for up to half an hour of all faults, and
// checks the invariants 1 to 5, 7 and 8 of package oracle after each event.
func TestSimulation(t *testing.T) {
	t.Parallel()
	if *oneSeed != 0 {
		r := play(t, *oneSeed)
		t.Logf("seed %d lasted %s:\n%s", *oneSeed, r.Lasted, strings.Join(sorted(r.Counts), "\n"))
		tell(t, *oneSeed, r)
		return
	}
	all := &tally{counts: map[string]int{}, begun: time.Now()}
	t.Cleanup(func() { all.sum(t) })
	all.next.Store(*first)
	for n := range runtime.GOMAXPROCS(0) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			all.work(t)
		})
	}
}

// sum logs the totals of all seeds.
func (a *tally) sum(t *testing.T) {
	t.Logf("%d seeds, %s of virtual time, in %s; %d failed %v", *seeds, a.lasted.Round(time.Hour), time.Since(a.begun).Round(time.Second), len(a.failed), a.failed)
	if *counts || *seeds >= many {
		t.Log("\n" + strings.Join(sorted(a.counts), "\n"))
	}
	if *seeds >= many && len(a.failed) == 0 {
		a.missing(t)
	}
}

// work plays one seed after the other.
func (a *tally) work(t *testing.T) {
	for {
		seed := a.next.Add(1) - 1
		if seed >= *first+*seeds {
			return
		}
		r := play(t, seed)
		a.mu.Lock()
		for what, n := range r.Counts {
			a.counts[what] += n
		}
		a.lasted += r.Lasted
		if len(r.Violations) > 0 {
			a.failed = append(a.failed, seed)
			tell(t, seed, r)
		}
		enough := len(a.failed) >= *failures
		a.mu.Unlock()
		if enough {
			return
		}
	}
}

// play plays one seed in a bubble of its own.
func play(t *testing.T, seed uint64) (r sim.Report) {
	t.Helper()
	dir := filepath.Join(scratch(t), fmt.Sprintf("osupgrade-sim-%d-%d", os.Getpid(), seed))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	defer func() {
		if p := recover(); p != nil {
			panic(fmt.Sprintf("seed %d: %v", seed, p))
		}
	}()
	defer limit(fmt.Sprintf("seed %d", seed), 5*time.Minute)()
	o := sim.Options{Dir: dir}
	if *verbose {
		o.Print = func(line string) { fmt.Println(line) }
	}
	synctest.Test(t, func(*testing.T) { r = sim.Play(seed, o) })
	return r
}

// limit fails what takes longer than d of real time, until the function that it
// returns is called. It must be called outside of the bubble, where time is real.
func limit(what string, d time.Duration) (stop func() bool) {
	hangs := time.AfterFunc(d, func() {
		panic(fmt.Sprintf("%s hangs for %s: a goroutine holds a mutex over a call that takes virtual time", what, d))
	})
	return hangs.Stop
}

// scratch is a folder in memory, if there is one: nobody needs the files of a seed
// afterwards.
func scratch(t *testing.T) string {
	t.Helper()
	const memory = "/dev/shm"
	if unix.Access(memory, unix.W_OK) == nil {
		return memory
	}
	return t.TempDir()
}

// tell reports a seed that failed, and how to replay it.
func tell(t *testing.T, seed uint64, r sim.Report) {
	t.Helper()
	if len(r.Violations) == 0 {
		return
	}
	t.Errorf("seed %d failed: %s\nthe end of its trace:\n%s\nplay it again: GOMAXPROCS=1 go test ./agent/testing/sim -run TestSimulation -count=1 -sim.seed=%d -sim.v",
		seed, strings.Join(r.Violations, "\n"), strings.Join(r.Trace, "\n"), seed)
}

func sorted(counts map[string]int) []string {
	var lines []string
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		lines = append(lines, fmt.Sprintf("%9d %s", counts[what], what))
	}
	return lines
}

// missing fails if a fault or a result never happened: a simulation in which nothing
// goes wrong proves nothing.
func (a *tally) missing(t *testing.T) {
	for _, what := range append(sim.Faults(), sim.Expected()...) {
		if a.counts[what] == 0 {
			t.Errorf("%q never happened in %d seeds", what, *seeds)
		}
	}
	for what, times := range a.counts {
		who, label, _ := strings.Cut(what, " at ")
		if (who == "worker" || who == "controller") && times >= visited && a.counts[who+" crashed "+label] == 0 {
			t.Errorf("no %s crashed %s in %d seeds", who, label, *seeds)
		}
	}
}
