package main

// dnfFaults are faults in the strategy dnf.
var dnfFaults = []fault{
	{
		name: "dnf-both-versions-are-done", in: "agent/worker/strategy/dnf.database.missing",
		old: `c.From != "" && slices.Contains(d[c.Name], c.From)`, new: `c.From != "" && c.To == "" && slices.Contains(d[c.Name], c.From)`,
		by: tests("agent/worker/strategy/dnf", "TestMissing"),
	},
	{
		name: "dnf-is-done-by-its-exit-status", in: "agent/worker/strategy/dnf.steps.finish",
		old: `len(missing) > 0`, new: `len(missing) > 1<<20`,
		by: tests("agent/worker/strategy/dnf", "TestDoneIsNoExitStatus"),
	},
	{
		name: "dnf-cut-off-is-nothing-to-do", in: "agent/worker/strategy/dnf.resolvedByDNF4",
		old: `return r, errors.New("dnf ended before it told what it would do")`, new: `return r, nil`,
		by: tests("agent/worker/strategy/dnf", "TestNothingToDo"),
	},
	{
		name: "dnf5-cut-off-is-nothing-to-do", in: "agent/worker/strategy/dnf.resolvedByDNF5",
		old: `return r, errors.New("dnf5 ended before it told what it would do")`, new: `return r, nil`,
		by: tests("agent/worker/strategy/dnf", "TestNothingToDo"),
	},
	{
		name: "dnf5-killed-is-no-problem", in: "agent/worker/strategy/dnf.cutByDNF5",
		old: `strings.TrimSpace(value) != "Ok"`, new: `strings.TrimSpace(value) == "Error"`,
		by: tests("agent/worker/strategy/dnf", "TestCut"),
	},
	{
		name: "dnf5-is-told-the-words-of-dnf-4", in: "agent/worker/strategy/dnf.generation.spell",
		old: `if other {`, new: `if other && action == "Upgrade" {`,
		by: tests("agent/worker/strategy/dnf", "TestReplay"),
	},
	{
		name: "dnf-leaves-the-old-version", in: "agent/worker/strategy/dnf.replay",
		old: `slices.Contains(has, c.To) && left:`, new: `slices.Contains(has, c.To) && left && !again:`,
		by: tests("agent/worker/strategy/dnf", "TestReplay|TestDoneIsNoExitStatus"),
	},
}
