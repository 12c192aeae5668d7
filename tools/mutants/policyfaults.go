package main

// policyFaults are in what people declare: how it is read, checked and kept.
var policyFaults = []fault{
	{
		name: "share-is-rounded-the-wrong-way", in: "agent/policy.Count.Of",
		old: `rounding == Up`, new: `rounding != Up`,
		by: tests("agent/policy", "TestCountOf"),
	},
	{
		name: "span-has-no-bounds", in: "agent/policy.inspector.span",
		old: `window.ParseDurationWithin(string(s), least, most)`, new: `window.ParseDurationWithin(string(s), 0*least, 1000*most)`,
		by: tests("agent/v1", "TestWrongRollouts"),
	},
	{
		name: "member-of-another-type-is-taken", in: "agent/policy.inspectKind",
		old: `special[member] && !m.value.IsZero() && m.text() != ""`, new: `false && m.text() != ""`,
		by: tests("agent/v1", "TestWrongRollouts"),
	},
	{
		name: "defaults-are-written-into-what-was-declared", in: "agent/policy.rewrite",
		old: `reflect.Copy(list, value)`, new: `list = value`,
		by: tests("agent/v1", "TestRolloutDefaults"),
	},
	{
		name: "value-without-meaning-is-planned", in: "agent/policy.Rollout.Resolve",
		old: `err := r.unreadable(); err != nil`, new: `err := r.unreadable(); false`,
		by: tests("agent/plan", "TestWhatCannotBeRead"),
	},
	{
		name: "record-without-meaning-is-read", in: "agent/policy.Resolved.Check",
		old: `err := r.unreadable(); err != nil`, new: `err := r.unreadable(); false`,
		by: tests("agent/policy", "TestResolvedCheck"),
	},
	{
		name: "no-failure-is-too-many", in: "agent/plan.Plan.count",
		old: `max(1, full.MaxFailures.Of(present, policy.Down))`, new: `full.MaxFailures.Of(present, policy.Down)`,
		by: tests("agent/plan", "TestCounts"),
	},
	{
		name: "absent-hosts-are-of-the-whole", in: "agent/plan.Plan.count",
		old: `slices.DeleteFunc(slices.Clone(hosts), Host.absent)`, new: `slices.Clone(hosts)`,
		by: tests("agent/plan", "TestHostsThatAreAbsent"),
	},
	{
		name: "null-is-a-problem", in: "agent/document.Object.fillPointer",
		old: `if o.Null(key)`, new: `if false`,
		by: tests("agent/document", "TestFill"),
	},
	{
		name: "number-has-no-bounds", in: "agent/document.Object.number",
		old: `o.integer(key, least, most)`, new: `o.integer(key, least, most*1000)`,
		by: tests("agent/document", "TestFillTellsOfEverythingAtOnce"),
	},
	{
		name: "watch-sees-other-tenants", in: "agent/store.Store.WatchIntent",
		old: `tenant+"."+everySite+".>"`, new: `"*."+everySite+".>"`,
		by: tests("agent/store", "TestWatchIntent"),
	},
	{
		name: "object-that-can-be-used-again-is-not", in: "agent/controller.intent.set",
		old: `delete(i.unusable, seen.Object); err != nil`, new: `err != nil`,
		by: tests("agent/controller", "TestUnreadableCalendar|TestUnreadableHoldsTheRun"),
	},
	{
		name: "deleted-calendar-stays", in: "agent/controller.intent.set",
		old: `delete(i.calendars, seen.Name); seen.Calendar != nil`, new: `seen.Calendar != nil`,
		by: tests("agent/controller", "TestIntentFollowsEachChange"),
	},
}
