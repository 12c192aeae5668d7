package sim

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// clock is a clock that faults may set wrong.
type clock struct {
	mu  sync.Mutex
	off time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Round(0).Add(c.off)
}

func (c *clock) set(off time.Duration) {
	c.mu.Lock()
	c.off = off
	c.mu.Unlock()
}

// machine is a host: its disk, its kernel and its power, all of which outlive its
// workers. The world's lock guards what changes.
type machine struct {
	w *World
	// name is the machine's, host that of the host which it is: a clone is the same
	// host as its original.
	name, host string
	// lives counts the processes that have connected.
	lives int
	clock *clock
	link  *link
	// role and labels are what a rollout selects it by.
	role   string
	labels map[string]string
	traits traits
	// up tells that it has power; powered is closed when that changes.
	up      bool
	powered chan struct{}
	// boot counts its boots.
	boot int
	// procs are the processes of its workers.
	procs []*process
	job   *job
	// installed counts the upgrades by run, pending is the run whose upgrade
	// needs a boot, undone the runs that were rolled back.
	installed map[uint64]int
	pending   uint64
	undone    map[uint64]bool
	// version is the run whose installation it has, was what it had before each run: 0 at first. ran is what
	// ran when it was prepared for a rollback.
	version uint64
	was     map[uint64]uint64
	ran     map[uint64]uint64
	// releaseOf are the releases of runs, by name and digest, and shipped is the one with which it came.
	releaseOf map[uint64]string
	shipped   string
	// back is the run whose rollback waits for a boot after backAt.
	back   uint64
	backAt int
	// release is the system that runs, staged the one that the next boot starts, gaveUp the
	// one that did not start; confirmed is the last boot whose system was confirmed.
	release, staged, gaveUp string
	confirmed               int
	// old is the system that the next start goes back to while the one that runs is not
	// marked as good; empty once it is. installer is the run that has installed the one that
	// runs, or that starts next.
	old       string
	installer uint64
	// rejected are the releases that each of its workers has on disk as given up.
	rejected map[string]map[string]bool
	// judged is the last boot that each of its workers has done with.
	judged map[string]string
	// drained is the run that drained it; 0 while it is in service.
	drained uint64
	// cloned tells that it was cloned, or is a clone; removed that nobody starts it
	// any more.
	cloned, removed bool
	// full tells that its disk has no space, stuck that it stays down until the
	// quiet phase.
	full, stuck bool
	// busy are the ends of the busy leases on it, by their reason; busyChanged is closed
	// when they change.
	busy        map[string]time.Time
	busyChanged chan struct{}
	// busySince is since when there is one; zero while there is none.
	busySince time.Time
}

// traits are what does not change in a machine.
type traits struct {
	// reboots tells that an upgrade needs a reboot, inside that the upgrade reboots
	// the machine by itself.
	reboots, inside bool
	// survives tells that an upgrade goes on when the worker dies.
	survives bool
	// counts tells that the machine has two systems, and goes back by itself.
	counts bool
	// rollsBack tells that an upgrade can be rolled back.
	rollsBack bool
	// bootsBack tells that the old system runs after a reboot.
	bootsBack bool
	// byzantine tells that the host has no worker and sends what it likes.
	byzantine bool
	// readsNone tells that its workers carry out no release.
	readsNone bool
	// second tells that the host has two workers.
	second bool
	// action is how long an action of an upgrade takes at most.
	action time.Duration
}

// job is an upgrade that runs.
type job struct {
	run uint64
	// of is the release of the run, by name and digest; empty for none.
	of string
	// system is the release of the system that it installs; empty if it installs none.
	system string
	// version is what it installs: its run, or for a rollback what the machine had before; isRollback
	// tells that it is one.
	version    uint64
	isRollback bool
	stop       context.CancelFunc
	done       chan struct{}
	err        error
}

// setPower switches the power and wakes whoever waits for that, with the world's
// lock held.
func (m *machine) setPower(up bool) {
	m.up = up
	close(m.powered)
	m.powered = make(chan struct{})
}

// cutPower ends everything that runs on the machine.
func (m *machine) cutPower(why string) {
	m.w.mu.Lock()
	if !m.up {
		m.w.mu.Unlock()
		return
	}
	m.w.note("%s goes down: %s", m.name, why)
	m.setPower(false)
	procs, j := append([]*process(nil), m.procs...), m.job
	m.w.mu.Unlock()
	for _, p := range procs {
		p.die(why)
	}
	if j != nil {
		j.stop()
	}
	down := m.w.rng.span("down/"+m.name, 2*time.Second, 20*time.Second)
	switch {
	case m.w.fault("machine stays down", m.name):
		m.w.mu.Lock()
		m.stuck = true
		m.w.mu.Unlock()
		return
	case m.w.fault("boot is slow", m.name):
		down = m.w.rng.span("slow boot/"+m.name, time.Minute, 10*time.Minute)
	}
	m.w.after(down, m.start)
}

// start boots the machine. The kernel has a new boot id.
func (m *machine) start() {
	m.w.mu.Lock()
	staged := m.staged != ""
	m.w.mu.Unlock()
	fails := staged && m.w.fault("a new system does not start", m.name)
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	if m.up || m.removed {
		return
	}
	m.startSystem(fails)
	m.boot++
	m.pending, m.stuck = 0, false
	for reason := range m.busy { // Busy leases do not outlive a boot.
		m.setBusy(reason, time.Time{})
	}
	m.w.oracle.Booted(m.name)
	m.w.note("%s has booted, boot %d", m.name, m.boot)
	m.setPower(true)
}

// bootID is the kernel's boot id, with the world's lock held.
func (m *machine) bootID() string { return fmt.Sprintf("%s-boot-%d", m.name, m.boot) }

// power returns once the machine is up.
func (m *machine) power(ctx context.Context) error {
	for {
		m.w.mu.Lock()
		up, powered := m.up, m.powered
		m.w.mu.Unlock()
		if up {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-powered:
		}
	}
}

// upgrade is the package manager. It changes the machine in the middle of its work,
// and is not done before the end.
func (m *machine) upgrade(ctx context.Context, j *job) {
	defer close(j.done)
	defer j.stop()
	w, name := m.w, m.name
	defer func() {
		w.mu.Lock()
		m.job = nil
		w.oracle.UpgradeEnds(name)
		w.mu.Unlock()
	}()
	if j.err = sleep(ctx, m.took("before")); j.err != nil {
		return
	}
	if w.fault("upgrade fails at once", name) {
		j.err = errors.New("sim: nothing was upgraded")
		return
	}
	if w.fault("upgrade hangs", name) {
		<-ctx.Done()
		j.err = ctx.Err()
		return
	}
	w.mu.Lock()
	if ctx.Err() == nil && m.up {
		m.installed[j.run]++
		had := m.version
		if had == j.version { // An earlier rollback waited for a boot, and this one goes on with it.
			had = m.ran[j.run]
		}
		m.w.oracle.Installs(name, j.run, had)
		m.releaseOf[j.run] = j.of
		m.was[j.run], m.version = had, j.version
		if j.isRollback && m.one() {
			w.oracle.RunsRolledBack(name, j.run, j.version)
		}
		if m.traits.reboots {
			m.pending, m.staged = j.run, j.system
			if j.system != "" {
				w.oracle.Unchecked(name, j.run)
			}
		}
		w.note("%s is upgraded for run %d", name, j.run)
		w.oracle.Installed(name, j.run, m.traits.reboots)
	}
	w.mu.Unlock()
	if w.fault("power cut in an upgrade", name) {
		go m.cutPower("power cut in an upgrade")
	}
	if j.err = sleep(ctx, m.took("after")); j.err != nil {
		return
	}
	if w.fault("upgrade fails in the end", name) {
		j.err = errors.New("sim: half of it was upgraded")
		return
	}
	if m.traits.inside && m.traits.reboots {
		w.count("reboots inside upgrades")
		go m.cutPower("the upgrade reboots it")
		<-ctx.Done()
		j.err = ctx.Err()
	}
}

// lacks reports whether it lacks a release, with the world's lock held.
func (m *machine) lacks(release string) bool {
	has := m.shipped
	if m.version != 0 {
		has = m.releaseOf[m.version]
	}
	return has != release || m.pending != 0
}

// took is how long an action takes.
func (m *machine) took(what string) time.Duration {
	d := m.w.rng.span(what+"/"+m.name, m.traits.action/4, m.traits.action)
	if m.w.fault("upgrade is slow", m.name) {
		d += m.w.rng.span("slow/"+m.name, time.Minute, 5*time.Minute)
	}
	return d
}
