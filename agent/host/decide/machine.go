package decide

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// The reasons to ignore a command for which nobody waits.
var (
	ErrAccepted   = errors.New("the command was accepted before")
	ErrOtherHosts = errors.New("the run is of other hosts")
)

// receiveKnown decides on a command of the log that the journal is of.
func (j Journal) receiveKnown(r message.Record, host string, now time.Time) (Journal, error) {
	// This comes before the decoding, because a prepare to many hosts is delivered
	// again after each boot and is expensive to decode.
	if r.Seq <= j.Seq {
		return Journal{}, ErrAccepted
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
	next := Journal{Run: j.Run, NotAfter: j.NotAfter, RunAt: j.RunAt, Release: j.Release, RollsBack: j.RollsBack, Seq: r.Seq, Action: command.Action, Outputs: r.Outputs, Phase: begins(command.Action)}
	if result, done := j.Lost.reply(command.Action); done {
		next.Lost = j.Lost
		return next.answer(result), nil
	}
	switch {
	case j.Phase == Answered && j.Action == before(command.Action) && j.Result.Outcome == permits(command.Action):
		if r.Epoch != 0 && r.Epoch != j.Epoch {
			// The command is based on the reply of another worker.
			return next.answer(cannotKnow(anothersPast)), nil
		}
		return next, nil
	case j.Result.Outcome == message.Unknown:
		// The controller counts on this host and waits for its reply.
		return next.answer(j.Result), nil
	}
	return Journal{}, fmt.Errorf("the last action was %s with result %q", j.Action, j.Result)
}

func receivePrepare(r message.Record, command message.Command, host string, now time.Time) (Journal, error) {
	switch {
	case !slices.Contains(command.Hosts, host):
		return Journal{}, ErrOtherHosts
	case !now.Before(command.NotAfter):
		return Journal{}, tooLate(command.NotAfter, now, r.Time)
	}
	pinned, err := pinOf(r)
	if err != nil {
		return Journal{}, err
	}
	if _, err := message.ParseInterval(r.Rollback); err != nil {
		return Journal{}, err
	}
	return Journal{Run: r.Seq, NotAfter: command.NotAfter, RunAt: timeOf(r), Release: pinned, RollsBack: r.Rollback, Seq: r.Seq, Action: message.Prepare, Phase: Preparing}, nil
}

// pinOf returns the release that a prepare names, still without its text; nil if it names none.
func pinOf(r message.Record) (*release.Pin, error) {
	ref, err := release.ParseRef(r.Release)
	if err != nil || ref.IsZero() {
		return nil, err
	}
	return &release.Pin{Name: ref.Name, Digest: ref.Digest}, nil
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

func permits(a message.Action) message.ReplyOutcome {
	if a == message.Reboot {
		return message.RebootRequired
	}
	return message.Done
}

// timeOf returns the time of a record as a journal has it.
func timeOf(r message.Record) time.Time { return r.Time.UTC().Round(0) }

// next returns the next action. fresh reports that the phase began in this process;
// otherwise the phase was interrupted and its effect is unknown.
func (j Journal) next(fresh bool, bootID string, now time.Time) Do {
	if j.UntilRetry(now) > 0 {
		return DoAwaitRetry
	}
	switch j.Phase {
	case Preparing:
		if j.lacksRelease() {
			return DoGetRelease
		}
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

// nextReboot returns the next action of a reboot that has not happened: the machine is
// in the boot in which the command came.
//
// A host reboots at most once per run for its upgrade, and at most once to roll that back:
// it goes down once, and not after the run has ended. That is not the same as to ask once.
// A machine that was asked twice in one boot goes down once, because what it was asked
// ends with the boot. A worker that is killed between its journal entry (Asked) and the
// call cannot know whether it asked. The next worker asks once more, if nothing can be
// lost by it:
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

// after returns the journal after an action with its outcome or error. The caller
// begins the new phase.
func (j Journal) after(done Do, outcome strategy.Outcome, err error, now time.Time) Journal {
	next := j.afterAction(done, outcome, j.inVain(err), now)
	next.Retry.Resume, next.Retry.Due = false, time.Time{} // This try is over.
	if next.Phase != j.Phase {
		next.Retry = Retry{}
	}
	return next
}

func (j Journal) afterAction(done Do, outcome strategy.Outcome, err error, now time.Time) Journal {
	switch done {
	case DoGetRelease:
		return j.fail(err)
	case DoPrepare:
		return j.answer(resultOf(message.Done, err))
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
		return j.answer(message.Result{Outcome: message.RebootRequired})
	case outcome == strategy.NotDone && !now.Before(j.NotAfter):
		return j.fail(errors.New("the upgrade was interrupted before it had an effect, and not-after has passed"))
	case outcome == strategy.NotDone:
		return j
	}
	return j.fail(fmt.Errorf("the strategy gave the unknown outcome %d", outcome))
}

func (j Journal) afterVerify(err error) Journal {
	if err != nil {
		return j.afterFailure(err)
	}
	return j.answer(message.Result{Outcome: message.Done})
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
		return j.notRolledBack(err)
	}
	return j.fail(err)
}

func (j Journal) afterRollback(outcome strategy.Outcome, err error) Journal {
	unmoved := err == nil && outcome == strategy.Done || errors.Is(err, strategy.ErrNoRollback)
	switch {
	case unmoved && j.Unchanged:
		return j.answer(message.NotDone(message.Failed, j.Result.Class, j.Result.Text+"; nothing was changed"))
	case err == nil && outcome == strategy.RebootRequired && j.Back == "":
		// The host reboots by itself: the command that failed is still the one under way.
		j.Phase, j.Reboot, j.Back, j.Unchanged = Rebooting, NotAsked, BackReboots, false
		return j
	case err == nil && outcome == strategy.RebootRequired:
		return j.notRolledBack(errors.New("it asks for another reboot, and a host reboots once to roll back"))
	case errors.Is(err, strategy.ErrNoRollback):
		return j.answer(j.Result)
	case err != nil:
		return j.notRolledBack(err)
	}
	return j.answer(message.NotDone(message.RolledBack, j.Result.Class, j.Result.Text))
}

// notRolledBack answers an upgrade that has failed and whose rollback has failed as well. The
// class is that of the upgrade.
func (j Journal) notRolledBack(err error) Journal {
	return j.answer(message.NotDone(message.Failed, j.Result.Class, fmt.Sprintf("%s; rollback failed: %v", j.Result.Text, err)))
}

// wentBack returns the journal after a start of the machine that gave up what an upgrade has
// installed, while the reply still says that the upgrade takes a reboot, or is done.
func (j Journal) wentBack(boot strategy.Boot) (next Journal, gone bool) {
	success := j.Result.Outcome == message.RebootRequired || j.Result.Outcome == message.Done
	if boot.Failed == "" || j.Phase != Answering || j.Action == message.Prepare || !success {
		return j, false
	}
	return j.afterFailure(strategy.Fail(message.Boot, &fellBackError{boot})), true
}

// afterFailure rolls an upgrade back, unless the machine has done that itself or the plan is
// lost, without which there is no way back. An upgrade that has changed nothing is rolled back,
// too: it may have left something that no plan names. A rollback that has failed is not undone: a
// person decides whether the host goes on back or forwards.
func (j Journal) afterFailure(err error) Journal {
	lost, fellBack, unchanged := (*planLostError)(nil), (*fellBackError)(nil), (*unchangedError)(nil)
	switch {
	case errors.As(err, &fellBack), errors.As(err, &lost):
		return j.fail(err)
	case j.RollsBack != "":
		return j.fail(fmt.Errorf("%w; the host stays as it is now: mend it, then roll back again, or start a run that upgrades it", err))
	}
	j.Phase, j.Result, j.Unchanged = RollingBack, resultOf("", err), errors.As(err, &unchanged)
	return j
}

// unwell reports whether the reply is that of an upgrade which failed and is still there.
func (j Journal) unwell() bool {
	return j.Result.Outcome != message.Done && j.Result.Outcome != message.RolledBack && !j.Unchanged
}
