package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/decide"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

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
	if o.VersionsInterval == 0 {
		o.VersionsInterval = DefaultVersionsInterval
	}
	if o.WriteFile == nil {
		o.WriteFile = durable.WriteFile
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot create state directory: %w", err)
	}
	lock, err := durable.LockFolder(filepath.Join(o.Dir, "lock"), "worker of host "+o.Host)
	if err != nil {
		return nil, err
	}
	w := &Worker{
		Options: o, lock: lock, journaled: make(chan struct{}), commands: newCommandQueue(), reports: wait.NewQueue[chan struct{}, struct{}](),
		changed: wait.NewSignal(), planKept: wait.NewSignal(), idle: wait.NewSignal(), passes: make(chan settling, tasksAtOnce), passDue: wait.NewSignal(), offerDue: wait.NewSignal(), atHost: make(chan struct{}, 1), outputs: wait.NewQueue[actionOf, struct{}](), tasks: newTasks(), ignored: map[message.Kind]position{},
	}
	w.readLabels()
	if err := w.prepare(ctx); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return w, nil
}

func (w *Worker) prepare(ctx context.Context) (err error) {
	if w.identity, err = readIdentity(filepath.Join(w.Dir, identityFile), w.WriteFile); err != nil {
		return err
	}
	journal, err := ReadJournal(w.journalPath())
	blank := errors.Is(err, os.ErrNotExist)
	if err != nil && !blank {
		return err
	}
	if !blank {
		close(w.journaled)
	}
	if w.bootID, err = w.Machine.BootID(); err != nil {
		return fmt.Errorf("cannot read the boot id: %w", err)
	}
	known, err := readBoots(w.Dir)
	if err != nil {
		return fmt.Errorf("cannot read what this host has started: %w", err)
	}
	kept, err := readKept(w.Dir)
	if err != nil {
		return fmt.Errorf("cannot read which runs this host can roll back: %w", err)
	}
	w.take(decide.Start(journal, blank, known, kept, decide.Seen{BootID: w.bootID, Confirms: w.confirms()}))
	if err := w.Strategy.Detect(ctx); err != nil {
		return fmt.Errorf("this host cannot be upgraded this way: %w", err)
	}
	if w.SelfCheck != nil { // The first heartbeat has it already.
		report := w.SelfCheck(ctx)
		w.self.found.Store(&report)
	}
	return nil
}

// Close unlocks the state directory.
func (w *Worker) Close() error { return w.lock.Close() }

// Run works until parent ends, which is no error, or the log or the journal
// fails. The next worker of the state directory continues an action that was
// interrupted. When parent ends and no action is in progress, Run gives the host's
// lease back.
func (w *Worker) Run(parent context.Context) error {
	err := w.work(parent)
	if err == nil && parent.Err() != nil {
		w.giveBack(parent)
	}
	return err
}

// work works until parent ends.
func (w *Worker) work(parent context.Context) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	w.lease = newLease(ctx)
	var background sync.WaitGroup
	defer background.Wait()
	defer cancel(nil)
	background.Go(func() {
		if err := w.hold(ctx); err != nil && ctx.Err() == nil {
			cancel(err)
		}
	})
	background.Go(func() { w.watchBusy(ctx) })
	background.Go(func() { w.watchLabels(ctx) })
	err := w.loop(ctx)
	cause := context.Cause(ctx)
	switch {
	case cause == nil:
		return err
	case parent.Err() != nil && errors.Is(cause, context.Cause(parent)):
		return nil
	}
	return cause
}
