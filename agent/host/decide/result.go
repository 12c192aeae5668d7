package decide

import (
	"errors"
	"fmt"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// fail sets the reply to a failure.
func (j Journal) fail(err error) Journal { return j.answer(resultOf("", err)) }

// answer sets the reply.
func (j Journal) answer(result message.Result) Journal {
	j.Phase, j.Result = Answering, result
	return j
}

// resultOf returns the result of an action: the outcome, or what the error comes to.
func resultOf(outcome message.ReplyOutcome, err error) message.Result {
	lost, fellBack := (*planLostError)(nil), (*fellBackError)(nil)
	switch {
	case err == nil:
		return message.Result{Outcome: outcome}
	case errors.As(err, &fellBack): // The machine has undone the upgrade by itself.
		outcome = message.RolledBack
	case errors.As(err, &lost) && lost.action != DoUpgrade: // What the upgrade did cannot be proved.
		outcome = message.Unknown
	default:
		outcome = message.Failed
	}
	return message.NotDone(outcome, strategy.ClassOf(err), err.Error())
}

// cannotKnow is the result of a host that does not know what was done in a run. The host
// executes no further command of such a run.
func cannotKnow(text string) message.Result { return message.NotDone(message.Unknown, "", text) }

// pastUnknown ends the text of both answers below.
const pastUnknown = "what it did before is unknown"

// unknownPast is the reply of a host that cannot know whether it has executed a
// command, because it has no journal.
const unknownPast = "this host has no journal, so " + pastUnknown

// anothersPast is the reply of a host when another of its workers may have executed
// a command.
const anothersPast = "another worker worked for this host meanwhile, so " + pastUnknown

// lostPast is the reply of a host to a run of a log whose end was lost, unless the run
// is the one of the host's journal.
const lostPast = "the site was restored from a backup and does not know all that this host did, so " + pastUnknown

// PlanLost returns the failure of an action whose plan cannot be read.
func PlanLost(action Do, cause error) error { return &planLostError{action, cause} }

// planLostError is the failure of an action whose plan cannot be read.
type planLostError struct {
	action Do
	cause  error
}

// Error says what is known of the host, and what a person has to do.
func (e *planLostError) Error() string {
	if e.action == DoUpgrade {
		return fmt.Sprintf("the plan of this run is lost: %v; nothing was upgraded; start another run, which prepares the host again", e.cause)
	}
	return fmt.Sprintf("the plan of this run is lost, so what the upgrade did is unknown: %v; compare the host with the plan that the run shows, then release it", e.cause)
}

// FellBack returns the failure of an upgrade whose machine went back by itself.
func FellBack(boot strategy.Boot) error { return &fellBackError{boot} }

// fellBackError is the failure of an upgrade whose machine went back by itself.
type fellBackError struct{ boot strategy.Boot }

// Error names both versions.
func (e *fellBackError) Error() string {
	return fmt.Sprintf("the machine started %s, gave it up and went back to %s by itself", e.boot.Failed, e.boot.Running)
}

// Unchanged says of a failure that the upgrade has changed nothing on the host.
func Unchanged(err error) error { return &unchangedError{err} }

// unchangedError is the failure of an upgrade that has changed nothing.
type unchangedError struct{ cause error }

// Error is the text of the failure: what comes of it is told after the rollback.
func (e *unchangedError) Error() string { return e.cause.Error() }

// Unwrap returns the failure.
func (e *unchangedError) Unwrap() error { return e.cause }
