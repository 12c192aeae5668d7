package main

// aptFaults are faults in the strategy apt.
var aptFaults = []fault{
	{
		name: "apt-prepare-is-not-synced", in: "agent/worker/strategy/apt.steps.prepare",
		old: `return plan, s.sync()`, new: `return plan, nil`,
		by: tests("agent/worker/strategy/apt", "TestPrepareEndsOnDisk"),
	},
	{
		name: "apt-is-done-by-its-exit-status", in: "agent/worker/strategy/apt.steps.finish",
		old: `len(missing) > 0`, new: `len(missing) > 1<<20`,
		by: tests("agent/worker/strategy/apt", "TestDoneIsNoExitStatus"),
	},
	{
		name: "apt-reboots-by-the-marker-alone", in: "agent/worker/strategy/apt.rebootSigns.reason",
		old: `case r.container:`, new: `default:`,
		by: tests("agent/worker/strategy/apt", "TestNewKernelNeedsNoMarker|TestRebootSigns"),
	},
	{
		name: "apt-unpacks-before-dpkg-has-merged", in: "agent/worker/strategy/apt.nextRepair",
		old: `case now.interrupted && count(repairConfigure) == 0:`, new: `case false:`,
		by: tests("agent/worker/strategy/apt", "TestNextRepairRepairsEveryHost|TestKilledAnywhere"),
	},
	{
		name: "apt-installs-what-is-not-planned", in: "agent/worker/strategy/apt.beyond",
		body: `return nil`,
		by:   tests("agent/worker/strategy/apt", "TestBeyond"),
	},
	{
		name: "apt-plans-by-lists-that-are-lost", in: "agent/worker/strategy/apt.steps.plan",
		old: `if err := s.listed(ctx); err != nil {`, new: `if err := s.listed(ctx); err != nil && ctx.Err() != nil {`,
		by: tests("agent/worker/strategy/apt", "TestPlanNeedsLists"),
	},
	{
		name: "apt-unpacked-is-installed", in: "agent/worker/strategy/apt.installed.isInstalled",
		old: `i.status == "installed" && !i.reinstall`, new: `i.status == "installed" || i.status == "unpacked"`,
		by: tests("agent/worker/strategy/apt", "TestMissing"),
	},
}
