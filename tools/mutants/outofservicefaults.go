package main

// outOfServiceFaults are faults in how hosts are treated that are out of service when
// a run ends.
var outOfServiceFaults = []fault{
	{
		name: "next-run-takes-all-for-well", in: "agent/controller.state.opening",
		old: `s.ledger.Opening(planned.Silent, planned.Others)`, new: `s.ledger.Opening(planned.Silent, planned.Others)[:len(planned.Silent)+len(planned.Others)]`,
		by: simulated(tests("agent/controller", "TestOutOfServiceInTheNextRun")...),
	},
	{
		name: "stranded-host-is-well", in: "agent/run.State.addEntry",
		old: `owes := e.Owes`, new: `owes := e.Owes; owes.Answer = ""`,
		by: simulated(scripts, invariants),
	},
	{
		name: "drained-host-is-well-in-the-next-run", in: "agent/run.State.addEntry",
		old: `owes.Undrain = owes.Undrain && s.policy.Hooks.Undrain != nil`, new: `owes.Undrain = false`,
		by: simulated(scripts, invariants),
	},
	{
		name: "unhealthy-host-does-not-go-first", in: "agent/run.newCandidates",
		old: `append(held, free...)`, new: `append(free, held...)`,
		by: []suite{scripts},
	},
	{
		name: "unhealthy-hosts-go-all-at-once", in: "agent/run.stage.roomFor",
		old: `return g.taken+g.admitted < g.MaxUnavailable`, new: `return true`,
		by: []suite{scripts},
	},
	{
		name: "who-does-not-know-does-not-say-so", in: "agent/gate.Client.Reply",
		old: `if reply.Unknown {`, new: `if reply.Unknown && run == 0 {`,
		by: tests("agent/log/jetstream", "TestNewRun"),
	},
	{
		name: "reply-of-another-worker-is-believed", in: "agent/run.member.replyOf",
		old: `r.Epoch != m.epoch && !reply.Unknown`, new: `r.Epoch < m.epoch && !reply.Unknown`,
		by: tests("agent/run", "TestReplyOfAnotherWorker"),
	},
	{
		name: "host-beyond-the-run-is-well", in: "agent/roster.Roster.Lasting",
		old: `if h.Lasts() {`, new: `if h.Lasts() && h.Group != NoGroup {`,
		by: simulated(scripts),
	},
	{
		name: "silence-ends-with-the-run", in: "agent/roster.Host.Lasts",
		old: `h.Owes.Any() || h.IsSilent() && !h.Absent`, new: `h.Owes.Any()`,
		by: append(tests("agent/controller", "TestSilentBeyondTheRun"), scripts, invariants),
	},
	{
		name: "absent-host-holds-a-slot", in: "agent/run.State.addEntry",
		old: `e.Silent && (!h.Absent || s.policy.Absent != policy.Skip)`, new: `e.Silent`,
		by: simulated(scripts, invariants),
	},
	{
		name: "host-that-could-not-prepare-counts", in: "agent/run.State.fail",
		old: `m.step > preparing`, new: `true`,
		by: simulated(scripts, invariants),
	},
	{
		name: "host-aside-does-not-count", in: "agent/run.State.addEntry",
		old: `if e.Stage != "" {`, new: `if e.Stage == "-" {`,
		by: append(tests("agent/controller", "TestRetryBesideOthers"), scripts),
	},
	{
		name: "who-does-not-know-goes", in: "agent/run.member.isCandidate",
		old: `!m.IsSilent() && !m.Owes.Look`, new: `!m.IsSilent()`,
		by: simulated(scripts, invariants),
	},
	{
		name: "answer-after-the-end-is-lost", in: "agent/run.Ledger.fold",
		old: `if l.newest == nil {`, new: `if l.Current() == nil && r.Kind == message.ReplyRecord || l.newest == nil {`,
		by: []suite{scripts},
	},
	{
		name: "late-answer-does-not-reach-the-history", in: "agent/run.State.Fold",
		old: `if err == nil {`, new: `if err == nil && !s.Over() {`,
		by: tests("agent/run", "TestLastSeq"),
	},
	{
		name: "history-goes-back", in: "agent/store.keptRun.olderThan",
		old: `kept < asOf, nil`, new: `kept != asOf, nil`,
		by: tests("agent/store", "TestRunThatChangesAfterItsEnd"),
	},
	{
		name: "history-ignores-what-comes-after-the-end", in: "agent/store.keptRun.olderThan",
		old: `kept < asOf, nil`, new: `kept > asOf, nil`,
		by: tests("agent/store", "TestRunThatChangesAfterItsEnd"),
	},
	{
		name: "unhealthy-host-is-upgraded-though-silent", in: "agent/run.State.silence",
		old: `(!h.Held() || m.step <= ready) && m.final != Skipped`, new: `!h.Held() && m.final != Skipped`,
		by: tests("agent/controller", "TestUnhealthyAndSilent"),
	},
	{
		name: "window-is-missed-after-a-trim", in: "agent/run.Ledger.open",
		old: `l.considered = e.Considered`, new: `_ = e.Considered`,
		by: tests("agent/run", "TestConsidered"),
	},
	{
		name: "prepare-in-a-freeze", in: "agent/run.State.tellFreeze",
		old: `if seen.Freeze == nil ||`, new: `if seen.Freeze == nil || s.ID == 0 ||`,
		by: tests("agent/controller", "TestFreezeBeforePrepare"),
	},
	{
		name: "deleted-host-keeps-its-slot", in: "agent/run.State.tellDeleted",
		old: `if s.Minds(host) {`, new: `if s.Minds(host) && !s.Over() {`,
		by: tests("agent/controller", "TestDeletedAfterTheEnd"),
	},
	{
		name: "stage-is-done-before-an-undrain", in: "agent/run.member.left",
		old: `return m.final == "" || m.underWay()`, new: `return m.final == ""`,
		by: []suite{scripts},
	},
}
