package decide

import (
	"errors"
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// Phase is how far the worker has come with a command.
type Phase string

// The phases of a command.
const (
	// Idle is the phase before the first command.
	Idle Phase = ""
	// Preparing, Upgrading, Verifying and RollingBack are calls of the
	// strategy.
	Preparing   Phase = "preparing"
	Upgrading   Phase = "upgrading"
	Verifying   Phase = "verifying"
	RollingBack Phase = "rolling-back"
	// Deferred means that the upgrade was accepted and is not begun: the host is busy.
	Deferred Phase = "deferred"
	// Rebooting lasts from the decision to reboot to the next boot.
	Rebooting Phase = "rebooting"
	// Answering means that the result is known and the reply may not be on
	// the log yet.
	Answering Phase = "answering"
	// Answered means that the reply is on the log.
	Answered Phase = "answered"
)

// RebootState is how far the worker has come with asking its machine for a reboot.
type RebootState string

// The states of a reboot. Each is on disk before the machine is asked.
const (
	// NotAsked means that the machine was not asked.
	NotAsked RebootState = ""
	// Asked means that the worker asks the machine. If the worker is killed, the
	// next one cannot know whether it asked.
	Asked RebootState = "asked"
	// AskedAgain means that a worker which found Asked asks once more.
	AskedAgain RebootState = "asked-again"
	// Accepted means that the machine has accepted the reboot.
	Accepted RebootState = "accepted"
)

// BackState is how far the reboot of a rollback has come. A host reboots at most once for
// its upgrade, and at most once to roll that back.
type BackState string

// The states of the reboot of a rollback.
const (
	// BackReboots means that the phase Rebooting is to roll back.
	BackReboots BackState = "reboots"
	// BackBooted means that the machine has rebooted to roll back.
	BackBooted BackState = "booted"
)

// Journal is what a worker remembers over crashes and boots: its current command
// and how far that has come. It is on disk before each action, so that after a crash or a
// boot the next worker knows what may have happened.
type Journal struct {
	// Log identifies the log on which Run and Seq are sequences; empty before the
	// first command.
	Log string `json:"log,omitempty"`
	// Run is the id of the current run, the sequence of its prepare; 0 before the
	// first run.
	Run uint64 `json:"run"`
	// NotAfter is when the current run ends at the latest.
	NotAfter time.Time `json:"not-after"`
	// RunAt is the time of the record with the prepare of the current run. A log of
	// another identity that has this very record is a copy of the log of before.
	RunAt time.Time `json:"run-at,omitzero"`
	// Seq is the worker's position: the sequence of its current command or, before
	// its first command, of the newest command that it has passed over. The worker
	// executes no command up to its position again.
	Seq uint64 `json:"seq"`
	// At is the time of the record at Seq.
	At     time.Time      `json:"at,omitzero"`
	Action message.Action `json:"action"`
	Phase  Phase          `json:"phase"`
	// BootID is the id of the boot in which the phase began.
	BootID string `json:"boot-id"`
	// Reboot is how far the reboot of this command has come.
	Reboot RebootState `json:"reboot,omitempty"`
	// Back is how far the reboot has come that a rollback required; empty when none did.
	Back BackState `json:"back,omitempty"`
	// Epoch is the epoch of the lease under which the journal was written.
	Epoch uint64 `json:"epoch,omitempty"`
	// Away means that another worker has held the lease since then.
	Away bool `json:"away,omitempty"`
	// Result is the result to reply once it is known; during a rollback it is the failure
	// that caused the rollback.
	Result message.Result `json:"result,omitzero"`
	// Unchanged means that the upgrade has failed and the host was compared with its plan
	// before the rollback: nothing was changed.
	Unchanged bool `json:"unchanged,omitempty"`
	// Retry is set while an action is taken again; zero otherwise.
	Retry Retry `json:"retry,omitzero"`
	// Release is what the run installs; nil if it has none. Its text is on disk before the host
	// is prepared, and each later action of the run goes by it.
	Release *release.Pin `json:"release,omitempty"`
	// RollsBack are the runs that the run rolls back, as a message.Interval is written; empty if it
	// rolls none back.
	RollsBack string `json:"rolls-back,omitempty"`
	// Outputs means that steps of the run have given outputs: the strategy may ask for them.
	Outputs bool `json:"outputs,omitempty"`
	// Lost is the last action of the current run that the log has lost; zero if it has
	// lost none.
	Lost LostAction `json:"lost-action,omitzero"`
}

// Retry says that an action has failed for a reason that may pass by itself, or that the worker
// has ended in the midst of it, and that it is to be taken again.
type Retry struct {
	// Tries counts the tries that failed so, Ends those in whose midst the worker or the
	// machine has ended, and Since is when the first of them began.
	Tries int       `json:"tries"`
	Ends  int       `json:"ends,omitempty"`
	Since time.Time `json:"since,omitzero"`
	// Due is when the next try begins.
	Due time.Time `json:"due,omitzero"`
	// Resume means that the next try asks first what the last one has done.
	Resume bool `json:"resume,omitempty"`
}

// LostAction is an action that a host has carried out and its log does not know, with its
// result. The host replies the result to each command that asks for the action again, and
// does not carry it out a second time.
type LostAction struct {
	Action message.Action `json:"action"`
	Result message.Result `json:"result"`
}

// journalMember is the member of a journal file that holds the journal.
const journalMember = "journal"

// DecodeJournal reads a journal file. A damaged one is an error: nobody knows what the host
// was doing, and a guess could upgrade the host twice. A journal of a newer format is an error
// as well, but never called damaged.
func DecodeJournal(body []byte) (journal Journal, err error) {
	if err := format.Journal.DecodeSummed(body, journalMember, &journal); err != nil {
		return Journal{}, err
	}
	return journal, journal.check()
}

// Encode returns the content of the journal file.
func (j Journal) Encode() ([]byte, error) { return format.Journal.EncodeSummed(journalMember, j) }

// Position is what the host tells the site of its journal; nil while it knows no
// command.
func (j Journal) Position() *message.Position {
	if j.Seq == 0 || j.Log == "" {
		return nil
	}
	return &message.Position{Log: j.Log, Seq: j.Seq, At: j.At, Action: j.Action, Answered: j.Phase == Answered, Busy: j.Phase != Idle && j.Phase != Answered}
}

// PastPrepare reports that the journal is past its run's prepare.
func (j Journal) PastPrepare() bool { return j.Action == message.Upgrade || j.Action == message.Reboot }

// lacksRelease reports that the run installs a release whose text this host has yet to get.
func (j Journal) lacksRelease() bool { return j.Release != nil && len(j.Release.Text) == 0 }

// rollsBack are the runs that the run rolls back.
func (j Journal) rollsBack() message.Interval {
	runs, _ := message.ParseInterval(j.RollsBack) // check and receivePrepare have read it.
	return runs
}

// works reports that the command of the journal may still change what the host runs.
func (j Journal) works() bool {
	switch j.Phase {
	case Idle, Answering, Answered:
		return false
	case Preparing, Deferred, Upgrading, Verifying, RollingBack, Rebooting:
		return j.Action != message.Prepare
	}
	return true
}

// check returns an error for a journal that no worker writes.
func (j Journal) check() error {
	switch j.Phase {
	case Idle:
		if j.Run != 0 || j.Action != "" || j.Result != (message.Result{}) {
			return fmt.Errorf("command %q of run %d has no phase", j.Action, j.Run)
		}
		return nil
	case Preparing, Deferred, Upgrading, Verifying, RollingBack, Rebooting, Answering, Answered:
	default:
		return fmt.Errorf("phase %q is unknown", j.Phase)
	}
	switch j.Reboot {
	case NotAsked, Asked, AskedAgain, Accepted:
	default:
		return fmt.Errorf("reboot %q is unknown", j.Reboot)
	}
	switch j.Back {
	case "", BackReboots, BackBooted:
	default:
		return fmt.Errorf("rollback %q is unknown", j.Back)
	}
	switch {
	case j.Result.Class != "" && !j.Result.Class.Known():
		return fmt.Errorf("class %q is unknown", j.Result.Class)
	case j.Result.Outcome != "" && !j.Result.Outcome.Known():
		return fmt.Errorf("outcome %q is unknown", j.Result.Outcome)
	case j.Retry.Tries < 0, j.Retry.Ends < 0:
		return fmt.Errorf("%d tries and %d ends cannot be", j.Retry.Tries, j.Retry.Ends)
	case j.RollsBack != "" && j.rollsBack().IsZero():
		return fmt.Errorf("runs %.100q cannot be rolled back", j.RollsBack)
	case j.Release != nil && j.Release.Check() != nil:
		return j.Release.Check()
	case j.lacksRelease() && j.PastPrepare() && j.Phase != Answering && j.Phase != Answered:
		return fmt.Errorf("the text of release %.100q is missing", j.Release.Name)
	case j.Run == 0 || j.Seq < j.Run:
		return fmt.Errorf("command %d cannot be of run %d", j.Seq, j.Run)
	case !j.Action.Known():
		return fmt.Errorf("action %q is unknown", j.Action)
	case (j.Phase == Answering || j.Phase == Answered) && j.Result.Outcome == "":
		return errors.New("the result is missing")
	}
	return nil
}
