package main

// unwellFaults are faults in what becomes of hosts that are not well when a run
// ends.
var unwellFaults = []fault{
	{
		name: "next-run-takes-all-for-well", file: "agent/controller/start.go",
		old: `e.Unwell = s.ledger.Unwell()`, new: `_ = s.ledger.Unwell()`,
		by: simulated(tests("agent/controller", "TestUnwellInTheNextRun")...),
	},
	{
		name: "stranded-host-is-well", file: "agent/run/fold.go",
		old: `m.late != "" || m.stranded != "" ||`, new: `m.late != "" ||`,
		by: simulated(scripts, invariants),
	},
	{
		name: "drained-host-is-well-in-the-next-run", file: "agent/run/inherit.go",
		old: `m.undrain = u.Drained && s.policy.Hooks.Undrain != nil`, new: `m.undrain = false`,
		by: simulated(scripts, invariants),
	},
	{
		name: "unwell-host-does-not-go-first", file: "agent/run/stage.go",
		old: `append(held, free...)`, new: `append(free, held...)`,
		by: []suite{scripts},
	},
	{
		name: "unwell-hosts-go-all-at-once", file: "agent/run/obstacle.go",
		old: `return g.taken+g.turns < g.MaxUnavailable`, new: `return true`,
		by: []suite{scripts},
	},
	{
		name: "host-beyond-the-run-is-well", file: "agent/run/inherit.go",
		old: `if s.outsiders[k].slot {`, new: `if s.outsiders[k].slot && s.Over() && k < 0 {`,
		by: simulated(scripts),
	},
	{
		name: "host-aside-does-not-count", file: "agent/run/outsider.go",
		old: "if g := &s.stages[o.stage]; o.out() {\n\t\tg.out++", new: "if g := &s.stages[o.stage]; o.out() {\n\t\tg.out += 0",
		by: append(tests("agent/controller", "TestRetryBesideOthers"), scripts),
	},
	{
		name: "who-does-not-know-goes", file: "agent/run/member.go",
		old: `!m.silent && !m.unknown`, new: `!m.silent`,
		by: simulated(scripts, invariants),
	},
	{
		name: "answer-after-the-end-is-lost", file: "agent/run/ledger.go",
		old: `case r.Kind == message.ReplyRecord && l.newest != nil:`, new: `case r.Kind == message.ReplyRecord && l.newest == nil:`,
		by: []suite{scripts},
	},
	{
		name: "late-answer-does-not-reach-the-history", file: "agent/run/inherit.go",
		old: "s.answerLate(i, answerOf(r), r.Time)\n\ts.LastSeq = r.Seq", new: `s.answerLate(i, answerOf(r), r.Time)`,
		by: tests("agent/run", "TestLastSeq"),
	},
	{
		name: "history-goes-back", file: "agent/store/history.go",
		old: `kept < asOf, nil`, new: `kept != asOf, nil`,
		by: tests("agent/store", "TestRunThatChangesAfterItsEnd"),
	},
	{
		name: "history-ignores-what-comes-after-the-end", file: "agent/store/history.go",
		old: `kept < asOf, nil`, new: `kept > asOf, nil`,
		by: tests("agent/store", "TestRunThatChangesAfterItsEnd|TestRunKeptByAnOlderAgent"),
	},
	{
		name: "unwell-host-is-upgraded-though-silent", file: "agent/run/asks.go",
		old: `(!m.slot || m.step <= ready) && m.final != Skipped`, new: `!m.slot && m.final != Skipped`,
		by: tests("agent/controller", "TestUnwellAndSilent"),
	},
	{
		name: "window-is-missed-after-a-trim", file: "agent/run/ledger.go",
		old: `l.considered = *event.Considered`, new: `_ = *event.Considered`,
		by: tests("agent/run", "TestConsidered"),
	},
	{
		name: "prepare-in-a-freeze", file: "agent/controller/freeze.go",
		old: `if !found || !freeze.Start.Before(current.NotAfter) {`, new: `if !found || current.ID == 0 || !freeze.Start.Before(current.NotAfter) {`,
		by: tests("agent/controller", "TestFreezeBeforePrepare"),
	},
	{
		name: "deleted-host-keeps-its-slot", file: "agent/controller/forget.go",
		old: `if ended.HoldsSlot(name) {`, new: `if ended.HoldsSlot(name) && !ended.Over() {`,
		by: tests("agent/controller", "TestDeletedAfterTheEnd"),
	},
	{
		name: "stage-is-done-before-an-undrain", file: "agent/run/member.go",
		old: `return m.final == "" || m.owes()`, new: `return m.final == ""`,
		by: []suite{scripts},
	},
}
