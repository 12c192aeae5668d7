package decide

import (
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// takeOver returns the journal of a worker that gets the lease when another worker
// may have held it in between. It is the journal of a host without one, because this
// worker does not know what the other worker did. The position never goes back.
func (j Journal) takeOver(records []message.Record, host string, now time.Time) Journal {
	next := blank(records, host, now)
	if next.Phase != Idle {
		next.Result = cannotKnow(anothersPast)
	}
	if next.Seq == 0 {
		next.Log = j.Log
	}
	if next.Log == j.Log && next.Seq < j.Seq {
		next.Seq, next.At = j.Seq, j.At
	}
	return next
}

// blank returns the first journal of a host that is new or has lost its journal.
// records are the newest commands to the host on the log (log.HostLog.Newest). The
// host executes none of them, because it may have executed them before. If a run may still
// wait for the host's reply, the reply is an error; the log refuses it if the host has
// replied already.
func blank(records []message.Record, host string, now time.Time) Journal {
	var position Journal
	for _, r := range records {
		if r.Seq > position.Seq {
			position.Seq, position.At, position.Log = r.Seq, timeOf(r), r.Log
		}
	}
	open, ok := openRun(records, host, now)
	if !ok {
		return position
	}
	open.Seq, open.At, open.Log = position.Seq, position.At, position.Log
	return open.answer(cannotKnow(unknownPast))
}

// checkedUntil returns the not-after of the run under way if it has sent this host an
// upgrade and checks the host after that; zero otherwise.
func checkedUntil(records []message.Record, host string, now time.Time) time.Time {
	run, open := openRun(records, host, now)
	upgraded := func(r message.Record) bool { return r.Kind == message.CommandHost && r.Run == run.Run && r.Checks }
	if !open || run.Action == message.Prepare || !slices.ContainsFunc(records, upgraded) {
		return time.Time{}
	}
	return run.NotAfter
}

// openRun returns the journal of the newest run if this host is a member and the
// run has not ended; its action is that of the host's newest command.
func openRun(records []message.Record, host string, now time.Time) (run Journal, ok bool) {
	for _, r := range records {
		command, err := message.DecodeCommand(r.Body)
		switch {
		case err != nil:
		case command.Action == message.Prepare:
			run = Journal{Run: r.Seq, NotAfter: command.NotAfter, RunAt: timeOf(r), Action: command.Action}
			ok = slices.Contains(command.Hosts, host) && now.Before(command.NotAfter)
		case ok && command.Host == host && r.Run == run.Run:
			run.Action = command.Action
		}
	}
	return run, ok
}
