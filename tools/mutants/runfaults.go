package main

// runFaults are faults in what a run decides.
var runFaults = []fault{
	{
		name: "slot-freed-while-unwell", file: "agent/run/fold.go",
		old: `m.unknown || m.undrain || m.unwell != ""`, new: `m.unknown || m.undrain`,
		by: simulated(scripts, invariants),
	},
	{
		name: "slot-freed-before-late-answer", file: "agent/run/fold.go",
		old: `return m.late != "" || m.stranded`, new: `return m.stranded`,
		by: simulated(scripts, invariants),
	},
	{
		name: "slot-freed-before-undrain", file: "agent/run/fold.go",
		old: `m.unknown || m.undrain || m.unwell != ""`, new: `m.unknown || m.unwell != ""`,
		by: []suite{scripts, invariants},
	},
	{
		name: "silent-host-has-no-slot", file: "agent/run/member.go",
		old: `return m.slot || m.silent`, new: `return m.slot`,
		by: simulated(scripts, invariants),
	},
	{
		name: "one-slot-too-many", file: "agent/run/obstacle.go",
		old: `return g.out+g.waiting < g.MaxUnavailable`, new: `return g.out+g.waiting <= g.MaxUnavailable`,
		by: simulated(scripts, invariants),
	},
	{
		name: "minute-after-not-after", file: "agent/run/giveup.go",
		old: `return !now.Before(s.NotAfter)`, new: `return !now.Add(-time.Minute).Before(s.NotAfter)`,
		by: []suite{scripts, invariants},
	},
	{
		name: "abort-is-ignored", file: "agent/run/ending.go",
		old: `case s.aborted != nil:`, new: `case s.aborted != nil && s.Phase == Open:`,
		by: simulated(scripts, invariants),
	},
	{
		name: "reboot-after-abort", file: "agent/run/ending.go",
		old: `silenced := s.aborted != nil || s.overAt(now)`, new: `silenced := s.overAt(now)`,
		by: simulated(scripts),
	},
	{
		name: "host-starts-before-all-are-prepared", file: "agent/run/obstacle.go",
		old: `case s.unprepared > 0:`, new: `case s.unprepared == len(s.members):`,
		by: simulated(scripts, invariants),
	},
	{
		name: "one-prepared-too-few", file: "agent/run/ending.go",
		old: `n+s.counts[Skipped] < s.policy.MinPrepared`, new: `n+s.counts[Skipped]+1 < s.policy.MinPrepared`,
		by: []suite{scripts, invariants},
	},
	{
		name: "one-failure-too-many", file: "agent/run/fold.go",
		old: `s.failures-s.forgiven < s.policy.MaxFailures`, new: `s.failures-s.forgiven <= s.policy.MaxFailures`,
		by: simulated(scripts, invariants),
	},
	{
		name: "rollout-forgives-failures", file: "agent/run/fact.go",
		old: `if !message.GoesOn(e.By) {`, new: `if e.By != message.ByAgent {`,
		by: []suite{scripts},
	},
	{
		name: "damage-of-a-paused-rollout-is-not-told", file: "agent/controller/rollout.go",
		old: `case hold == nil || hold.By != now.By ||`, new: `case hold == nil ||`,
		by: tests("agent/controller", "TestUnreadableRolloutIsTold"),
	},
	{
		name: "late-failure-stops-the-run", file: "agent/run/ending.go",
		old: `s.halt == "" && !s.overAt(at)`, new: `s.halt == ""`,
		by: []suite{scripts},
	},
	{
		name: "stopped-run-is-timed-out", file: "agent/run/ending.go",
		old: `case s.halt != "":`, new: `case s.halt != "" && !s.overAt(now):`,
		by: []suite{scripts},
	},
	{
		name: "failed-host-is-not-undrained", file: "agent/run/fold.go",
		old: `case m.undrain && m.step != undraining:`, new: `case m.undrain && m.step == draining:`,
		by: []suite{scripts},
	},
	{
		name: "upgraded-host-is-not-undrained", file: "agent/run/fold.go",
		old: `	if m.undrain {`, new: `	if m.undrain && len(s.policy.Checks.AfterHost) > 0 {`,
		by: simulated(scripts, invariants),
	},
	{
		name: "pause-is-ignored", file: "agent/run/obstacle.go",
		old: `case s.Paused != nil:`, new: `case s.Paused != nil && s.unstarted == len(s.members):`,
		by: []suite{scripts, invariants},
	},
	{
		name: "approval-is-ignored", file: "agent/run/stage.go",
		old: `return !g.Approval || !g.approvedAt.IsZero()`, new: `return true`,
		by: []suite{scripts, invariants},
	},
	{
		name: "soak-is-ignored", file: "agent/run/stage.go",
		old: `return s.stages[s.current].left > 0 && now.Before(s.soakEnds)`, new: `return false`,
		by: []suite{scripts},
	},
	{
		name: "checks-of-fleet-are-ignored", file: "agent/run/next.go",
		old: `s.fleetTask(now); wanted {`, new: `s.fleetTask(now); wanted && s.counts[Upgraded] > 0 {`,
		by: simulated(scripts),
	},
	{
		name: "checks-before-host-are-ignored", file: "agent/run/next.go",
		old: `return len(s.policy.Checks.BeforeHost) > 0 &&`, new: `return len(s.policy.Checks.BeforeHost) > 1 &&`,
		by: simulated(scripts),
	},
	{
		name: "checks-before-host-never-go-stale", file: "agent/run/next.go",
		old: `(m.step != ready || !s.stillCounts(m.passedAt, now))`, new: `m.step != ready`,
		by: []suite{scripts, invariants},
	},
	{
		name: "checks-before-host-outlast-a-pause", file: "agent/run/fact.go",
		old: `s.members[t.host].passedAt = time.Time{}`, new: `_ = t`,
		by: []suite{scripts, invariants},
	},
	{
		name: "checks-of-fleet-never-go-stale", file: "agent/run/task.go",
		old: `s.stillCounts(passed, now) && !passed.Before`, new: `!passed.IsZero() && !passed.Before`,
		by: []suite{scripts},
	},
	{
		name: "checks-after-host-are-ignored", file: "agent/run/fold.go",
		old: `if len(s.policy.Checks.AfterHost) > 0 {`, new: `if len(s.policy.Checks.AfterHost) > 1 {`,
		by: []suite{scripts, invariants},
	},
	{
		name: "drain-is-not-waited-for", file: "agent/run/fact.go",
		old: `if s.policy.Hooks.Drain == nil {`, new: `if s.policy.Hooks.Undrain != nil {`,
		by: simulated(scripts),
	},
	{
		name: "host-of-later-stage-starts", file: "agent/run/stage.go",
		old: `for s.stages[s.current].left == 0 {`, new: `for s.stages[s.current].left <= 1 {`,
		by: []suite{scripts, invariants},
	},
	{
		name: "host-starts-that-will-be-late", file: "agent/run/forecast.go",
		old: `return !now.Add(s.typical()).After(s.NotAfter)`, new: `return !now.After(s.NotAfter)`,
		by: []suite{scripts},
	},
	{
		name: "forecast-of-a-slot-that-nobody-frees", file: "agent/run/prospect.go",
		old: `p.queue(c, c.free, g.MaxUnavailable-c.lost,`, new: `p.queue(c, c.free, max(1, g.MaxUnavailable-c.lost),`,
		by: []suite{scripts},
	},
	{
		name: "forecast-of-a-silent-host", file: "agent/run/prospect.go",
		old: `case m.final == "" && (m.silent || m.unknown):`, new: `case m.final == "" && m.unknown:`,
		by: []suite{scripts, invariants},
	},
	{
		name: "forecast-without-splay", file: "agent/run/prospect.go",
		old: `l.take(p.splays(m, splayed), p.took)`, new: `l.take(splayed, p.took)`,
		by: []suite{scripts},
	},
	{
		name: "forecast-without-soak", file: "agent/run/forecast.go",
		old: `p.last.Add(time.Duration(g.Soak))`, new: `p.last`,
		by: []suite{scripts},
	},
	{
		name: "reboot-of-an-exempt-host", file: "agent/run/fold.go",
		old: `if !skip {`, new: `if !skip || reason != "" {`,
		by: simulated(scripts),
	},
	{
		name: "duplicate-reply-counts", file: "agent/run/fold.go",
		old: `asked == "" || asked != r.Action {`, new: `asked != "" && asked != r.Action {`,
		by: []suite{scripts, invariants},
	},
	{
		name: "reply-of-another-run-counts", file: "agent/run/fold.go",
		old: `	if r.Run != s.ID {
		return fmt.Errorf("reply of`,
		new: `	if r.Run > s.ID {
		return fmt.Errorf("reply of`,
		by: []suite{scripts},
	},
	{
		name: "past-unknown-is-a-plain-failure", file: "agent/run/fold.go",
		old: `case r.Action != message.Prepare && pastUnknown(result):`, new: `case r.Action == message.Prepare && pastUnknown(result):`,
		by: simulated(scripts, invariants),
	},
	{
		name: "freeze-of-a-run-is-ignored", file: "agent/run/fact.go",
		old: `s.NotAfter, s.frozen, s.changed = *e.NotAfter, e.Reason, r.Time`, new: `s.frozen, s.changed = e.Reason, r.Time`,
		by: []suite{scripts},
	},
	{
		name: "clock-set-back-is-ignored", file: "agent/run/setback.go",
		old: `if now.Before(s.newest) {`, new: `if now.Before(s.OpenedAt) && s.Over() {`,
		by: []suite{scripts},
	},
}
