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
	// Reboot starts a reboot and returns when it is accepted.
	Reboot(ctx context.Context) error
}

// Limits bound the steps of a run; each must be positive.
type Limits struct {
	// Step bounds one call of the strategy.
	Step time.Duration
	// Reboot bounds the time from an accepted reboot to the end of this
	// process.
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
	bootID  string
	// fresh tells that the journal's phase began in this process, not before a
	// crash.
	fresh bool
	box   mailbox
	// reported is the versions body that the log has.
	reported []byte
	// ignored counts commands that changed nothing, by reason.
	ignored map[string]int
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
	w := &Worker{Options: o, lock: lock, box: newMailbox(), ignored: map[string]int{}}
	if err := w.prepare(ctx); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return w, nil
}

func (w *Worker) prepare(ctx context.Context) (err error) {
	if w.journal, err = ReadJournal(w.journalPath()); err != nil {
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
	for _, job := range []func(context.Context) error{w.listen, w.heartbeat, w.answerAsks} {
		beside.Go(func() {
			if err := job(ctx); err != nil && ctx.Err() == nil {
				cancel(err)
			}
		})
	}
	defer cancel(nil)
	w.loadReported(ctx)
	w.reportVersions(ctx)
	err := w.loop(ctx)
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
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
