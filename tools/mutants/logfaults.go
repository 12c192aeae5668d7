package main

// logFaults are faults of the log, of its gate and of its guard.
var logFaults = []fault{
	{
		name: "append-without-compare-and-set", in: "agent/log/jetstream.Log.append",
		old: `jetstream.WithExpectLastSequenceForSubject(expect, l.subjects.Commands()),`, new: ``,
		by: tests("agent/log/jetstream", "TestOneWriter"),
	},
	{
		name: "reply-without-compare-and-set", in: "agent/log/jetstream.Gate.reply",
		old: `jetstream.WithExpectLastSequencePerSubject(0)`, new: `jetstream.WithRetryAttempts(0)`,
		by: tests("agent/log/jetstream", "TestOneAnswer"),
	},
	{
		name: "reply-to-an-older-run", in: "agent/log/jetstream.Gate.reply",
		old: `case !newest:`, new: `case !newest && id == 0:`,
		by: tests("agent/log/jetstream", "TestReplySubject|TestFlood|TestRunAheadOfTheGate|TestOneAnswer"),
	},
	{
		name: "call-in-the-name-of-another-host", in: "agent/log/jetstream.Gate.caller",
		old: `ok && strings.HasPrefix(msg.Reply, g.log.subjects.Inbox(host)+".")`, new: `ok`,
		by: tests("agent/log/jetstream", "TestRights|TestListening|TestReplySubject|TestFlood"),
	},
	{
		name: "seat-is-not-asked-for", in: "agent/log/jetstream.Gate.answer",
		old: `g.seats.heard(host, worker, session); !has {`, new: `g.seats.heard(host, worker, session); !has && host == "" {`,
		by: tests("agent/log/jetstream", "TestSeatOfOneWhoWasNotTold"),
	},
	{
		name: "seat-of-who-is-alive", in: "agent/log/jetstream.seats.ask",
		old: `case h.Worker != "" && !s.silent(host):`, new: `case h.Worker != "" && s.begun.IsZero():`,
		by: tests("agent/log/jetstream", "TestSeat|TestSeatOutlivesTheGate"),
	},
	{
		name: "seat-without-compare-and-set", in: "agent/store.Store.PutSeat",
		old: `s.seats.Update(ctx, tenant+"."+key, body, base)`, new: `s.seats.Put(ctx, tenant+"."+key, body)`,
		by: tests("agent/store", "TestSeatIsGivenOnce"),
	},
	{
		name: "heartbeat-without-a-seat", in: "agent/log/jetstream.Gate.heard",
		old: `return has`, new: `return true`,
		by: tests("agent/log/jetstream", "TestHeartbeatWithoutSeat"),
	},
	{
		name: "newest-command-is-trimmed", in: "agent/log/jetstream.Log.Trim",
		old: `case newest == nil || newest.Sequence <= upTo:`, new: `case newest == nil:`,
		by: tests("agent/log/jetstream", "TestTrim"),
	},
	{
		name: "hash-of-log-is-not-compared", in: "agent/log/guard.Guard.See",
		old: `g.now.Hash != g.kept.Hash {`, new: `g.now.Hash == "" {`,
		by: tests("agent/log/guard", "TestGuard"),
	},
	{
		name: "end-of-log-is-not-compared", in: "agent/log/guard.Guard.End",
		old: `if last < g.kept.Seq {`, new: `if last < g.kept.Seq/2 {`,
		by: tests("agent/log/guard", "TestGuard"),
	},
	{
		name: "gap-in-log-is-not-noticed", in: "agent/log/guard.Guard.See",
		old: `if r.Seq != g.now.Seq+1 {`, new: `if r.Seq < g.now.Seq+1 {`,
		by: tests("agent/log/guard", "TestGap|TestGuard"),
	},
}
