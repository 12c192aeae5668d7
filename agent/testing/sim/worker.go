package sim

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/worker"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// keepWorker starts a worker of a machine again and again, while there is power.
func (w *World) keepWorker(m *machine, n int) {
	name, dir := m.worker(n)
	for {
		if m.power(w.ctx) != nil || sleep(w.ctx, w.rng.span("worker start/"+name, 100*time.Millisecond, 5*time.Second)) != nil {
			return
		}
		w.loseJournal(m.name, name, dir)
		w.runWorker(m, name, dir)
	}
}

// worker returns the name of one of its workers, and the worker's state directory.
func (m *machine) worker(n int) (name, dir string) {
	return fmt.Sprintf("worker %d of %s", n, m.name), filepath.Join(m.w.o.Dir, fmt.Sprintf("%s-%d", m.name, n))
}

// loseJournal is a fault of the state directory between two lives of a worker.
func (w *World) loseJournal(host, name, dir string) {
	path := filepath.Join(dir, "journal.json")
	switch _, err := os.Stat(path); {
	case err != nil:
	case w.fault("journal: lost", name):
		w.note("the journal of %s is lost", name)
		w.must(os.Remove(path))
		w.forgets(host, name)
	case w.fault("journal: damaged", name):
		w.note("the journal of %s is damaged", name)
		w.must(os.WriteFile(path, []byte(`{"journal":{},"sum":"0"}`), 0o600))
	}
}

// runWorker runs a worker to its end.
func (w *World) runWorker(m *machine, name, dir string) {
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	p := &process{w: w, name: name, kind: "worker", fault: "crash of a worker", ctx: ctx, cancel: cancel, power: m.cutPower}
	w.mu.Lock()
	if !m.up {
		w.mu.Unlock()
		return
	}
	m.procs = append(m.procs, p)
	w.mu.Unlock()
	defer m.forget(p)
	c := w.connect(m, p)
	defer c.hangUp()
	stopped := w.stopInOrder(ctx, p)
	system := system{m, p}
	var how strategy.Strategy = system
	if m.traits.readsNone {
		how = older{system, system, system, system}
	}
	worked, err := worker.Open(ctx, worker.Options{
		Tenant: tenant, Host: m.host, Application: application, Version: "sim", Dir: dir,
		HostLog: c.client, Strategy: how, Machine: system, Checks: system, Busy: system, Limits: worker.Limits{Action: 3 * time.Minute, Reboot: time.Minute},
		Log: w.logger(name), Role: m.role, Labels: w.labelsOf(m), Now: m.clock.now, At: p.at,
		WriteFile: func(path string, data []byte, mode fs.FileMode) error { return w.writeFile(m, p, path, data, mode) },
	})
	if err == nil {
		w.count("workers started")
		err = worked.Run(ctx)
		w.must(worked.Close())
	}
	if err == nil && stopped.Load() {
		// An operator starts it again, at once or after a while.
		_ = sleep(w.ctx, w.rng.span("away/"+name, 0, 2*message.Silence))
	}
	if err == nil || p.dead() || w.ctx.Err() != nil {
		return
	}
	w.note("%s has ended: %v", name, err)
	w.count("workers ended by an error")
	// An operator removes a damaged journal.
	if sleep(w.ctx, w.rng.span("repair/"+name, time.Second, 30*time.Second)) == nil && damaged(dir) {
		w.count("journals repaired")
		w.must(os.Remove(filepath.Join(dir, "journal.json")))
		w.forgets(m.name, name)
	}
}

// stopInOrder stops some workers in order after a while. The result becomes true
// when that has happened.
func (w *World) stopInOrder(ctx context.Context, p *process) *atomic.Bool {
	var stopped atomic.Bool
	if !w.rng.chance("stopped in order/"+p.name, 0.15) {
		return &stopped
	}
	timer := time.AfterFunc(w.rng.span("stopped in order in/"+p.name, time.Second, 10*time.Minute), func() {
		if p.dead() || w.quiet.Load() {
			return
		}
		w.note("%s is told to end", p.name)
		w.count("workers stopped in order")
		stopped.Store(true)
		p.cancel()
	})
	context.AfterFunc(ctx, func() { timer.Stop() })
	return &stopped
}

func (w *World) forgets(host, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.oracle.JournalLost(host, name)
}

func damaged(dir string) bool {
	_, err := worker.ReadJournal(filepath.Join(dir, "journal.json"))
	return err != nil && !os.IsNotExist(err) && fileThere(filepath.Join(dir, "journal.json"))
}

func fileThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (m *machine) forget(p *process) {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	var left []*process
	for _, other := range m.procs {
		if other != p {
			left = append(left, other)
		}
	}
	m.procs = left
}

// writeFile is a worker's disk.
func (w *World) writeFile(m *machine, p *process, path string, data []byte, mode fs.FileMode) error {
	if p.dead() {
		return errDead
	}
	if w.fault("journal: disk full", p.name) {
		w.mu.Lock()
		m.full = true
		w.mu.Unlock()
		w.after(w.rng.span("disk full/"+m.name, time.Second, time.Minute), func() {
			w.mu.Lock()
			m.full = false
			w.mu.Unlock()
		})
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if m.full {
		return fmt.Errorf("sim: %w", syscall.ENOSPC)
	}
	if filepath.Base(path) == "journal.json" {
		p.run = w.oracle.Journal(m.name, p.name, data)
		w.note("%s writes %s", p.name, data)
	}
	if filepath.Base(path) == "boots.json" {
		m.keepsBoots(p.name, data)
	}
	return os.WriteFile(path, data, mode)
}
