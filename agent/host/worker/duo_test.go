package worker

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// machine is a host in memory that two workers work for. It counts the actions of
// each run.
type machine struct {
	mu                sync.Mutex
	upgrades, reboots map[uint64]int
	boot              int
	// needsNone is set if an upgrade needs no reboot.
	needsNone bool
	// down ends all that runs on it.
	down func()
}

func (m *machine) Detect(context.Context) error { return nil }

func (m *machine) Versions(context.Context) (map[string]string, error) {
	return map[string]string{}, nil
}

func (m *machine) Plan(context.Context, strategy.Job) (message.ChangeSet, error) {
	return message.ChangeSet{}, strategy.ErrNoPlan
}

func (m *machine) Prepare(ctx context.Context, _ strategy.Job) (message.ChangeSet, error) {
	return message.ChangeSet{}, wait.Sleep(ctx, time.Second)
}

func (m *machine) Missing(context.Context, strategy.Job) ([]message.Change, error) { return nil, nil }

func (m *machine) Upgrade(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	if err := wait.Sleep(ctx, 3*time.Second); err != nil {
		return 0, err
	}
	m.mu.Lock()
	m.upgrades[job.Run]++
	m.mu.Unlock()
	return m.outcome(), wait.Sleep(ctx, 3*time.Second)
}

func (m *machine) Resume(_ context.Context, job strategy.Job) (strategy.Outcome, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.upgrades[job.Run] > 0 {
		return m.outcome(), nil
	}
	return strategy.NotDone, nil
}

func (m *machine) outcome() strategy.Outcome {
	if m.needsNone {
		return strategy.Done
	}
	return strategy.RebootRequired
}

func (m *machine) Verify(ctx context.Context, _ strategy.Job) error {
	return wait.Sleep(ctx, time.Second)
}

func (m *machine) Rollback(ctx context.Context, _ strategy.Job) (strategy.Outcome, error) {
	return strategy.Done, wait.Sleep(ctx, time.Second)
}

// seen is the machine as seen by the worker of one state directory.
type seen struct {
	*machine
	dir string
}

func (s seen) BootID() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprint("boot-", s.boot), nil
}

func (s seen) Reboot(context.Context, strategy.Job) error {
	j, err := ReadJournal(filepath.Join(s.dir, "journal.json"))
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.reboots[j.Run]++
	s.boot++
	s.mu.Unlock()
	s.down()
	return nil
}

// deed is an event at one visit of a label, counted over both workers.
type deed struct {
	visit  int
	worker int
	// restart stops the worker and starts it again after gone; otherwise the worker
	// gets the lease. A worker that is killed does not give its lease back.
	restart, kill bool
	gone          time.Duration
}

// duo are two workers of one host, each with its own state directory.
type duo struct {
	t       *testing.T
	site    *site
	machine *machine
	plan    []deed
	mu      sync.Mutex
	visits  int
	names   [2]string
	conns   [2]*conn
	stop    [2]context.CancelFunc
	// gone is how long a worker stays stopped the next time.
	gone [2]time.Duration
	log  lockedText
}

func newDuo(t *testing.T, plan []deed) *duo {
	d := &duo{t: t, site: newSite(t), machine: &machine{upgrades: map[uint64]int{}, reboots: map[uint64]int{}}, plan: plan}
	d.machine.down = d.down
	return d
}

// end ends a worker for some time.
func (d *duo) end(i int, kill bool, gone time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gone[i] = gone
	d.conns[i].end(kill)
	d.stop[i]()
}

func (d *duo) name(i int) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.names[i]
}

// hang has the site answer a worker no more when it gives its lease back.
func (d *duo) hang(i int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conns[i].hang()
}

// prepare is a command that has time for its run.
func (d *duo) prepare() message.Command {
	return message.Command{Action: message.Prepare, Hosts: []string{"h01"}, NotAfter: time.Now().Add(time.Hour)}
}

// at counts a visit and executes its deed.
func (d *duo) at(string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.visits++
	for _, p := range d.plan {
		switch {
		case p.visit != d.visits:
		case p.restart && d.stop[p.worker] != nil:
			d.gone[p.worker] = p.gone
			d.conns[p.worker].end(p.kill)
			d.stop[p.worker]()
		case !p.restart && d.names[p.worker] != "" && !d.conns[p.worker].unaware():
			d.site.give(d.names[p.worker], d.conns[p.worker].client.Incarnation)
		}
	}
}

// down stops both workers.
func (d *duo) down() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, stop := range d.stop {
		if stop != nil {
			d.conns[i].end(true)
			stop()
		}
	}
}

// live restarts a worker again and again until ctx ends.
func (d *duo) live(ctx context.Context, i int, dir string) {
	for ctx.Err() == nil {
		life, stop := context.WithCancel(ctx)
		conn := d.site.connect()
		w, err := Open(life, Options{
			Tenant: "acme", Host: "h01", Application: "app", Dir: dir, HostLog: conn.client,
			Strategy: d.machine, Machine: seen{d.machine, dir}, Limits: Limits{Action: time.Minute, Reboot: time.Minute},
			// Nothing here is lost with the machine's power.
			WriteFile: os.WriteFile, Log: slog.New(slog.NewTextHandler(&d.log, nil)), At: d.at,
		})
		if err != nil {
			d.t.Error(err)
			stop()
			return
		}
		d.mu.Lock()
		d.names[i], d.conns[i], d.stop[i] = w.identity, conn, stop
		d.mu.Unlock()
		if err := w.Run(life); err != nil {
			d.t.Error(err)
		}
		stop()
		if err := w.Close(); err != nil {
			d.t.Error(err)
		}
		d.mu.Lock()
		gone := d.gone[i]
		d.gone[i], d.stop[i] = 0, nil
		d.mu.Unlock()
		_ = wait.Sleep(ctx, gone)
	}
}

// command sends a command and waits for its answer.
func (d *duo) command(run uint64, c message.Command) (uint64, string) {
	seq := d.site.send(run, c)
	if run == 0 {
		run = seq
	}
	for range 300 {
		if answer := d.site.answer(run, c.Action); answer != "" {
			return run, answer
		}
		time.Sleep(time.Second)
	}
	return run, ""
}

// oneRun plays a run as a controller does, and returns the last reply.
func (d *duo) oneRun() string {
	run, answer := d.command(0, d.prepare())
	for _, action := range []struct {
		action message.Action
		after  string
	}{{message.Upgrade, "done"}, {message.Reboot, "reboot-required"}} {
		if answer != action.after {
			return answer
		}
		_, answer = d.command(run, message.Command{Action: action.action, Host: "h01"})
	}
	return answer
}

// play plays two runs with a plan and a third run without deeds, for two workers. It
// returns how many labels were visited in the first two.
func play(t *testing.T, plan []deed) (visits int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := newDuo(t, plan)
		ctx, stop := context.WithCancel(t.Context())
		var workers sync.WaitGroup
		for i := range 2 {
			workers.Go(func() { d.live(ctx, i, filepath.Join(t.TempDir(), "state")) })
			time.Sleep(time.Second)
		}
		d.oneRun()
		d.oneRun()
		d.mu.Lock()
		visits, d.plan = d.visits, nil
		d.mu.Unlock()
		time.Sleep(10 * time.Minute)
		last := d.oneRun()
		stop()
		workers.Wait()
		d.judge(plan, last)
	})
	return visits
}

func (d *duo) judge(plan []deed, last string) {
	d.t.Helper()
	bad := last != string(message.Done)
	for _, r := range d.site.log.All() {
		if r.Kind != message.CommandAll {
			continue
		}
		up, boots := d.machine.upgrades[r.Seq], d.machine.reboots[r.Seq]
		bad = bad || up > 1 || boots > 1 ||
			d.site.answer(r.Seq, message.Upgrade) == string(message.RebootRequired) && up != 1 ||
			d.site.answer(r.Seq, message.Reboot) == string(message.Done) && boots != 1
	}
	if bad {
		d.t.Errorf("plan %+v: upgrades %v, reboots %v, answers %v, and in peace %q; the log:\n%s",
			plan, d.machine.upgrades, d.machine.reboots, d.site.answersNow(), last, d.log.String())
	}
}

// TestTakeover has two workers of one host take the lease from each other at
// every pair of places of two runs, and checks that the host is upgraded and
// rebooted at most once per run over both, that what is answered is true, and
// that a run in peace succeeds after it (invariants 2, 5 and 7 of package oracle).
func TestTakeover(t *testing.T) {
	t.Parallel()
	calm := play(t, nil)
	if calm < 40 {
		t.Fatalf("only %d places for a takeover; the labels are gone", calm)
	}
	for first := range calm {
		t.Run(fmt.Sprint("at visit ", first+1), func(t *testing.T) {
			t.Parallel()
			play(t, []deed{{visit: first + 1, worker: 1}})
			for _, after := range []int{2, 7} {
				play(t, []deed{{visit: first + 1, worker: 1}, {visit: first + 1 + after, worker: 0}})
			}
		})
	}
}

// TestAbsence stops one worker during a part of the next run of the other worker,
// and stops the other when the first is back: the first has an old journal and was
// never on standby.
func TestAbsence(t *testing.T) {
	t.Parallel()
	calm := play(t, nil)
	const early = 12
	for second := early + 1; second <= calm+early; second += 2 {
		t.Run(fmt.Sprint("at visit ", second), func(t *testing.T) {
			t.Parallel()
			for _, kill := range []bool{true, false} {
				play(t, []deed{
					{visit: early, worker: 0, restart: true, kill: kill, gone: 4 * time.Minute},
					{visit: second, worker: 1, restart: true, kill: kill, gone: 8 * time.Minute},
				})
			}
		})
	}
}

// TestTakeovers plays any number of takeovers and restarts.
func TestTakeovers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		plan := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) deed {
			return deed{
				visit: rapid.IntRange(1, 80).Draw(rt, "visit"), worker: rapid.IntRange(0, 1).Draw(rt, "worker"), restart: rapid.Bool().Draw(rt, "restart"),
				kill: rapid.Bool().Draw(rt, "kill"),
				gone: rapid.SampledFrom([]time.Duration{0, 0, 45 * time.Second, 4 * time.Minute}).Draw(rt, "gone"),
			}
		}), 1, 8).Draw(rt, "plan")
		play(t, plan)
		if t.Failed() {
			rt.Fatal("see above")
		}
	})
}
