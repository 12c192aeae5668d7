package worker

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
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
// and how far that has come. It is on disk before each step (design.md 6).
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
	// Epoch is the epoch of the lease under which the journal was written (AV-15).
	Epoch uint64 `json:"epoch,omitempty"`
	// Away means that another worker has held the lease since then.
	Away bool `json:"away,omitempty"`
	// Result is the text of the reply once it is known; during a rollback it is
	// the fault that caused the rollback.
	Result string `json:"result,omitempty"`
	// Class is the kind of the failure that Result tells, if it is known.
	Class message.Class `json:"class,omitempty"`
	// Retry is set while a step is taken again; zero otherwise.
	Retry Retry `json:"retry,omitzero"`
	// Lost is the last step of the current run that the log has lost; zero if it has
	// lost none.
	Lost LostStep `json:"lost-step,omitzero"`
}

// LostStep is a step that a host has carried out and its log does not know, with its
// result. The host replies the result to each command that asks for the step again, and
// does not carry it out a second time.
type LostStep struct {
	Action message.Action `json:"action"`
	Result string         `json:"result"`
}

// ReadJournal reads a journal file. A file that does not exist is
// os.ErrNotExist. A damaged file is an error: nobody knows what the host was doing,
// and a guess could upgrade the host twice. The journal of a newer format is an
// error as well, but never called damaged.
func ReadJournal(path string) (Journal, error) {
	body, err := os.ReadFile(path)
	if err != nil {
		return Journal{}, fmt.Errorf("cannot read journal: %w", err)
	}
	journal, err := decodeJournal(body)
	switch {
	case format.IsUnsupported(err):
		return Journal{}, fmt.Errorf("cannot read journal %s: %w; start a version that reads it", path, err)
	case err != nil:
		return Journal{}, fmt.Errorf("journal %s is damaged: %w; what this host was doing is unknown: look at it, then remove the file", path, err)
	}
	return journal, nil
}

// journalMember is the member of a journal file that holds the journal.
const journalMember = "journal"

func decodeJournal(body []byte) (journal Journal, err error) {
	if err := format.Journal.DecodeSummed(body, journalMember, &journal); err != nil {
		return Journal{}, err
	}
	return journal, journal.check()
}

// encode returns the content of the journal file.
func (j Journal) encode() ([]byte, error) { return format.Journal.EncodeSummed(journalMember, j) }

// position is what the host tells the site of its journal; nil while it knows no
// command.
func (j Journal) position() *message.Position {
	if j.Seq == 0 || j.Log == "" {
		return nil
	}
	return &message.Position{Log: j.Log, Seq: j.Seq, At: j.At, Action: j.Action, Answered: j.Phase == Answered, Busy: j.Phase != Idle && j.Phase != Answered}
}

// pastPrepare reports that the journal is past its run's prepare.
func (j Journal) pastPrepare() bool { return j.Action == message.Upgrade || j.Action == message.Reboot }

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
		if j.Run != 0 || j.Action != "" || j.Result != "" {
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
	case j.Class != "" && !j.Class.Known():
		return fmt.Errorf("class %q is unknown", j.Class)
	case j.Retry.Tries < 0:
		return fmt.Errorf("%d tries cannot be", j.Retry.Tries)
	case j.Run == 0 || j.Seq < j.Run:
		return fmt.Errorf("command %d cannot be of run %d", j.Seq, j.Run)
	case !j.Action.Known():
		return fmt.Errorf("action %q is unknown", j.Action)
	case (j.Phase == Answering || j.Phase == Answered) && j.Result == "":
		return errors.New("the result is missing")
	}
	return nil
}

// write makes the journal durable.
func (j Journal) write(path string, file WriteFile) error {
	body, err := j.encode()
	if err != nil {
		return err
	}
	if err := file(path, body, 0o600); err != nil {
		return fmt.Errorf("cannot write journal entry for run %d: %w", j.Run, err)
	}
	return nil
}
