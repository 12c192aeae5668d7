package main

// besideFaults are faults in what the controller and the gate know beside the log:
// who is there, what runs at the site, and who was told what.
var besideFaults = []fault{
	{
		name: "deletion-is-answered-before-the-log-has-it", in: "agent/controller.state.forgot",
		old: `case s.ledger.LastSeq < s.log.last || s.minds(name):`, new: `case s.ledger.LastSeq < s.log.last:`,
		by: tests("agent/controller", "TestForgetIsOnTheLog"),
	},
	{
		name: "host-is-deleted-that-may-be-at-work", in: "agent/controller.state.forgettable",
		old: `s.Now().Before(s.started.Add(gracePeriod)):`, new: `s.Now().Before(s.started):`,
		by: tests("agent/controller", "TestForgetAfterARestart"),
	},
	{
		name: "undrain-before-the-drain-has-ended", in: "agent/controller.dispatcher.request",
		old: `d.ended[t.Host] = ended`, new: `_ = ended`,
		by: tests("agent/controller", "TestUndrainAfterTheDrain"),
	},
	{
		name: "hook-is-given-up-while-it-waits-for-its-place", in: "agent/run.rules.taskLimit",
		old: `time.Duration(1+(r.members-1)/message.SiteTasks)`, new: `time.Duration(min(1, 1+(r.members-1)/message.SiteTasks))`,
		by: tests("agent/controller", "TestManyHooksAtTheSite"),
	},
	{
		name: "run-that-touched-no-host-uses-its-window", in: "agent/run.State.UsesWindow",
		body: `return true`,
		by:   tests("agent/controller", "TestRetryInTheWindow"),
	},
	{
		name: "window-is-tried-again-though-a-host-was-touched", in: "agent/run.State.UsesWindow",
		old: `s.WindowUsed || s.touched`, new: `s.WindowUsed`,
		by: simulated(tests("agent/controller", "TestRetryInTheWindow")...),
	},
	{
		name: "run-by-hand-opens-its-window-again", in: "agent/run.State.UsesWindow",
		old: `s.WindowUsed || s.touched`, new: `s.touched`,
		by: tests("agent/controller", "TestRetryIsTold"),
	},
	{
		name: "clock-set-back-is-not-followed", in: "agent/controller.state.followClock",
		old: `step.by() < 0`, new: `false`,
		by: tests("agent/controller", "TestClockIsSetBack|TestSilentAfterTheClockWasSetBack"),
	},
	{
		name: "hosts-are-silent-one-after-the-other", in: "agent/controller.hosts.step",
		old: `h.present.hearAll(c.to)`, new: ``,
		by: tests("agent/controller", "TestSilentAfterTheClockWasSetBack"),
	},
	{
		name: "log-fails-by-the-clock", in: "agent/controller.appender.step",
		old: `a.failing.Add(c.by())`, new: `a.failing`,
		by: tests("agent/controller", "TestNotReadySince"),
	},
	{
		name: "judges-before-it-has-read-what-hosts-said", in: "agent/controller.pace.wasAway",
		old: `p.judgeAt = now.Add(catchingUp)`, new: `p.judgeAt = now`,
		by: tests("agent/controller", "TestAway"),
	},
	{
		name: "nobody-was-heard-while-it-was-away", in: "agent/controller.hosts.expire",
		old: `h.present.hearAll(now)`, new: ``,
		by: tests("agent/controller", "TestAway"),
	},
	{
		name: "drain-goes-on-that-another-has-done", in: "agent/controller.state.overhear",
		old: `s.tasks.done(e.Outcome)`, new: `_ = e.Outcome`,
		by: tests("agent/controller", "TestDrainThatAnotherHasDone"),
	},
	{
		name: "hook-begins-at-a-controller-that-is-behind", in: "agent/controller.dispatcher.run",
		old: `!d.caughtUp(needed)`, new: `false`,
		by: tests("agent/controller", "TestHookOfAControllerThatIsBehind"),
	},
	{
		name: "host-is-asked-by-a-controller-that-is-behind", in: "agent/controller.dispatcher.ask",
		old: `held && d.caughtUp(ctx)`, new: `held`,
		by: tests("agent/controller", "TestTaskOfAControllerThatIsBehind"),
	},
	{
		name: "each-host-asks-for-the-end-of-the-log", in: "agent/controller.dispatcher.caughtUp",
		old: `d.catchingUp.Do(ctx)`, new: `d.catchUp(ctx)`,
		by: tests("agent/controller", "TestManyTasksAtOnce"),
	},
	{
		name: "process-is-picked-after-the-wait", in: "agent/controller.dispatcher.ask",
		old: `			d.At("before ask")
`, new: `			addressed, _ = d.HostEvents.Addressed(t)
`,
		by: tests("agent/controller", "TestTaskOfAControllerThatIsBehind"),
	},
	{
		name: "clone-works-beside-its-original", in: "agent/gate.Lease.holds",
		old: `l.Worker == worker && l.Incarnation == incarnation && !l.Vacant`, new: `l.Worker == worker && !l.Vacant`,
		by: tests("agent/gate", "TestClonedMachine"),
	},
}
