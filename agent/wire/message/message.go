// Package message holds what travels on the log: the envelope of a record and
// the JSON bodies of commands, replies and events.
//
// It decides what a well-formed message is. Bodies of commands and replies are
// exactly those of Avassa's protocol, as its page "Subtenant OS upgrade management"
// shows them; what else a record needs, such as its run, stands in the envelope. It does
// no I/O.
package message

import (
	"encoding/json"
	"fmt"
	"time"
)

// Producer is the name under which a controller writes, as Avassa's does.
const Producer = "os-upgrade-controller"

// MaxText bounds the text of a reply or a reason, in bytes, so that a host
// cannot fill the log with one message.
const MaxText = 4 << 10

// Kind tells what a record is.
type Kind int

// The kinds of records on the log.
const (
	// CommandAll is a command to many hosts: prepare.
	CommandAll Kind = iota + 1
	// CommandHost is a command to one host: upgrade or reboot.
	CommandHost
	// EventRecord is a fact of a run.
	EventRecord
	// ReplyRecord is a host's answer to a command.
	ReplyRecord
)

// Record is one entry of the log as the rest of the agent sees it. Host and
// Run of a reply come from the subject that only that host may write to, never
// from the body.
type Record struct {
	// Seq is the log's sequence of the record, from 1.
	Seq uint64
	// Log identifies the log, for a host that may be led to another one: when
	// its stream was made. A controller has but one and leaves it empty.
	Log string
	// Time is when the log took it.
	Time time.Time
	Kind Kind
	// Host is the host that a command is for or a reply is from.
	Host string
	// Run is the run that it belongs to; 0 where it begins one.
	Run uint64
	// Environment is of a prepare: the environment whose run it begins; empty for the
	// default one.
	Environment string
	// Action is the command that a reply answers.
	Action Action
	// Epoch is that of the lease under which a reply was given, and of the
	// reply to prepare that a command follows from; 0 when there is none.
	Epoch uint64
	// Checks is of a command: its run checks each host after the upgrade, and a host with
	// more than one bootable system confirms the new one only when these checks have
	// passed. It travels beside the body, which is Avassa's.
	Checks bool
	// Release is of a prepare: the release that its run installs, as a release.Ref is written;
	// empty if it has none. It travels beside the body, too.
	Release string
	// Rollback is of a prepare: the runs that its run rolls back, as an Interval is written; empty if
	// it rolls none back. It travels beside the body, too.
	Rollback string
	// Outputs is of a command as its host gets it: steps of its run have given outputs. The log does
	// not have it.
	Outputs bool
	// Outcome, Class and UpToDate are of a reply: what of its result is not in the body.
	Outcome  ReplyOutcome
	Class    Class
	UpToDate bool
	Body     []byte
}

// Action names a command and the reply to it.
type Action string

// The actions of the protocol.
const (
	Prepare Action = "prepare"
	Upgrade Action = "upgrade"
	Reboot  Action = "reboot"
)

// Known reports whether a is an action of the protocol.
func (a Action) Known() bool { return a == Prepare || a == Upgrade || a == Reboot }

// encode writes a value of this package's own types, which always can be.
func encode(value any) []byte {
	body, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("message: cannot encode %T: %v", value, err))
	}
	return body
}
