package main

// freezeFaults are faults in what ends a run, or keeps one from being opened:
// freezes, what cannot be read, and windows that had their run.
var freezeFaults = []fault{
	{
		name: "freeze-goes-by-a-clock-that-was-corrected", in: "agent/controller.state.seen",
		old: `s.intent.nextFreeze(s.clock.forFreezes(now))`, new: `s.intent.nextFreeze(now.Add(s.clock.ahead(now)))`,
		by: tests("agent/controller", "TestFreezeAfterTheClockWasSetBackInASoak"),
	},
	{
		name: "freeze-that-is-over-ends-the-run", in: "agent/run.State.freeze",
		old: `if !at.Before(e.Until) {`, new: `if false {`,
		by: append(tests("agent/controller", "TestFreezeBeforeTheRunByTheLog"), scripts),
	},
	{
		name: "what-cannot-be-read-hides-freezes", in: "agent/controller.intent.reschedule",
		old: `i.schedule.Windows, i.schedule.Allow = nil, nil`, new: `i.schedule.Windows, i.schedule.Allow, i.schedule.Freezes = nil, nil, nil`,
		by: tests("agent/controller", "TestFreezeWithoutConfiguration|TestFreezeBesideWhatCannotBeRead"),
	},
	{
		name: "what-cannot-be-read-holds-no-run", in: "agent/controller.intent.hold",
		old: `if err := i.unreadable(); err != nil {`, new: `if err := i.unreadable(); err != nil && i.complete && !i.complete {`,
		by: tests("agent/controller", "TestUnreadableHoldsTheRun"),
	},
	{
		name: "start-by-what-cannot-be-read", in: "agent/controller.state.decideStart",
		old: `if err := s.intent.unreadable(); err != nil {`, new: `if err := s.intent.unreadable(); err != nil && s.intent.config == nil && !s.intent.complete {`,
		by: tests("agent/controller", "TestNoStartWhileUnreadable"),
	},
	{
		name: "agent-forgives-failures", in: "agent/run.State.resume",
		old: `if !message.GoesOn(e.By) {`, new: `if e.By != "" {`,
		by: []suite{scripts},
	},
	{
		name: "window-that-was-moved-has-two-runs", in: "agent/controller.edited",
		old: `return m.span.Start.Before(m.changed) && m.span.Start.Before(m.lastEnd)`, new: `return false`,
		by: tests("agent/controller", "TestEditOfAnOpenWindow"),
	},
	{
		name: "window-that-is-to-come-has-no-run", in: "agent/controller.edited",
		old: `return m.span.Start.Before(m.changed) && m.span.Start.Before(m.lastEnd)`, new: `return m.span.Start.Before(m.lastEnd)`,
		by: tests("agent/controller", "TestEditOfAnOpenWindow"),
	},
	{
		name: "window-that-is-added-has-no-run", in: "agent/controller.edited",
		old: `return m.span.Start.Before(m.changed) && m.span.Start.Before(m.lastEnd)`, new: `return m.span.Start.Before(m.changed) && !m.last.IsZero()`,
		by: tests("agent/controller", "TestWindowsThatHadNoRun"),
	},
	{
		name: "window-ends-with-the-reserve", in: "agent/run.open",
		old: `WindowEnd: e.WindowEnd`, new: `WindowEnd: e.NotAfter`,
		by: tests("agent/controller", "TestEditWithinTheReserve"),
	},
	{
		name: "next-upgrade-is-one-that-was", in: "agent/controller.state.status",
		old: `s.nextUpgrade(now)`, new: `s.intent.nextOpening(now)`,
		by: tests("agent/controller", "TestNextUpgradeAfterTheRun"),
	},
}
