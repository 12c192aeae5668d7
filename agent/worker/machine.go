package worker

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy"
)

// Do is the next step of the worker.
type Do string

// The steps. Each value is also the step's label.
const (
	Nothing    Do = "nothing"
	DoPrepare  Do = "prepare"
	DoUpgrade  Do = "upgrade"
	DoResume   Do = "resume"
	DoVerify   Do = "verify"
	DoRollback Do = "rollback"
	// DoReboot asks the machine for the reboot.
	DoReboot Do = "reboot"
	// DoAwaitReboot waits for a reboot that the machine was asked for.
	DoAwaitReboot Do = "await reboot"
	// DoMissReboot records that it is too late to ask for the reboot.
	DoMissReboot Do = "miss reboot"
	// DoBooted records that the reboot has happened.
	DoBooted Do = "booted"
	// DoAwaitRetry waits until a step that failed is taken again.
	DoAwaitRetry Do = "await retry"
	// DoAwaitIdle waits until a host that is busy may be upgraded.
	DoAwaitIdle Do = "await idle"
	DoReply     Do = "reply"
)

// The reasons to ignore a command for which nobody waits.
var (
	errAccepted   = errors.New("the command was accepted before")
	errOtherHosts = errors.New("the run is of other hosts")
)

// Receive decides on a command and returns the journal to write before acting on
// it. An error means that the command is not for this host or not valid now, and
// changes nothing (AV-54, AV-56, AV-65, AV-71). For a new run of another log the
// journal counts as empty; restored.go decides on all else of another log.
func (j Journal) Receive(r message.Record, host, bootID string, now time.Time) (Journal, error) {
	receive := j.receive
	if j.foreign(r) {
		receive = j.receiveForeign
	}
	next, refused := receive(r, host, now)
	if refused != nil {
		return j, refused
	}
	next.Log, next.At, next.BootID, next.Epoch = r.Log, timeOf(r), bootID, j.Epoch
	return next, nil
}

// timeOf returns the time of a record as a journal has it.
func timeOf(r message.Record) time.Time { return r.Time.UTC().Round(0) }

func (j Journal) receive(r message.Record, host string, now time.Time) (Journal, error) {
	// This comes before the decoding, because a prepare to many hosts is delivered
	// again after each boot and is expensive to decode.
	if r.Seq <= j.Seq {
		return Journal{}, errAccepted
	}
	command, err := message.DecodeCommand(r.Body)
	switch {
	case err != nil:
		return Journal{}, err
	case command.Action == message.Prepare:
		return receivePrepare(r, command, host, now)
	case command.Host != host:
		return Journal{}, fmt.Errorf("the command is for %s", command.Host)
	case r.Run != j.Run:
		return Journal{}, fmt.Errorf("the command is of run %d, and this host prepared run %d", r.Run, j.Run)
	case !now.Before(j.NotAfter):
		return Journal{}, tooLate(j.NotAfter, now, r.Time)
	}
	next := Journal{Run: j.Run, NotAfter: j.NotAfter, RunAt: j.RunAt, Seq: r.Seq, Action: command.Action, Phase: begins(command.Action)}
	if result, done := j.Lost.reply(command.Action); done {
		next.Lost = j.Lost
		return next.answer(result, nil), nil
	}
	switch {
	case j.Phase == Answered && j.Action == before(command.Action) && j.Result == permits(command.Action):
		if r.Epoch != 0 && r.Epoch != j.Epoch {
			// The command is based on the reply of another worker.
			return next.answer("", errors.New(anothersPast)), nil
		}
		return next, nil
	case unknown(j.Result):
		// The controller counts on this host and waits for its reply.
		return next.answer("", errors.New(j.Result)), nil
	}
	return Journal{}, fmt.Errorf("the last step was %s with result %q", j.Action, j.Result)
}

func receivePrepare(r message.Record, command message.Command, host string, now time.Time) (Journal, error) {
	switch {
	case !slices.Contains(command.Hosts, host):
		return Journal{}, errOtherHosts
	case !now.Before(command.NotAfter):
		return Journal{}, tooLate(command.NotAfter, now, r.Time)
	}
	return Journal{Run: r.Seq, NotAfter: command.NotAfter, RunAt: timeOf(r), Seq: r.Seq, Action: message.Prepare, Phase: Preparing}, nil
}

// tooLate shows both clocks, because a wrong clock is the likeliest cause.
func tooLate(notAfter, now, sent time.Time) error {
	text := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	return fmt.Errorf("not-after %s has passed: it is %s by this host's clock, and the command was sent at %s by the site's",
		text(notAfter), text(now), text(sent))
}

// begins returns the first phase of a command to one host.
func begins(a message.Action) Phase {
	if a == message.Reboot {
		return Rebooting
	}
	return Upgrading
}

// before returns the action that must precede an action; permits returns the
// result that it must have had.
func before(a message.Action) message.Action {
	if a == message.Reboot {
		return message.Upgrade
	}
	return message.Prepare
}

func permits(a message.Action) string {
	if a == message.Reboot {
		return message.RebootRequired
	}
	return message.Done
}

// Next returns the next step. fresh reports that the phase began in this process;
// otherwise the phase was interrupted and its effect is unknown.
func (j Journal) Next(fresh bool, bootID string, now time.Time) Do {
	if j.untilRetry(now) > 0 {
		return DoAwaitRetry
	}
	switch j.Phase {
	case Preparing:
		return DoPrepare
	case Upgrading:
		if fresh && !j.Retry.Resume {
			return DoUpgrade
		}
		return DoResume
	case Deferred:
		return DoAwaitIdle
	case Verifying:
		return DoVerify
	case RollingBack:
		return DoRollback
	case Rebooting:
		if bootID != j.BootID {
			return DoBooted
		}
		return j.nextReboot(fresh, now)
	case Answering:
		return DoReply
	case Idle, Answered:
	}
	return Nothing
}

// nextReboot returns the next step of a reboot that has not happened: the machine is
// in the boot in which the command came.
//
// A host reboots at most once per run for its upgrade, and at most once to roll that back
// (design.md 5, invariant 2): it goes down once, and not after the run has ended. That is not the same as to ask once. A machine
// that was asked twice in one boot goes down once, because what it was asked ends
// with the boot. A worker that is killed between its journal entry (Asked) and the
// call cannot know whether it asked. The next worker asks once more, if nothing can
// be lost by it:
//
//   - the machine is in the same boot: an earlier call has had no effect yet;
//   - the machine has not accepted an earlier call, which would then be under way;
//   - not-after has not passed: until then the run may wait for the host, and
//     afterwards the host may be in service again;
//   - no other worker has held the lease since (allow).
//
// It asks once more and not again and again: a reboot command may kill its worker
// and reboot nothing.
func (j Journal) nextReboot(fresh bool, now time.Time) Do {
	late := !fresh && !now.Before(j.NotAfter)
	switch {
	case j.Reboot == NotAsked && late:
		return DoMissReboot
	case j.Reboot == NotAsked, j.Reboot == Asked && !fresh && !late:
		return DoReboot
	}
	return DoAwaitReboot
}

// askReboot returns the journal to write before the machine is asked to reboot.
func (j Journal) askReboot() Journal {
	if j.Reboot == NotAsked {
		j.Reboot = Asked
	} else {
		j.Reboot = AskedAgain
	}
	return j
}

// After returns the journal after a step with its outcome or error. The caller
// begins the new phase.
func (j Journal) After(done Do, outcome strategy.Outcome, err error, now time.Time) Journal {
	next := j.after(done, outcome, j.inVain(err), now)
	next.Retry.Resume = false
	if next.Phase != j.Phase {
		next.Retry = Retry{}
	}
	return next
}

func (j Journal) after(done Do, outcome strategy.Outcome, err error, now time.Time) Journal {
	switch done {
	case DoPrepare:
		return j.answer(message.Done, err)
	case DoUpgrade, DoResume:
		return j.afterUpgrade(outcome, err, now)
	case DoVerify:
		return j.afterVerify(err)
	case DoRollback:
		return j.afterRollback(outcome, err)
	case DoReboot:
		if err != nil {
			return j.notRebooted(err)
		}
		j.Reboot = Accepted
		return j
	case DoAwaitReboot:
		return j.notRebooted(err)
	case DoMissReboot:
		return j.notRebooted(errors.New("the worker was interrupted before it asked for the reboot, and not-after has passed"))
	case DoBooted:
		return j.afterBoot()
	case DoReply:
		j.Phase = Answered
		return j
	case Nothing:
	}
	return j
}

func (j Journal) afterUpgrade(outcome strategy.Outcome, err error, now time.Time) Journal {
	if err != nil {
		return j.afterFailure(err)
	}
	switch {
	case outcome == strategy.Done:
		j.Phase = Verifying
		return j
	case outcome == strategy.RebootRequired:
		return j.answer(message.RebootRequired, nil)
	case outcome == strategy.NotDone && !now.Before(j.NotAfter):
		return j.answer("", errors.New("the upgrade was interrupted before it had an effect, and not-after has passed"))
	case outcome == strategy.NotDone:
		return j
	}
	return j.answer("", fmt.Errorf("the strategy gave the unknown outcome %d", outcome))
}

func (j Journal) afterVerify(err error) Journal {
	if err != nil {
		return j.afterFailure(err)
	}
	return j.answer(message.Done, nil)
}

// afterFailure rolls an upgrade back, unless that has been done or would have no plan.
func (j Journal) afterFailure(err error) Journal {
	lost, fellBack := (*planLostError)(nil), (*fellBackError)(nil)
	switch {
	case errors.As(err, &fellBack):
		// The machine itself has rolled the upgrade back.
		return j.answer("", strategy.Fail(strategy.ClassOf(err), errors.New(message.RolledBack(err.Error()))))
	case errors.As(err, &lost):
		return j.answer("", err)
	}
	return j.rollBack(err)
}

func (j Journal) rollBack(cause error) Journal {
	j.Phase, j.Result, j.Class = RollingBack, message.CleanText(cause.Error()), strategy.ClassOf(cause)
	return j
}

// afterBoot goes on after a reboot: with the checks of the upgrade or, after the reboot
// that a rollback required, with that rollback.
func (j Journal) afterBoot() Journal {
	j.Phase, j.Reboot = Verifying, NotAsked
	if j.Back == BackReboots {
		j.Phase, j.Back = RollingBack, BackBooted
	}
	return j
}

// notRebooted ends a command whose reboot did not happen.
func (j Journal) notRebooted(err error) Journal {
	if j.Back == BackReboots {
		return j.answerFailure(fmt.Sprintf("%s; rollback failed: %v", j.Result, err))
	}
	return j.answer("", err)
}

func (j Journal) afterRollback(outcome strategy.Outcome, err error) Journal {
	switch {
	case err == nil && outcome == strategy.RebootRequired && j.Back == "":
		// The host reboots by itself: the command that failed is still the one under way.
		j.Phase, j.Reboot, j.Back = Rebooting, NotAsked, BackReboots
		return j
	case err == nil && outcome == strategy.RebootRequired:
		return j.answerFailure(j.Result + "; rollback failed: it asks for another reboot, and a host reboots once to roll back")
	case errors.Is(err, strategy.ErrNoRollback):
		return j.answerFailure(j.Result)
	case err != nil:
		return j.answerFailure(fmt.Sprintf("%s; rollback failed: %v", j.Result, err))
	}
	return j.answerFailure(message.RolledBack(j.Result))
}

// unwell reports whether the reply is that of an upgrade which failed and is still there.
func (j Journal) unwell() bool { return j.Result != message.Done && !message.IsRolledBack(j.Result) }

// answerFailure sets the reply of a failure that was rolled back or could not be: its class
// is that of the failure.
func (j Journal) answerFailure(text string) Journal {
	return j.answer("", strategy.Fail(j.Class, errors.New(text)))
}

// answer sets the reply: the result, or the text of the error. An error text must
// never be equal to a result of success.
func (j Journal) answer(result string, err error) Journal {
	j.Class = strategy.ClassOf(err)
	if err != nil {
		result = message.CleanText(err.Error())
		if result == "" || result == message.Done || result == message.RebootRequired {
			result = "failed: " + result
		}
	}
	j.Phase, j.Result = Answering, result
	return j
}
