package worker

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy"
)

// Do is what the worker has to do next.
type Do string

// What there is to do. Each is also the label of the step.
const (
	Nothing    Do = "nothing"
	DoPrepare  Do = "prepare"
	DoUpgrade  Do = "upgrade"
	DoResume   Do = "resume"
	DoVerify   Do = "verify"
	DoRollback Do = "rollback"
	DoReboot   Do = "reboot"
	// DoBooted takes note of a boot that has happened.
	DoBooted Do = "booted"
	DoReply  Do = "reply"
)

// maxReboots bounds how often a reboot that did not happen is asked for again
// after a restart of the worker.
const maxReboots = 3

// Receive decides on a command: it returns the journal to write before acting
// on it. An error means that the command is not for this host or this moment
// and changes nothing (AV-54, AV-56, AV-65, AV-71).
func (j Journal) Receive(r message.Record, host, bootID string, now time.Time) (Journal, error) {
	// First, because a prepare to many hosts is delivered again after each boot
	// and costs as much to read as there are hosts.
	if r.Seq <= j.Seq {
		return j, errors.New("the command was taken up before")
	}
	command, err := message.DecodeCommand(r.Body)
	switch {
	case err != nil:
		return j, err
	case command.Action == message.Prepare:
		return j.receivePrepare(r, command, host, bootID, now)
	case command.Host != host:
		return j, fmt.Errorf("the command is for %s", command.Host)
	case r.Run != j.Run:
		return j, fmt.Errorf("the command is of run %d, and this host prepared run %d", r.Run, j.Run)
	case !now.Before(j.NotAfter):
		return j, errors.New("not-after has passed")
	case j.Phase != Answered || j.Action != before(command.Action) || j.Result != permits(command.Action):
		return j, fmt.Errorf("the last step was %s with result %q", j.Action, j.Result)
	}
	phase := Upgrading
	if command.Action == message.Reboot {
		phase = Rebooting
	}
	return Journal{Run: j.Run, NotAfter: j.NotAfter, Seq: r.Seq, Action: command.Action, Phase: phase, BootID: bootID}, nil
}

func (j Journal) receivePrepare(r message.Record, command message.Command, host, bootID string, now time.Time) (Journal, error) {
	switch {
	case !slices.Contains(command.Hosts, host):
		return j, errors.New("the run is of other hosts")
	case !now.Before(command.NotAfter):
		return j, errors.New("not-after has passed")
	}
	return Journal{Run: r.Seq, NotAfter: command.NotAfter, Seq: r.Seq, Action: message.Prepare, Phase: Preparing, BootID: bootID}, nil
}

// before returns the step that must come before an action, and permits the
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

// Next returns what to do now. fresh tells that the phase began in this
// process; otherwise it was interrupted, and what came of it is unknown.
func (j Journal) Next(fresh bool, bootID string) Do {
	switch j.Phase {
	case Preparing:
		return DoPrepare
	case Upgrading:
		if fresh {
			return DoUpgrade
		}
		return DoResume
	case Verifying:
		return DoVerify
	case RollingBack:
		return DoRollback
	case Rebooting:
		if bootID != j.BootID {
			return DoBooted
		}
		return DoReboot
	case Answering:
		return DoReply
	case Idle, Answered:
	}
	return Nothing
}

// After returns the journal once something was done, with its outcome or its
// error. Whether the new phase has begun yet is the caller's to say: it has
// not, so it is fresh.
func (j Journal) After(done Do, outcome strategy.Outcome, err error, now time.Time) Journal {
	switch done {
	case DoPrepare:
		return j.answer(message.Done, err)
	case DoUpgrade, DoResume:
		return j.afterUpgrade(outcome, err, now)
	case DoVerify:
		if err != nil {
			return j.rollBack(fmt.Errorf("verify: %w", err))
		}
		return j.answer(message.Done, nil)
	case DoRollback:
		return j.afterRollback(err)
	case DoReboot:
		return j.answer("", err)
	case DoBooted:
		j.Phase, j.Attempts = Verifying, 0
		return j
	case DoReply:
		j.Phase = Answered
		return j
	case Nothing:
	}
	return j
}

func (j Journal) afterUpgrade(outcome strategy.Outcome, err error, now time.Time) Journal {
	switch {
	case err != nil:
		return j.rollBack(err)
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

func (j Journal) rollBack(cause error) Journal {
	j.Phase, j.Result = RollingBack, message.CleanText(cause.Error())
	return j
}

func (j Journal) afterRollback(err error) Journal {
	switch {
	case errors.Is(err, strategy.ErrNoRollback):
		return j.answer("", errors.New(j.Result))
	case err != nil:
		return j.answer("", fmt.Errorf("%s; rollback failed: %w", j.Result, err))
	}
	return j.answer("", fmt.Errorf("%s; rolled back", j.Result))
}

// answer makes the reply known: result, or the error's text. An error text
// that reads like success must not be taken for it.
func (j Journal) answer(result string, err error) Journal {
	if err != nil {
		result = message.CleanText(err.Error())
		if result == "" || result == message.Done || result == message.RebootRequired {
			result = "failed: " + result
		}
	}
	j.Phase, j.Result = Answering, result
	return j
}
