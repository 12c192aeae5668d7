// Package worker carries out the commands to one host: it takes a command from
// the log, writes down what it is about to do, does it through a strategy,
// writes down what came of it, and replies.
//
// The journal and the machine on top of it decide (pure functions); the loop
// acts. It never decides which host goes when: that is the controller's.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy"
)

// Machine is the computer that the worker runs on.
type Machine interface {
	// BootID returns the kernel's boot id, which changes at every boot and
	// only then.
	BootID() (string, error)
	// Reboot starts a reboot and returns when it is accepted, at the latest
	// when ctx ends. What it has started by then ends with its time, that is a
	// deadline of ctx, and goes on where the worker ends.
	Reboot(ctx context.Context) error
}

// Limits bound the steps of a run; each must be positive.
type Limits struct {
	// Step bounds one call of the strategy.
	Step time.Duration
	// Reboot bounds the call that asks for a reboot, and then the time to the
	// end of this process.
	Reboot time.Duration
}

// Options say for whom and with what a worker works.
type Options struct {
	Tenant, Host, Application string
	// Version is that of this program.
	Version string
	// Dir is the state directory, which holds the journal. It must survive
	// reboots.
	Dir      string
	HostLog  log.HostLog
	Strategy strategy.Strategy
	Machine  Machine
	Limits   Limits
	Log      *slog.Logger
	// Role and Labels are what a rollout may choose this host by.
	Role   string
	Labels map[string]string
	// Checks runs the checks and hooks of a rollout; nil means that they fail.
	Checks Checks
	// Leased is told whether this worker works for the host or another one
	// does (AV-15), at first and at each change; nil means nobody.
	Leased func(held bool)
	// WriteFile writes the journal; nil means durable.WriteFile.
	WriteFile WriteFile
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// At is told the label of each step before it is taken and after it was
	// (tests crash there); nil means nobody.
	At func(label string)
}

// Worker is one worker of one host.
type Worker struct {
	Options
	lock *durable.Lock
	// identity tells this worker from others of the host.
	identity string
	lease    *lease
	journal  Journal
	// run is that of the journal, for what runs beside the loop.
	run atomic.Uint64
	// begun tells that the journal holds more of the run than its prepare.
	begun atomic.Bool
	// blank tells that there is no journal yet; born is closed once there is.
	blank  bool
	born   chan struct{}
	bootID string
	// fresh tells that the journal's phase began in this process, not before a
	// crash.
	fresh    bool
	commands commandQueue
	// reports are those who wait for a report of the versions: one report is
	// for all of them.
	reports *wait.Queue[chan struct{}, struct{}]
	tasks   *tasks
	// count counts what was left alone.
	count atomic.Uint64
	// ignored is the last command of each kind that was left alone, and
	// strange the last log that the journal is not of; each is told once.
	ignored map[message.Kind]place
	strange string
}

// place is where a command stands.
type place struct {
	log string
	seq uint64
}

// Open locks the state directory, reads the journal and checks that the
// strategy fits the host.
func Open(ctx context.Context, o Options) (*Worker, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.At == nil {
		o.At = func(string) {}
	}
	if o.Leased == nil {
		o.Leased = func(bool) {}
	}
	if o.Checks == nil {
		o.Checks = noChecks{}
	}
	if o.WriteFile == nil {
		o.WriteFile = durable.WriteFile
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make state directory: %w", err)
	}
	lock, err := durable.LockFolder(filepath.Join(o.Dir, "lock"), "worker of host "+o.Host)
	if err != nil {
		return nil, err
	}
	w := &Worker{
		Options: o, lock: lock, born: make(chan struct{}), commands: newCommandQueue(), reports: wait.NewQueue[chan struct{}, struct{}](), tasks: newTasks(), ignored: map[message.Kind]place{},
	}
	if err := w.prepare(ctx); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return w, nil
}

func (w *Worker) prepare(ctx context.Context) (err error) {
	if w.identity, err = readIdentity(filepath.Join(w.Dir, "identity.json"), w.WriteFile); err != nil {
		return err
	}
	w.journal, err = ReadJournal(w.journalPath())
	if w.blank = errors.Is(err, os.ErrNotExist); err != nil && !w.blank {
		return err
	}
	if !w.blank {
		close(w.born)
	}
	w.tell(w.journal)
	if w.bootID, err = w.Machine.BootID(); err != nil {
		return fmt.Errorf("cannot read the boot id: %w", err)
	}
	if err := w.Strategy.Detect(ctx); err != nil {
		return fmt.Errorf("this host cannot be upgraded this way: %w", err)
	}
	return nil
}

// tell has what runs beside the loop know where the journal stands.
func (w *Worker) tell(j Journal) {
	w.run.Store(j.Run)
	w.begun.Store(j.Action == message.Upgrade || j.Action == message.Reboot)
}

func (w *Worker) journalPath() string { return filepath.Join(w.Dir, "journal.json") }

// Close gives up the state directory.
func (w *Worker) Close() error { return w.lock.Close() }

// Run works until ctx ends, which is no error, or the log or the journal
// fails. What it was doing then is taken up again by the next worker of the
// state directory. A worker that is told to end with nothing in hand gives the
// host's lease back.
func (w *Worker) Run(whole context.Context) error {
	err := w.work(whole)
	if err == nil && whole.Err() != nil {
		w.giveBack(whole)
	}
	return err
}

// work works until whole ends.
func (w *Worker) work(whole context.Context) error {
	ctx, cancel := context.WithCancelCause(whole)
	defer cancel(nil)
	w.lease = newLease(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer cancel(nil)
	beside.Go(func() {
		if err := w.hold(ctx); err != nil && ctx.Err() == nil {
			cancel(err)
		}
	})
	err := w.loop(ctx)
	cause := context.Cause(ctx)
	switch {
	case cause == nil:
		return err
	case whole.Err() != nil && errors.Is(cause, context.Cause(whole)):
		return nil
	}
	return cause
}

func (w *Worker) listen(ctx context.Context) error {
	return w.HostLog.Commands(ctx, func(r message.Record) {
		if !w.commands.put(r) {
			w.count.Add(1)
		}
	})
}

func (w *Worker) heartbeat(ctx context.Context) error {
	w.sayAlive()
	for {
		if err := wait.Sleep(ctx, message.UntilBeat(time.Now())); err != nil {
			return err
		}
		w.sayAlive()
	}
}

func (w *Worker) answerPings(ctx context.Context) error {
	return w.HostLog.Pings(ctx, w.sayAlive)
}

func (w *Worker) sayAlive() {
	alive := message.Alive{Application: w.Application, AgentVersion: w.Version, Worker: w.identity, Role: w.Role, Labels: w.Labels}
	if err := w.HostLog.Alive(alive); err != nil {
		w.Log.Warn("cannot send heartbeat", "host", w.Host, "error", err)
	}
}
