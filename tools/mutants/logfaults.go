package main

// logFaults are faults of the log, of its gate and of its guard.
var logFaults = []fault{
	{
		name: "append-without-compare-and-set", file: "agent/log/jetstream/jetstream.go",
		old: `jetstream.WithExpectLastSequenceForSubject(expect, l.subjects.Commands()),`, new: ``,
		by: tests("agent/log/jetstream", "TestOneWriter"),
	},
	{
		name: "reply-without-compare-and-set", file: "agent/log/jetstream/answer.go",
		old: `jetstream.WithExpectLastSequencePerSubject(0)`, new: `jetstream.WithRetryAttempts(0)`,
		by: tests("agent/log/jetstream", "TestOneAnswer"),
	},
	{
		name: "reply-to-an-older-run", file: "agent/log/jetstream/answer.go",
		old: `case !newest:`, new: `case !newest && id == 0:`,
		by: tests("agent/log/jetstream", "TestReplySubject|TestFlood|TestRunAheadOfTheGate|TestOneAnswer"),
	},
	{
		name: "call-in-the-name-of-another-host", file: "agent/log/jetstream/gate.go",
		old: `ok && strings.HasPrefix(msg.Reply, g.log.subjects.Inbox(host)+".")`, new: `ok`,
		by: tests("agent/log/jetstream", "TestRights|TestListening|TestReplySubject|TestFlood"),
	},
	{
		name: "seat-is-not-asked-for", file: "agent/log/jetstream/answer.go",
		old: `g.seats.heard(host, worker, session); !has {`, new: `g.seats.heard(host, worker, session); !has && host == "" {`,
		by: tests("agent/log/jetstream", "TestSeatOfOneWhoWasNotTold"),
	},
	{
		name: "seat-of-who-is-alive", file: "agent/log/jetstream/seats.go",
		old: `case h.Worker != "" && !s.silent(host):`, new: `case h.Worker != "" && s.begun.IsZero():`,
		by: tests("agent/log/jetstream", "TestSeat|TestSeatOutlivesTheGate"),
	},
	{
		name: "seat-without-compare-and-set", file: "agent/store/seats.go",
		old: `s.seats.Update(ctx, tenant+"."+key, body, base)`, new: `s.seats.Put(ctx, tenant+"."+key, body)`,
		by: tests("agent/store", "TestSeatIsGivenOnce"),
	},
	{
		name: "heartbeat-without-a-seat", file: "agent/log/jetstream/gate.go",
		old: `	return has
`, new: `	return true
`,
		by: tests("agent/log/jetstream", "TestHeartbeatWithoutSeat"),
	},
	{
		name: "newest-command-is-trimmed", file: "agent/log/jetstream/jetstream.go",
		old: `case newest == nil || newest.Sequence <= upTo:`, new: `case newest == nil:`,
		by: tests("agent/log/jetstream", "TestTrim"),
	},
	{
		name: "hash-of-log-is-not-compared", file: "agent/log/guard/guard.go",
		old: `g.now.Hash != g.kept.Hash {`, new: `g.now.Hash == "" {`,
		by: tests("agent/log/guard", "TestGuard"),
	},
	{
		name: "end-of-log-is-not-compared", file: "agent/log/guard/guard.go",
		old: `if last < g.kept.Seq {`, new: `if last < g.kept.Seq/2 {`,
		by: tests("agent/log/guard", "TestGuard"),
	},
	{
		name: "gap-in-log-is-not-noticed", file: "agent/log/guard/guard.go",
		old: `if r.Seq != g.now.Seq+1 {`, new: `if r.Seq < g.now.Seq+1 {`,
		by: tests("agent/log/guard", "TestGap|TestGuard"),
	},
}
