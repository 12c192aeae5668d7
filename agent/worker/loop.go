package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"syscall"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy"
)

// loop takes one step after the other, as the journal decides and the lease
// permits. It receives a command only when there is no step to take.
func (w *Worker) loop(ctx context.Context) error {
	for ctx.Err() == nil {
		now := w.lease.now()
		if err := w.takeAccepted(ctx); err != nil {
			return err
		}
		if w.bootIsDue(now) {
			if err := w.confirmBoot(ctx, now); err != nil {
				return err
			}
			continue // That took its time: the lease may have changed.
		}
		if took, err := w.takePass(ctx); took || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		if err := w.noteAway(ctx, now); err != nil {
			return err
		}
		do := w.journal.allow(w.journal.Next(w.fresh, w.bootID, w.Now()), now.state, w.away(now))
		if err := w.retire(do); err != nil {
			return err
		}
		if err := w.do(ctx, now, do); err != nil && !errors.Is(err, errMoved) {
			return err
		}
	}
	return ctx.Err()
}

// away reports whether another worker has held the lease since the journal was
// written under it. A worker without a journal must assume so.
func (w *Worker) away(now leaseTerm) bool {
	return w.blank || w.journal.Away || now.state == held && now.epoch != w.journal.Epoch
}

// noteAway records in the journal that another worker holds the lease, for a
// restart at a time when the lease is free again. The phase stays as it was,
// interrupted or not.
func (w *Worker) noteAway(ctx context.Context, now leaseTerm) error {
	if now.state != taken || w.blank || w.journal.Away {
		return nil
	}
	next := w.journal
	next.Away = true
	return w.write(ctx, next)
}

func (w *Worker) do(ctx context.Context, now leaseTerm, do Do) error {
	switch do {
	case DoWait:
		return w.waitForLease(ctx, now)
	case DoTakeOver:
		return w.takeOver(ctx, now)
	case Nothing:
		return w.receive(ctx, now)
	case DoReboot:
		return w.reboot(ctx)
	case DoAwaitReboot:
		return w.awaitReboot(ctx)
	case DoAwaitRetry:
		return w.awaitRetry(ctx, now)
	case DoAwaitIdle:
		return w.awaitIdle(ctx, now)
	case DoUpgrade:
		if next, deferred := w.journal.deferred(w.notNow()); deferred {
			return w.save(ctx, next)
		}
		return w.step(ctx, now, do)
	default:
		return w.step(ctx, now, do)
	}
}

// waitForLease waits until the state of the lease changes.
func (w *Worker) waitForLease(ctx context.Context, now leaseTerm) error {
	if j := w.journal; now.state == taken && j.Phase == Answering {
		w.Log.Warn("the reply was refused", "host", w.Host, "run", j.Run, "action", j.Action, "result", j.Result, "error", log.ErrTaken)
	}
	waiting, end := w.waiting(now.ctx)
	defer end()
	<-waiting.Done()
	return ctx.Err()
}

// yield translates the error of a call to the site: errMoved if the lease was lost
// during the call or the call reports that.
func (w *Worker) yield(now leaseTerm, err error) error {
	if now.ctx.Err() == nil && errors.Is(err, log.ErrTaken) {
		w.standBy(err)
	}
	if now.ctx.Err() != nil {
		return errMoved
	}
	return err
}

// receive waits for a command and writes its first phase to the journal.
func (w *Worker) receive(ctx context.Context, now leaseTerm) error {
	waiting, end := w.waiting(now.ctx)
	defer end()
	waiting, wake := context.WithCancel(waiting)
	defer wake()
	go func() {
		select {
		case <-w.passDue:
			wake()
		case <-waiting.Done():
		}
	}()
	r, err := w.commands.take(waiting)
	switch {
	case err != nil && now.ctx.Err() == nil && waiting.Err() != nil:
		return errMoved
	case err != nil:
		return w.yield(now, err)
	}
	if w.journal.foreign(r) && w.foreignLog != r.Log {
		w.foreignLog = r.Log
		w.Log.Warn("the log is not the one in this host's journal", "host", w.Host, "log", r.Log, "known", w.journal.Log, "run", w.journal.Run)
	}
	next, refused := w.journal.Receive(r, w.Host, w.bootID, w.Now())
	if refused != nil {
		w.ignore(r, refused)
		return nil
	}
	w.Log.Info("command accepted", "host", w.Host, "run", next.Run, "action", next.Action)
	if err := w.noteTrial(ctx, r, next); err != nil {
		return err
	}
	// What is interrupted once it may have begun has to be resumed: it is deferred before.
	next, _ = next.deferred(w.notNow())
	return w.save(ctx, next)
}

// Ignored returns the number of ignored commands and tasks.
func (w *Worker) Ignored() uint64 { return w.ignoredCount.Load() }

// ignore logs once per command why it is ignored: as a warning if somebody may
// wait for its answer.
func (w *Worker) ignore(r message.Record, reason error) {
	level := slog.LevelWarn
	this := position{r.Log, r.Seq}
	if errors.Is(reason, errAccepted) || errors.Is(reason, errOtherHosts) || w.ignored[r.Kind] == this {
		level = slog.LevelDebug
	}
	w.ignored[r.Kind] = this
	// The reason may quote the command, so bound its length.
	text := message.CleanText(reason.Error())
	w.Log.Log(context.Background(), level, "command ignored", "host", w.Host, "command", r.Seq, "reason", text, "ignored", w.ignoredCount.Add(1))
}

// step takes one step and writes its outcome to the journal. If ctx ends during
// the step it writes nothing: the phase stays, and at the next start the strategy
// finds out what happened.
func (w *Worker) step(ctx context.Context, now leaseTerm, do Do) error {
	w.At("before " + string(do))
	began := w.Now()
	outcome, err := w.perform(ctx, now, do)
	if ctx.Err() == nil && err == nil && do == DoPrepare {
		err = w.writePlan(ctx, w.prepared)
	}
	// A machine that has accepted the reboot may end this worker at once.
	if accepted := do == DoReboot && err == nil; ctx.Err() != nil && !accepted {
		return ctx.Err()
	}
	if do == DoReply && err != nil {
		// The phase must stay Answering.
		return w.yield(now, err)
	}
	w.At("after " + string(do))
	if next, again := w.journal.retry(do, err, began, w.Now(), w.Limits.Step); again {
		w.tellRetry(do, next, err)
		return w.save(ctx, next)
	}
	next := w.journal.After(do, outcome, err, w.Now())
	if err != nil {
		w.Log.Warn("step failed", "host", w.Host, "run", next.Run, "step", do, "error", err)
	}
	if do == DoRollback && next.Phase == Rebooting {
		next.BootID = w.bootID
	}
	if do == DoRollback && next.Phase == Answering && next.unwell() {
		// The system that runs has failed, and there is no way back: it is not confirmed.
		if err := w.judged(ctx); err != nil {
			return err
		}
	}
	return w.save(ctx, next)
}

func (w *Worker) perform(ctx context.Context, now leaseTerm, do Do) (strategy.Outcome, error) {
	switch do {
	case DoBooted, DoMissReboot:
		return 0, nil
	case DoReply:
		return 0, w.bounded(now.ctx, w.reply)
	case DoReboot:
		return 0, w.askReboot(ctx)
	}
	// The host does one thing at a time: a plan that is asked for beside the loop (sendOffers)
	// might hold a lock that this step needs.
	w.promise(w.Limits.Step)
	select {
	case w.atHost <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { <-w.atHost }()
	this := stepOf{w.journal.Run, string(do)}
	w.current.Store(&this)
	outcome, err := w.call(ctx, do)
	w.current.Store(nil)
	w.outputs.Put(this, struct{}{})
	return outcome, err
}

// within makes one call of the strategy, bounded by the limit of a step.
func within[R any](ctx context.Context, w *Worker, what string, job strategy.Job, call func(context.Context, strategy.Job) (R, error)) (R, error) {
	w.promise(w.Limits.Step)
	limited, cancel := context.WithTimeoutCause(ctx, w.Limits.Step, fmt.Errorf("%s took longer than %s", what, w.Limits.Step))
	defer cancel()
	result, err := call(limited, job)
	return result, overdue(limited, err)
}

// overdue replaces the error of an expired limit by the limit's own text. Any
// other outcome counts however late it is known: this process may have been
// stopped while the call ended.
func overdue(limited context.Context, err error) error {
	if err != nil && errors.Is(err, limited.Err()) {
		err = context.Cause(limited)
	}
	return err
}

func (w *Worker) call(ctx context.Context, do Do) (strategy.Outcome, error) {
	job := w.job()
	job.Rejected = byName(w.rejected())
	var err error
	if job.Plan, err = w.planFor(do); err != nil {
		return 0, err
	}
	switch do {
	case DoPrepare:
		return 0, w.callPrepare(ctx, job)
	case DoUpgrade:
		// Without a baseline the checks count what was wrong before, too.
		if err := w.Checks.Baseline(ctx, job.Run); err != nil {
			w.warn(ctx, "cannot note the state before the upgrade, which checks compare with", err)
		}
		return w.callUpgrade(ctx, do, job, w.Strategy.Upgrade)
	case DoResume:
		// An upgrade may reboot the machine by itself. What that gave up is not installed again.
		if w.journal.BootID != w.bootID {
			if _, err := w.started(ctx); err != nil {
				return 0, err
			}
		}
		return w.callUpgrade(ctx, do, job, w.Strategy.Resume)
	case DoVerify:
		return 0, w.callVerify(ctx, job)
	case DoRollback:
		return within(ctx, w, string(do), job, w.Strategy.Rollback)
	default:
		return 0, fmt.Errorf("%s is not a call of a strategy", do)
	}
}

// callPrepare prepares the host and keeps the plan.
func (w *Worker) callPrepare(ctx context.Context, job strategy.Job) error {
	plan, err := within(ctx, w, string(DoPrepare), job, w.Strategy.Prepare)
	if err != nil {
		return err
	}
	plan = plan.Sorted()
	if err := plan.Check(); err != nil {
		return fmt.Errorf("the strategy made a plan that cannot be kept: %w", err)
	}
	w.prepared = plan
	return nil
}

// callUpgrade upgrades the host or resumes that. An upgrade that takes effect with a
// reboot is complete once nothing of its plan is missing for the next boot.
func (w *Worker) callUpgrade(ctx context.Context, do Do, job strategy.Job, upgrade func(context.Context, strategy.Job) (strategy.Outcome, error)) (strategy.Outcome, error) {
	outcome, err := within(ctx, w, string(do), job, upgrade)
	if err != nil || outcome != strategy.RebootRequired {
		return outcome, err
	}
	job.Staged = true
	return outcome, w.nothingMissing(ctx, job)
}

// started returns which system has started. It is an error that the machine has given one up
// since the last boot that was judged.
func (w *Worker) started(ctx context.Context) (strategy.Boot, error) {
	boot, err := w.booted(ctx)
	if err == nil && boot.Failed != "" && w.boots.Judged != w.bootID {
		err = strategy.Fail(message.Boot, &fellBackError{boot})
	}
	return boot, err
}

// callVerify checks the upgraded host: first that it has its plan, then that it is
// well.
func (w *Worker) callVerify(ctx context.Context, job strategy.Job) error {
	boot, err := w.started(ctx)
	if err != nil {
		return err
	}
	if err := w.nothingMissing(ctx, job); err != nil {
		return err
	}
	_, err = within(ctx, w, string(DoVerify), job, func(ctx context.Context, job strategy.Job) (struct{}, error) {
		return struct{}{}, w.Strategy.Verify(ctx, job)
	})
	switch {
	case err == nil && w.boots.onTrial(boot, w.Now()):
		return w.notJudged(ctx)
	case err == nil:
		return strategy.Fail(message.Boot, w.confirmVerified(ctx, boot))
	case strategy.ClassOf(err) == "":
		err = strategy.Fail(message.Verify, err)
	}
	return fmt.Errorf("verify: %w", err)
}

// nothingMissing returns an error if the host lacks a change of its plan: done means that
// nothing is missing, never that nothing is left to do.
func (w *Worker) nothingMissing(ctx context.Context, job strategy.Job) error {
	missing, err := within(ctx, w, "the comparison of the host with its plan", job, w.Strategy.Missing)
	switch {
	case err != nil:
		return fmt.Errorf("cannot compare the host with its plan: %w", err)
	case len(missing) > 0:
		return strategy.Fail(message.Install, lacking(missing, len(job.Plan.Changes)))
	}
	return nil
}

func (w *Worker) job() strategy.Job {
	run := w.journal.Run
	return strategy.Job{
		Tenant: w.Tenant, Host: w.Host, Run: run, NotAfter: w.journal.NotAfter, BootID: w.bootID,
		Progress: func(percent int, text string) {
			if err := w.HostLog.Progress(message.Progress{Run: run, Percent: percent, Message: text}); err != nil {
				w.Log.Debug("cannot send progress", "host", w.Host, "error", err)
			}
		},
	}
}

// reply sends the reply in the journal. A reply that the site refuses counts as
// sent, because the site would refuse it again.
func (w *Worker) reply(ctx context.Context) error {
	if w.journal.Action == message.Prepare {
		w.reports.Put(make(chan struct{}), struct{}{}) // Nothing waits for this report.
	} else {
		w.versionsBeforeReply(ctx)
	}
	err := w.HostLog.Reply(ctx, w.journal.Run, message.Reply{
		Action: w.journal.Action, Result: w.journal.Result, Class: w.journal.Class, Unknown: unknown(w.journal.Result), Log: w.journal.Log,
	})
	switch {
	case errors.Is(err, log.ErrAnswered):
		return nil
	case errors.Is(err, log.ErrRefused):
		w.Log.Warn("the reply was refused", "host", w.Host, "run", w.journal.Run, "action", w.journal.Action, "result", w.journal.Result, "error", err)
		return nil
	}
	return err
}

// commandQueue keeps the newest prepare and the newest command to the host until
// the loop takes them. Newer commands replace older ones.
type commandQueue struct {
	*wait.Queue[message.Kind, message.Record]
}

func newCommandQueue() commandQueue {
	return commandQueue{wait.NewQueue[message.Kind, message.Record]()}
}

// put keeps a record unless it already has one that is as new.
func (q commandQueue) put(r message.Record) (keeps bool) {
	q.Change(r.Kind, func(kept *message.Record) {
		// Sequences of two logs do not compare; the later delivery wins.
		if keeps = r.Log != kept.Log || r.Seq > kept.Seq; keeps {
			*kept = r
		}
	})
	return keeps
}

// take waits for records and returns the oldest.
func (q commandQueue) take(ctx context.Context) (message.Record, error) {
	if err := q.Wait(ctx); err != nil {
		return message.Record{}, err
	}
	items := q.Items()
	oldest := items[0]
	for _, item := range items[1:] {
		if item.Value.Seq < oldest.Value.Seq {
			oldest = item
		}
	}
	q.Done(oldest)
	return oldest.Value, nil
}

// WriteFile replaces a file durably, as durable.WriteFile does.
type WriteFile func(path string, data []byte, mode fs.FileMode) error

// Back-off between two tries to write the journal. The longest is far below the
// minute within which a host must work again.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
)

// save writes the journal and begins its phase.
func (w *Worker) save(ctx context.Context, next Journal) error {
	before := w.journal.Log
	if err := w.write(ctx, next); err != nil {
		return err
	}
	w.fresh = true
	if before != "" && before != next.Log {
		w.sendAlive() // A site that was restored waits for this host.
	}
	return nil
}

// write writes the journal.
func (w *Worker) write(ctx context.Context, next Journal) error {
	if err := w.persist(ctx, "journal", next.Run, func() error { return next.write(w.journalPath(), w.WriteFile) }); err != nil {
		return err
	}
	w.take(next)
	return nil
}

// take makes a journal the one that counts, for the loop and the goroutines beside it.
func (w *Worker) take(j Journal) {
	w.journal = j
	w.written.Store(&j)
}

// persist writes a file of the state directory. While the disk is full, faulty or
// read-only it retries: no step may be taken without its record, and a worker that
// exited would not be there when the disk works again.
func (w *Worker) persist(ctx context.Context, what string, run uint64, write func() error) error {
	w.At("before " + what)
	for pause, alarmed := firstPause, false; ; pause = min(2*pause, longestPause) {
		err := write()
		if err != nil && !temporary(err) {
			return err
		}
		if err == nil {
			if alarmed {
				w.Log.Warn("the "+what+" can be written again", "host", w.Host, "run", run)
			}
			break
		}
		if !alarmed {
			w.alarm(what, run, err)
			alarmed = true
		}
		w.promise(pause)
		if err := wait.Sleep(ctx, pause); err != nil {
			return err
		}
	}
	w.At("after " + what)
	return nil
}

// temporary reports whether the disk may work again later: it is full, has I/O
// errors, or was remounted read-only because of them (ext4's errors=remount-ro).
func temporary(err error) bool {
	of := func(cause error) bool { return errors.Is(err, cause) }
	return slices.ContainsFunc([]error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EROFS}, of)
}

func (w *Worker) alarm(file string, run uint64, err error) {
	what := "ALARM: cannot write the " + file + "; nothing is done until it can be written"
	w.Log.Error(what, "host", w.Host, "run", run, "error", err)
	if err := w.HostLog.Progress(message.Progress{Run: run, Percent: -1, Message: what + ": " + err.Error()}); err != nil {
		w.Log.Debug("cannot send progress", "host", w.Host, "error", err)
	}
}

// reboot asks the machine for the reboot. The journal says so before.
func (w *Worker) reboot(ctx context.Context) error {
	again := w.journal.Reboot != NotAsked
	if err := w.save(ctx, w.journal.askReboot()); err != nil {
		return err
	}
	if again {
		w.Log.Warn("the worker was ended while it asked for the reboot, and the machine is still up: it asks once more", "host", w.Host, "run", w.journal.Run)
	}
	return w.step(ctx, leaseTerm{}, DoReboot)
}

func (w *Worker) askReboot(ctx context.Context) error {
	limited, cancel := context.WithTimeoutCause(ctx, w.Limits.Reboot, fmt.Errorf("asking for it took longer than %s", w.Limits.Reboot))
	defer cancel()
	if err := overdue(limited, w.Machine.Reboot(limited, w.job())); err != nil {
		return strategy.Fail(message.Boot, fmt.Errorf("cannot reboot: %w", err))
	}
	return nil
}

// awaitReboot waits for the reboot to end this process, and replies if it does not.
// Only a new boot id proves a reboot, so this process never reports success: the next
// one does (AV-69, AV-70).
func (w *Worker) awaitReboot(ctx context.Context) error {
	if err := wait.Sleep(ctx, w.Limits.Reboot); err != nil {
		return err
	}
	asked := "the reboot was accepted"
	if w.journal.Reboot != Accepted {
		asked = "the reboot was asked for before the worker was started again"
	}
	err := strategy.Fail(message.Boot, fmt.Errorf("%s, yet the host was still up %s later", asked, w.Limits.Reboot))
	next := w.journal.After(DoAwaitReboot, 0, err, w.Now())
	w.Log.Warn("step failed", "host", w.Host, "run", next.Run, "step", DoAwaitReboot, "error", err)
	return w.save(ctx, next)
}
