// Package worker executes the commands to one host: it receives a command from
// the log, writes the next step to its journal, takes the step with a strategy,
// writes the outcome to the journal, and replies.
//
// The methods of Journal decide, as pure functions; the loop acts. The package
// never decides which host goes when: the controller does.
package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/format"
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
	// Reboot starts a reboot and returns when it is accepted, at the latest when
	// ctx ends. The deadline of ctx also ends the reboot command; the end of the
	// worker does not. job says for which run, and takes what the reboot waits for.
	Reboot(ctx context.Context, job strategy.Job) error
}

// Limits bound the steps of a run; each must be positive.
type Limits struct {
	// Step bounds one call of the strategy.
	Step time.Duration
	// Reboot bounds the call that asks for a reboot, and then the time to the
	// end of this process.
	Reboot time.Duration
}

// Options configure a worker.
type Options struct {
	Tenant, Host, Application string
	// Version is the version of this program.
	Version string
	// Dir is the state directory, which holds the journal. It must survive
	// reboots.
	Dir      string
	HostLog  log.HostLog
	Strategy strategy.Strategy
	Machine  Machine
	Limits   Limits
	Log      *slog.Logger
	// Role and Labels are matched by rollouts.
	Role   string
	Labels map[string]string
	// VersionsInterval is how often the versions are read though nothing tells that
	// they have changed; zero means DefaultVersionsInterval.
	VersionsInterval time.Duration
	// Watch calls changed when it has begun and after each change of one of the paths,
	// until ctx ends or the watch fails (package filewatch); nil means that nothing is
	// watched.
	Watch func(ctx context.Context, paths []string, changed func()) error
	// Checks runs the checks and hooks of a rollout; nil means that they fail.
	Checks Checks
	// SelfCheck finds out what the host has and lacks for a run; nil when it does not
	// say. It is called at the start and about once per heartbeat, beside everything
	// else.
	SelfCheck func(ctx context.Context) message.SelfReport
	// Busy tells when the host is not to be upgraded; nil means that it always may be.
	Busy Busy
	// Inventory reads what the machine consists of; nil means that the site is not told.
	Inventory Inventory
	// Leased is called when this worker gets the lease of the host, and when
	// another worker has it (AV-15); it may be nil.
	Leased func(held bool)
	// Supervisor starts the worker anew when it has hung or its program was replaced; nil
	// means that nobody does.
	Supervisor *Supervisor
	// WriteFile writes the journal; nil means durable.WriteFile.
	WriteFile WriteFile
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// At is called with the label of each step, before and after it; tests crash
	// there. It may be nil.
	At func(label string)
}

// Worker is a worker of one host.
type Worker struct {
	Options
	lock *durable.Lock
	// identity distinguishes this worker from other workers of the host.
	identity string
	lease    *lease
	journal  Journal
	// written is the journal, for the goroutines beside the loop; never nil while they run.
	written atomic.Pointer[Journal]
	// prepared is the plan that the strategy has just made, until it is on disk.
	prepared message.Plan
	// idle is signalled when it has changed whether the host is busy.
	idle wait.Signal
	// planKept is signalled when the plan of a run is on disk.
	planKept wait.Signal
	// boots is what is remembered of the starts of the machine, unconfirmed what of this
	// one is left to confirm outside of an upgrade. rolledBack is what heartbeats and
	// offers tell of them.
	boots       boots
	unconfirmed confirmation
	rolledBack  atomic.Pointer[[]Rejected]
	// passes are checks that have passed, and of which the site is not told yet. passDue is
	// signalled when there are some, or somebody may have accepted what is on trial.
	passes  chan pass
	passDue wait.Signal
	// keptBoots are the boots, for the goroutines beside the loop.
	keptBoots atomic.Pointer[boots]
	// blank is set while there is no journal; then journaled is closed.
	blank     bool
	journaled chan struct{}
	bootID    string
	// fresh reports that the journal's phase began in this process, not before a
	// crash.
	fresh    bool
	commands commandQueue
	// reports are the replies that wait for a report of the versions. One report
	// serves all of them.
	reports *wait.Queue[chan struct{}, struct{}]
	// changed is signalled when the versions may have changed.
	changed wait.Signal
	// offerDue is signalled when the versions were read, so that the plan is, too. atHost
	// is full while a step or a plan is in progress.
	offerDue wait.Signal
	// inventoryDue is signalled when the machine may have changed.
	inventoryDue wait.Signal
	atHost       chan struct{}
	// current is the step of the strategy that is in progress; nil when none is.
	current atomic.Pointer[stepOf]
	// outputs are the steps whose output is to be sent.
	outputs *wait.Queue[stepOf, struct{}]
	tasks   *tasks
	// count counts what was left alone.
	ignoredCount atomic.Uint64
	// ignored is the last ignored command of each kind, and foreignLog the last
	// log other than the journal's. Each is logged once.
	ignored    map[message.Kind]position
	foreignLog string
	self       self
}

// position is the position of a command in a log.
type position struct {
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
		changed: wait.NewSignal(), planKept: wait.NewSignal(), idle: wait.NewSignal(), passes: make(chan pass, tasksAtOnce), passDue: wait.NewSignal(), offerDue: wait.NewSignal(), inventoryDue: wait.NewSignal(), atHost: make(chan struct{}, 1), outputs: wait.NewQueue[stepOf, struct{}](), tasks: newTasks(), ignored: map[message.Kind]position{},
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
		close(w.journaled)
	}
	w.take(w.journal)
	if w.bootID, err = w.Machine.BootID(); err != nil {
		return fmt.Errorf("cannot read the boot id: %w", err)
	}
	if err := readKept(filepath.Join(w.Dir, bootsFile), &w.boots); err != nil {
		return fmt.Errorf("cannot read what this host has started: %w", err)
	}
	if w.confirms() && w.boots.Judged != w.bootID {
		w.unconfirmed = wholeBoot
	}
	w.publishBoots()
	if err := w.Strategy.Detect(ctx); err != nil {
		return fmt.Errorf("this host cannot be upgraded this way: %w", err)
	}
	if w.SelfCheck != nil { // The first heartbeat has it already.
		report := w.SelfCheck(ctx)
		w.self.found.Store(&report)
	}
	return nil
}

func (w *Worker) journalPath() string { return filepath.Join(w.Dir, "journal.json") }

// Close unlocks the state directory.
func (w *Worker) Close() error { return w.lock.Close() }

// Run works until parent ends, which is no error, or the log or the journal
// fails. The next worker of the state directory continues a step that was
// interrupted. When parent ends and no step is in progress, Run gives the host's
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

func (w *Worker) listen(ctx context.Context) error {
	return w.HostLog.Commands(ctx, func(r message.Record) {
		if !w.commands.put(r) {
			w.ignoredCount.Add(1)
		}
	})
}

func (w *Worker) heartbeat(ctx context.Context) error {
	w.sendAlive()
	for {
		w.self.look(ctx, w.SelfCheck)
		if len(w.keptBoots.Load().waits()) > 0 {
			w.passDue.Set() // The loop sees what a person has accepted.
		}
		if err := wait.Sleep(ctx, message.UntilBeat(time.Now())); err != nil {
			return err
		}
		w.sendAlive()
	}
}

func (w *Worker) answerPings(ctx context.Context) error {
	return w.HostLog.Pings(ctx, w.sendAlive)
}

func (w *Worker) sendAlive() {
	alive := message.Alive{
		Application: w.Application, AgentVersion: w.Version, Worker: w.identity, Role: w.Role, Labels: w.Labels,
		At: w.Now().UTC(), SelfReport: w.self.last(), Seen: w.written.Load().position(), RolledBack: w.toldRejected(),
		Busy: w.notNow(),
	}
	if err := w.HostLog.Alive(alive); err != nil {
		w.Log.Warn("cannot send heartbeat", "host", w.Host, "error", err)
	}
}

// identityLetters and identityLength describe the result of rand.Text.
const (
	identityLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	identityLength  = 26
)

// readIdentity returns the name that distinguishes the worker of this state
// directory from other workers of the host (AV-15); the first start creates it.
// The name must survive a restart, so that the worker still holds its lease.
func readIdentity(path string, write WriteFile) (string, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return makeIdentity(path, write)
	}
	if err != nil {
		return "", fmt.Errorf("cannot read this worker's name: %w", err)
	}
	var file identityFile
	err = format.Identity.Decode(text, &file)
	switch name := file.Worker; {
	case format.IsUnsupported(err):
		return "", fmt.Errorf("cannot read this worker's name from %s: %w; start a version that reads it", path, err)
	case err != nil || len(name) != identityLength || strings.Trim(name, identityLetters) != "":
		return "", fmt.Errorf("%s is damaged: its worker must be %d of A-Z and 2-7; remove it, and the worker makes itself a new name", path, identityLength)
	default:
		return name, nil
	}
}

// identityFile is what the file holds.
type identityFile struct {
	Worker string `json:"worker"`
}

func makeIdentity(path string, write WriteFile) (string, error) {
	name := rand.Text()
	text, err := format.Identity.Encode(identityFile{Worker: name})
	if err != nil {
		return "", err
	}
	if err := write(path, append(text, '\n'), 0o600); err != nil {
		return "", fmt.Errorf("cannot name this worker: %w", err)
	}
	return name, nil
}
