package worker

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/decide"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/simulated"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// maxTicks bounds the wait for something, in ticks: in a bubble half an hour.
const maxTicks = 200_000

// inBubble plays with a rig in time that passes only while nobody works.
func inBubble(t *testing.T, play func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { play(newRig(t)) })
}

// crash is what a worker that is killed at a label panics with.
type crash string

// rig is one simulated host with its log and its power switch.
type rig struct {
	t       *testing.T
	dir     string
	host    *simulated.Host
	hostLog *fakeLog
	now     func() time.Time
	// change, when there, changes what the next worker is made of.
	change func(*Options)
	// dieAt is the label at whose visit number visit the worker is killed.
	dieAt  string
	visit  int
	visits map[string]int
	// mu guards visits; killed receives a kill beside the loop.
	mu     sync.Mutex
	killed chan struct{}
	// log is what the workers log.
	log lockedText
	// starts counts the workers that were started.
	starts int
	// checks is what commands say about checks after the upgrade, release what prepare says about a
	// release.
	checks  bool
	release string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	dir := t.TempDir()
	host, err := simulated.Open(filepath.Join(dir, "host"), simulated.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t: t, dir: dir, host: host, hostLog: newFakeLog(), now: time.Now, visits: map[string]int{}, killed: make(chan struct{}, 1)}
}

func (r *rig) at(label string) {
	r.mu.Lock()
	r.visits[label]++
	dies := label == r.dieAt && r.visits[label] == r.visit
	r.mu.Unlock()
	switch {
	case dies && isBeside(label):
		// Nobody could recover a panic there.
		r.killed <- struct{}{}
		runtime.Goexit()
	case dies:
		panic(crash(label))
	}
}

// isBeside reports whether a label is visited beside the loop.
func isBeside(label string) bool {
	return strings.HasSuffix(label, " lease") || strings.Contains(label, " task ")
}

func (r *rig) options() Options {
	o := Options{
		Tenant: "acme", Host: "h01", Application: "os-upgrade-simulated", Dir: filepath.Join(r.dir, "state"),
		HostLog: r.hostLog, Strategy: r.host, Machine: r.host, Limits: Limits{Action: time.Minute, Reboot: time.Minute},
		Checks: passing{}, Log: slog.New(slog.NewTextHandler(&r.log, nil)), Now: r.now, At: r.at,
	}
	if r.change != nil {
		r.change(&o)
	}
	return o
}

// journal is what the state directory holds.
func (r *rig) journal() decide.Journal {
	r.t.Helper()
	j, err := ReadJournal(filepath.Join(r.dir, "state", "journal.json"))
	if err != nil {
		r.t.Fatal(err)
	}
	return j
}

// leave puts a journal where the next worker finds it.
func (r *rig) leave(j decide.Journal) {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Join(r.dir, "state"), 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := writeJournal(filepath.Join(r.dir, "state", journalFile), j, durable.WriteFile); err != nil {
		r.t.Fatal(err)
	}
	r.leavePlan(j)
}

// leavePlan puts the plan of a journal's run where the next worker finds it: the plan
// that the host makes now.
func (r *rig) leavePlan(j decide.Journal) {
	r.t.Helper()
	plan, err := r.host.Plan(r.t.Context(), strategy.Job{})
	if err != nil {
		r.t.Fatal(err)
	}
	body, err := decide.KeptPlan{Run: j.Run, RunAt: j.RunAt, Plan: plan}.Encode()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(r.planPath(), body, 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) planPath() string { return filepath.Join(r.dir, "state", planFile) }

// forget loses the journal.
func (r *rig) forget() {
	r.t.Helper()
	if err := os.Remove(filepath.Join(r.dir, "state", "journal.json")); err != nil {
		r.t.Fatal(err)
	}
}

// bear starts workers until the host has a journal.
func (r *rig) bear() {
	r.t.Helper()
	born := func() bool {
		_, err := os.Stat(filepath.Join(r.dir, "state", "journal.json"))
		return err == nil
	}
	for r.life(born) {
	}
}

// lockedText is text that several write.
type lockedText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// lines returns how many lines there are with all of the words.
func (l *lockedText) lines(words ...string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for line := range strings.Lines(l.text.String()) {
		missing := func(word string) bool { return !strings.Contains(line, word) }
		if !slices.ContainsFunc(words, missing) {
			n++
		}
	}
	return n
}

// passing are checks that pass.
type passing struct{}

func (passing) Run(_ context.Context, t message.Task) message.Outcome { return t.Outcome(true, "") }

func (passing) Baseline(context.Context, uint64) error { return nil }

// task has a task of run 10 done.
func (r *rig) task(kind message.TaskKind) {
	r.t.Helper()
	r.hostLog.ask(message.Task{Run: 10, Kind: kind, Host: "h01"})
	for r.life(func() bool { return len(r.hostLog.wanted()) == 0 }) {
	}
}

// life runs one worker from its start to a crash, a reboot or done, and reports whether
// another worker has to follow.
func (r *rig) life(done func() bool) (again bool) {
	r.t.Helper()
	r.starts++
	if r.starts > 20 {
		r.t.Fatal("the worker is started again and again")
	}
	w, err := Open(r.t.Context(), r.options())
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	ctx, stop := context.WithCancel(r.t.Context())
	defer stop()
	ended := make(chan any, 1)
	go func() {
		defer func() { ended <- recover() }()
		if err := w.Run(ctx); err != nil {
			panic(err)
		}
	}()
	return r.supervise(done, ended, stop)
}

func (r *rig) supervise(done func() bool, ended chan any, stop func()) bool {
	r.t.Helper()
	// The tick only asks whether the log has what the test waits for.
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range maxTicks {
		select {
		case reason := <-ended:
			if _, crashed := reason.(crash); !crashed {
				r.t.Fatalf("the worker ended: %v", reason)
			}
			return true
		case <-r.killed:
			stop()
			<-ended
			return true
		case event := <-r.host.Events():
			stop()
			<-ended
			if event == simulated.RebootRequested {
				if err := r.host.Boot(context.Background()); err != nil {
					r.t.Fatal(err)
				}
			}
			return true
		case <-tick.C:
			if done() {
				stop()
				<-ended
				return false
			}
		}
	}
	stop()
	<-ended
	r.t.Fatalf("what the test waits for does not happen; the log:\n%s", r.log.String())
	return false
}

// run runs one worker for at most an hour and returns its error.
func (r *rig) run() error {
	r.t.Helper()
	ctx, stop := context.WithTimeout(r.t.Context(), time.Hour)
	defer stop()
	w, err := Open(ctx, r.options())
	if err != nil {
		r.t.Fatal(err)
	}
	return errors.Join(w.Run(ctx), w.Close())
}

// until starts workers until the log has the answer to an action.
func (r *rig) until(action message.Action) string {
	r.t.Helper()
	for r.life(func() bool { return r.hostLog.answer(action) != "" }) {
	}
	return r.hostLog.answer(action)
}

// effects counts the lines of the host's own record of an effect.
func (r *rig) effects(action string) int {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(r.host.Dir(), "effects.log"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		r.t.Fatal(err)
	}
	return strings.Count(string(text), `"action":"`+action+`"`)
}

func (r *rig) prepare() {
	c := message.Command{Action: message.Prepare, Hosts: []string{"h01"}, NotAfter: time.Now().Add(time.Hour)}
	r.hostLog.send(message.Record{Seq: 10, Kind: message.CommandAll, Checks: r.checks, Release: r.release, Body: c.Encode()})
}

func (r *rig) command(seq uint64, action message.Action) {
	c := message.Command{Action: action, Host: "h01"}
	r.hostLog.send(message.Record{Seq: seq, Kind: message.CommandHost, Run: 10, Checks: r.checks, Body: c.Encode()})
}
