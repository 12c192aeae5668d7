package message

import (
	"fmt"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// Decoded is a record with its body decoded. Exactly one of Command, Reply
// and Event is set, or Err is.
type Decoded struct {
	Record

	Command *Command
	Reply   *Reply
	Event   Event
	// Err is why the body cannot be read.
	Err error
}

// Decode reads the body of a record.
func (r Record) Decode() Decoded {
	e := Decoded{Record: r}
	switch r.Kind {
	case CommandAll, CommandHost:
		e.Command, e.Err = decoded(DecodeCommand(r.Body))
		err := checkEnvironment(r.Environment)
		if _, unreadable := release.ParseRef(r.Release); err == nil {
			err = unreadable
		}
		if _, unreadable := ParseInterval(r.Rollback); err == nil {
			err = unreadable
		}
		if err != nil {
			e.Command, e.Err = nil, fmt.Errorf("cannot read %s: %w", Prepare, err)
		}
	case ReplyRecord:
		e.Reply, e.Err = decoded(DecodeReply(r.Body))
		if e.Reply != nil {
			e.Reply.Result = e.Reply.Result.with(r.Outcome, r.Class, r.UpToDate)
		}
	case EventRecord:
		e.Event, e.Err = DecodeEvent(r.Body)
	}
	return e
}

func decoded[T any](body T, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	return &body, nil
}

// Hosts returns the hosts that the record is about; none for one of the whole run.
func (d Decoded) Hosts() []string {
	if d.Event != nil {
		return Hosts(d.Event)
	}
	return []string{d.Host}
}
