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
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/topic"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy"
)

// Machine is the computer that the worker runs on.
type Machine interface {
	// BootID returns the kernel's boot id, which changes at every boot and
	// only then.
	BootID() (string, error)
	// Reboot starts a reboot and returns when it is accepted, at the latest
	// when ctx ends.
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
	Station  topic.Station
	Strategy strategy.Strategy
	Machine  Machine
	Limits   Limits
	Log      *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// At is told the label of each step before it is taken and after it was
	// (tests crash there); nil means nobody.
	At func(label string)
}

// Worker is one worker of one host.
type Worker struct {
	Options
	lock    *durable.Lock
	journal Journal
	// newborn tells that there is no journal yet.
	newborn bool
	bootID  string
	// fresh tells that the journal's phase began in this process, not before a
	// crash.
	fresh bool
	box   mailbox
	desk  *desk
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
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make state directory: %w", err)
	}
	lock, err := durable.LockFolder(filepath.Join(o.Dir, "lock"), "worker of host "+o.Host)
	if err != nil {
		return nil, err
	}
	w := &Worker{Options: o, lock: lock, box: newMailbox(), desk: newDesk(), ignored: map[message.Kind]place{}}
	if err := w.prepare(ctx); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return w, nil
}

func (w *Worker) prepare(ctx context.Context) (err error) {
	w.journal, err = ReadJournal(w.journalPath())
	if w.newborn = errors.Is(err, os.ErrNotExist); err != nil && !w.newborn {
		return err
	}
	if w.bootID, err = w.Machine.BootID(); err != nil {
		return fmt.Errorf("cannot read the boot id: %w", err)
	}
	if err := w.Strategy.Detect(ctx); err != nil {
		return fmt.Errorf("this host cannot be upgraded this way: %w", err)
	}
	return nil
}

func (w *Worker) journalPath() string { return filepath.Join(w.Dir, "journal.json") }

// Close gives up the state directory.
func (w *Worker) Close() error { return w.lock.Close() }

// Run works until ctx ends, which is no error, or the log or the journal
// fails. What it was doing then is taken up again by the next Run.
func (w *Worker) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer cancel(nil)
	err := w.beBorn(ctx)
	if err == nil {
		for _, job := range []func(context.Context) error{w.listen, w.heartbeat, w.answerAsks, w.reportVersions} {
			beside.Go(func() {
				if err := job(ctx); err != nil && ctx.Err() == nil {
					cancel(err)
				}
			})
		}
		err = w.loop(ctx)
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// beBorn writes the first journal. Nothing of this host is heard before, so
// that no run begins with it that it would then know nothing of.
func (w *Worker) beBorn(ctx context.Context) error {
	if !w.newborn {
		return nil
	}
	newest, err := w.Station.Newest(ctx)
	if err != nil {
		return fmt.Errorf("cannot ask the log where this host, which has no journal, begins: %w", err)
	}
	journal := Newborn(newest, w.Host, w.Now())
	if journal.Phase != Idle {
		w.Log.Warn("no journal found in a run", "host", w.Host, "run", journal.Run, "action", journal.Action, "dir", w.Dir)
	}
	if err := w.save(journal); err != nil {
		return err
	}
	w.newborn = false
	return nil
}

func (w *Worker) listen(ctx context.Context) error {
	return w.Station.Commands(ctx, w.box.put)
}

func (w *Worker) heartbeat(ctx context.Context) error {
	w.sayAlive()
	ticker := time.NewTicker(message.Heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
			w.sayAlive()
		}
	}
}

func (w *Worker) answerAsks(ctx context.Context) error {
	return w.Station.Asked(ctx, w.sayAlive)
}

func (w *Worker) sayAlive() {
	if err := w.Station.Alive(message.Alive{Application: w.Application, AgentVersion: w.Version}); err != nil {
		w.Log.Warn("cannot send heartbeat", "host", w.Host, "error", err)
	}
}
