package main

// logFaults are faults of the log, of its gate and of its guard.
var logFaults = []fault{
	{
		name: "hosts-are-no-witnesses", in: "agent/controller.witnesses.hear",
		body: `return false`,
		by:   tests("agent/controller", "TestHostsKnowMore|TestPositionAheadOfTheFold"),
	},
	{
		name: "lost-reply-is-not-missed", in: "agent/log/guard.Witness.Compare",
		old: `case p.Answered && p.Action == newest.action && !newest.answered:`, new: `case p.Answered && p.Seq > w.last:`,
		by: tests("agent/log/guard", "TestWitness"),
	},
	{
		name: "reply-to-a-lost-command-is-taken", in: "agent/gate.Gate.commanded",
		body: `return true, nil`,
		by:   tests("agent/log/jetstream", "TestOneAnswer"),
	},
	{
		name: "write-is-acknowledged-before-its-mark", in: "agent/natsd.Server.Mark",
		body: `return nil`,
		by:   tests("agent/site", "TestAcknowledgedWriteIsLost"),
	},
	{
		name: "append-without-compare-and-set", in: "agent/log/jetstream.Log.append",
		old: `jetstream.WithExpectLastSequenceForSubject(expect, l.subjects.Commands()),`, new: ``,
		by: tests("agent/log/jetstream", "TestOneWriter"),
	},
	{
		name: "reply-without-compare-and-set", in: "agent/log/jetstream.gateLog.AppendReply",
		old: `jetstream.WithExpectLastSequencePerSubject(0)`, new: `jetstream.WithRetryAttempts(0)`,
		by: tests("agent/log/jetstream", "TestOneAnswer"),
	},
	{
		name: "prepare-of-an-older-run-is-answered", in: "agent/gate.cache.commanded",
		old: `r.Run == c.prepare.Seq && r.Run != 0`, new: `r.Run <= c.prepare.Seq && r.Run != 0`,
		by: tests("agent/gate", "TestReplyToARunBefore"),
	},
	{
		name: "upgrade-of-an-older-run-is-answered", in: "agent/gate.cache.add",
		old: `c.raw, c.members, c.toHost = nil, map[string]struct{}{}, map[string]message.Record{}`,
		new: `if c.raw, c.members = nil, map[string]struct{}{}; c.toHost == nil { c.toHost = map[string]message.Record{} }`,
		by:  tests("agent/gate", "TestReplyToARunBefore"),
	},
	{
		name: "call-in-the-name-of-another-host", in: "agent/log/jetstream.Gate.read",
		old: `ok && strings.HasPrefix(msg.Reply, g.log.subjects.Inbox(host)+".")`, new: `ok`,
		by: tests("agent/log/jetstream", "TestRights|TestListening|TestReplySubject|TestFlood"),
	},
	{
		name: "lease-is-not-checked", in: "agent/gate.Gate.Answer",
		old: `case !holds:`, new: `case !holds && host == "":`,
		by: simulated(tests("agent/gate", "TestClonedMachine|TestLateGiveBack|TestGateBehind")...),
	},
	{
		name: "lease-of-a-worker-that-is-alive", in: "agent/gate.Lease.acquire",
		old: `(!same || cloned) && !silent`, new: `cloned && !silent`,
		by: tests("agent/gate", "TestTakeOver|TestLeaseOutlivesTheGate|TestLeaseForOneOfMany"),
	},
	{
		name: "clone-displaces-a-machine-that-is-alive", in: "agent/gate.Lease.acquire",
		old: `(!same || cloned) && !silent`, new: `!same && !silent`,
		by: tests("agent/gate", "TestClonedMachine"),
	},
	{
		name: "epoch-stays-after-a-clone", in: "agent/gate.Lease.acquire",
		old: `if !same || cloned {`, new: `if !same {`,
		by: tests("agent/gate", "TestClonedMachine"),
	},
	{
		name: "epoch-stays-after-a-take-over", in: "agent/gate.Lease.acquire",
		old: `if !same || cloned {`, new: `if cloned {`,
		by: simulated(tests("agent/gate", "TestTakeOver|TestGiveBack")...),
	},
	{
		name: "deaf-gate-takes-itself-for-listening", in: "agent/gate.Gate.Reconnected",
		old: `g.leases.deaf()`, new: ``,
		by: tests("agent/gate", "TestLeaseOutlivesTheGate"),
	},
	{
		name: "reply-without-epoch", in: "agent/gate.Gate.Answer",
		old: `Epoch: l.Epoch, `, new: ``,
		by: tests("agent/gate", "TestReplies|TestGateBehind"),
	},
	{
		name: "command-of-another-epoch-is-carried-out", in: "agent/worker.Journal.receive",
		old: `r.Epoch != 0 && r.Epoch != j.Epoch`, new: `r.Epoch != 0 && r.Epoch < j.Epoch && r.Seq == 0`,
		by: tests("agent/worker", "TestReceive"),
	},
	{
		name: "late-request-takes-the-lease", in: "agent/gate.leases.acquire",
		old: `case strconv.FormatUint(revision, 10) != base:`, new: `case base == "":`,
		by: tests("agent/gate", "TestLateRequest"),
	},
	{
		name: "write-under-way-is-a-conflict", in: "agent/store.translate",
		old: `case hasCode(err, writeUnderWay):`, new: `case hasCode(err, writeUnderWay) && err == nil:`,
		by: tests("agent/store", "TestWriteUnderWay"),
	},
	{
		name: "gate-that-is-behind-refuses-the-holder", in: "agent/gate.leases.holder",
		old: `if _, _, err := s.read(ctx, host); err != nil {`, new: `if err := ctx.Err(); err != nil {`,
		by: tests("agent/gate", "TestHolderAtGateBehind"),
	},
	{
		name: "lease-without-compare-and-set", in: "agent/store.Store.PutLease",
		old: `s.leases.Update(ctx, tenant+"."+key, body, base)`, new: `s.leases.Put(ctx, tenant+"."+key, body)`,
		by: tests("agent/store", "TestLeaseIsGrantedOnce"),
	},
	{
		name: "calls-of-a-second-process-are-dropped", in: "agent/log/jetstream.Gate.begin",
		old: `g.open[c.host] >= callsPerHost`, new: `g.open[c.host] >= gate.OpenCalls`,
		by: tests("agent/log/jetstream", "TestCallsOfTwoProcesses"),
	},
	{
		name: "call-that-was-given-up-is-carried-out", in: "agent/log/jetstream.Gate.answer",
		old: `time.Since(c.at) > 2*gate.CallTimeout`, new: `false`,
		by: tests("agent/log/jetstream", "TestCallThatWasGivenUp"),
	},
	{
		name: "host-opens-calls-without-end", in: "agent/gate.Client.once",
		old: `case c.open <- struct{}{}:
		defer func() { <-c.open }()
	case <-ctx.Done():`, new: `default:
	case <-ctx.Done():`,
		by: tests("agent/gate", "TestOpenCalls"),
	},
	{
		name: "newest-at-a-gate-behind", in: "agent/gate.cache.current",
		body: `return nil`,
		by:   tests("agent/gate", "TestNewestAtGateBehind"),
	},
	{
		name: "heartbeat-without-a-lease", in: "agent/gate.Gate.Heard",
		old: `return holds`, new: `return true`,
		by: tests("agent/log/jetstream", "TestHeartbeatWithoutLease"),
	},
	{
		name: "newest-command-is-trimmed", in: "agent/log/jetstream.Log.Trim",
		old: `case newest == nil || newest.Sequence <= upTo:`, new: `case newest == nil:`,
		by: tests("agent/log/jetstream", "TestTrim"),
	},
	{
		name: "hash-of-log-is-not-compared", in: "agent/log/guard.Guard.See",
		old: `g.now() != g.kept.Mark {`, new: `g.kept.Hash == "" {`,
		by: tests("agent/log/guard", "TestGuard"),
	},
	{
		name: "end-of-log-is-not-compared", in: "agent/log/guard.Guard.End",
		old: `if last < g.kept.Seq {`, new: `if last < g.kept.Seq/2 {`,
		by: tests("agent/log/guard", "TestGuard"),
	},
	{
		name: "gap-in-log-is-not-noticed", in: "agent/log/guard.Guard.See",
		old: `if r.Seq != g.seq+1 {`, new: `if r.Seq < g.seq+1 {`,
		by: tests("agent/log/guard", "TestGap|TestGuard"),
	},
}
