package decide

import (
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// A log has another identity after its site was restored from a backup, or put
// together anew. Its end, as this host knows it, is lost: replies of this host, commands
// to it, whole runs. What follows from that is decided here, so that the host neither
// does an action of a run twice nor ignores a command.

// receive decides on a command and returns the journal to write before acting on
// it. An error means that the command is not for this host or not valid now, and
// changes nothing: a prepare that came too late, a host name that is another's, an
// upgrade without the prepare before it, a command that was received already. For a new
// run of another log the journal counts as empty; restored.go decides on all else of
// another log.
func (j Journal) receive(r message.Record, host, bootID string, now time.Time) (Journal, error) {
	receive := j.receiveKnown
	if j.Foreign(r) {
		receive = j.receiveForeign
	}
	next, refused := receive(r, host, now)
	if refused != nil {
		return j, refused
	}
	next.Log, next.At, next.BootID, next.Epoch = r.Log, timeOf(r), bootID, j.Epoch
	return next, nil
}

// Foreign reports whether a record is of another log than the journal.
func (j Journal) Foreign(r message.Record) bool { return j.Seq > 0 && j.Log != r.Log }

// receiveForeign decides on a command of another log:
//
//   - A prepare that was sent after all that this host knows is that of a new run.
//   - If the prepare of the journal's own run is on the log, the run goes on. This host
//     replies to it again, and then to each command that it has carried out already.
//   - Of any other run this host may have carried out commands before its present
//     one. It replies that it does not know.
func (j Journal) receiveForeign(r message.Record, host string, now time.Time) (Journal, error) {
	command, err := message.DecodeCommand(r.Body)
	switch {
	case err != nil:
		return Journal{}, err
	case command.Action == message.Prepare && r.Seq == j.Run && timeOf(r).Equal(j.RunAt):
		return j.again(), nil
	case command.Action == message.Prepare && timeOf(r).After(j.At):
		return Journal{}.receiveKnown(r, host, now)
	case command.Action == message.Prepare:
		next, refused := receivePrepare(r, command, host, now)
		return next.answer(cannotKnow(lostPast)), refused
	case command.Host != host:
		return Journal{}, ErrOtherHosts
	}
	next := Journal{Run: r.Run, Seq: r.Seq, Action: command.Action}
	return next.answer(cannotKnow(lostPast)), nil
}

// again returns the journal with which this host replies again to the prepare of its
// run.
func (j Journal) again() Journal {
	next := j
	next.Seq, next.Action = j.Run, message.Prepare
	if j.Action == message.Prepare || j.Result.Outcome == message.Unknown {
		next.Phase = Answering
		return next
	}
	if !j.Lost.covers(j.Action) {
		next.Lost = LostAction{Action: j.Action, Result: j.Result}
	}
	return next.answer(message.Result{Outcome: message.Done})
}

// reply returns the reply to a command that this host has carried out already. After
// its reboot, the result of the reboot is the reply to the upgrade as well: nothing is
// left to do.
func (l LostAction) reply(a message.Action) (result message.Result, done bool) {
	return l.Result, l.covers(a)
}

// covers reports whether an action is the last action that was taken, or one before it.
func (l LostAction) covers(a message.Action) bool {
	actions := []message.Action{message.Prepare, message.Upgrade, message.Reboot}
	return slices.Index(actions, l.Action) >= slices.Index(actions, a)
}
