package main

// waysBack plays random histories of slots. A case that fails is not kept, because rapid
// would replay it without the fault.
var waysBack = suite{pkg: "agent/worker/strategy/rauc", names: "TestWaysBack", flags: []string{"-rapid.seed=1", "-rapid.nofailfile", "-rapid.shrinktime=1s"}}

// imageFaults are faults in the strategies that replace a system as a whole, and in how
// they download.
var imageFaults = []fault{
	{
		name: "part-of-a-download-that-was-not-synced-counts", in: "agent/worker/download.Folder.begin",
		old: `_, err = file.Seek(r.Synced, io.SeekStart)`, new: `_, err = file.Seek(0, io.SeekEnd)`,
		by: tests("agent/worker/download", "TestNoTrustBeyondSync"),
	},
	{
		name: "part-of-another-file-is-continued", in: "agent/worker/download.resume",
		old: `given != kept.Validator`, new: `given == kept.Validator`,
		by: tests("agent/worker/download", "TestOddServer"),
	},
	{
		name: "what-starts-next-counts-after-the-reboot", in: "agent/worker/strategy.Systems.Missing",
		old: `(c.To != s.Next || !job.Staged)`, new: `c.To != s.Next`,
		by: tests("agent/worker/strategy", "TestSystems"),
	},
	{
		name: "version-that-the-machine-gave-up-is-tried-again", in: "agent/worker/strategy.Systems.Resumed",
		old: `if c.To == s.Failed {`, new: `if c.To == s.Running {`,
		by: tests("agent/worker/strategy", "TestSystems"),
	},
	{
		name: "slot-counts-that-the-boot-loader-would-not-take", in: "agent/worker/strategy/rauc.system.staged",
		old: `one.name == s.primary && one.boot != "bad"`, new: `one.name != running.name`,
		by: tests("agent/worker/strategy/rauc", "TestSystemsOf"),
	},
	{
		name: "slot-that-failed-is-not-marked", in: "agent/worker/strategy/rauc.system.confirm",
		old: `if one.version == boot.Failed {`, new: `if one.version == running.version {`,
		by: []suite{waysBack},
	},
	{
		name: "two-choices-of-a-slot-in-one-second", in: "agent/worker/strategy/rauc.system.pause",
		old: `return max(0, last.Add(resolution).Sub(now))`, new: `return 0`,
		by: []suite{waysBack},
	},
	{
		name: "success-that-RAUC-reports-is-believed", in: "agent/worker/strategy/rauc.Strategy.Upgrade",
		old: `outcome, err = s.activate(ctx, rauc, job.Plan)`, new: `outcome = strategy.RebootRequired`,
		by: tests("agent/worker/strategy/rauc", "TestLeavesActivation"),
	},
	{
		name: "unplanned-deployment-stays-the-next", in: "agent/worker/strategy/ostree.Strategy.Upgrade",
		old: `if systems.Next == "" {`, new: `if systems.Next != "" {`,
		by: tests("agent/worker/strategy/ostree", "TestAdaptersUnplanned"),
	},
	{
		name: "deployment-after-a-pinned-one-is-pinned", in: "agent/worker/strategy/ostree.follow",
		old: `section == "[libostree-transient]"`, new: `section == "[none]"`,
		by: tests("agent/worker/strategy/ostree", "TestFollow"),
	},
}
