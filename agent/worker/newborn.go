package worker

import (
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// unknownPast is what a host answers when it cannot know whether it carried
// out a command.
const unknownPast = "this host has no journal, so what it did before is unknown"

// Newborn returns the first journal of a host that has none, be it new or be
// its journal lost, from what the log holds for it (topic.Station.Newest). None
// of those commands is carried out: the host may have done so before
// (design.md 5, invariant 2). Where one of them may still wait for its answer,
// the answer is an error, which the log refuses if there is one already.
func Newborn(records []message.Record, host string, now time.Time) Journal {
	var position Journal
	for _, r := range records {
		if r.Seq > position.Seq {
			position.Seq, position.Log = r.Seq, r.Log
		}
	}
	open, ok := openRun(records, host, now)
	if !ok {
		return position
	}
	open.Seq, open.Log = position.Seq, position.Log
	open.Phase, open.Result = Answering, unknownPast
	return open
}

// openRun returns the run among the records that this host is a member of and
// that has not ended, with the host's newest command.
func openRun(records []message.Record, host string, now time.Time) (run Journal, ok bool) {
	for _, r := range records {
		command, err := message.DecodeCommand(r.Body)
		switch {
		case err != nil:
		case command.Action == message.Prepare:
			run = Journal{Run: r.Seq, NotAfter: command.NotAfter, Action: command.Action}
			ok = slices.Contains(command.Hosts, host) && now.Before(command.NotAfter)
		case ok && command.Host == host && r.Run == run.Run:
			run.Action = command.Action
		}
	}
	return run, ok
}
