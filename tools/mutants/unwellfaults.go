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
		old: `out -= g.untouched`, new: `out -= g.out`,
		by: []suite{scripts, invariants},
	},
	{
		name: "host-beyond-the-run-is-well", file: "agent/run/inherit.go",
		old: `return append(hosts, s.beyond...)`, new: `return hosts`,
		by: []suite{scripts},
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
