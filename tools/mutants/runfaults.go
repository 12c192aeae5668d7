package main

// runFaults are faults in what a run decides.
var runFaults = []fault{
	{
		name: "commands-say-nothing-of-checks", in: "agent/run.State.ChecksHosts",
		body: `return false`,
		by:   simulated(tests("agent/controller", "TestCommandsTellOfChecks")...),
	},
	{
		name: "busy-host-is-sent-upgrade", in: "agent/run.State.passOver",
		body: `return nil`,
		by:   []suite{scripts},
	},
	{
		name: "busy-host-is-admitted", in: "agent/run.member.isCandidate",
		old: ` && m.busy == nil`, new: ``,
		by: []suite{scripts},
	},
	{
		name: "slot-freed-while-unhealthy", in: "agent/message.Debt.Any",
		old: `return d != Debt{}`, new: `d.Checks = ""; return d != Debt{}`,
		by: simulated(scripts, invariants),
	},
	{
		name: "slot-freed-before-late-answer", in: "agent/run.State.noAnswer",
		old: `m.Owes.Answer = action`, new: `m.Owes.Answer = ""`,
		by: simulated(scripts, invariants),
	},
	{
		name: "slot-freed-before-undrain", in: "agent/message.Debt.Any",
		old: `return d != Debt{}`, new: `d.Undrain = false; return d != Debt{}`,
		by: []suite{scripts, invariants},
	},
	{
		name: "silent-host-has-no-slot", in: "agent/roster.Host.Out",
		old: `return h.Held() || h.IsSilent()`, new: `return h.Held()`,
		by: simulated(scripts, invariants),
	},
	{
		name: "one-slot-too-many", in: "agent/run.stage.roomFor",
		old: `return out+g.waiting < g.MaxUnavailable`, new: `return out+g.waiting <= g.MaxUnavailable`,
		by: simulated(scripts, invariants),
	},
	{
		name: "minute-after-not-after", in: "agent/run.Deadline.overAt",
		old: `return !now.Before(d.NotAfter)`, new: `return !now.Add(-time.Minute).Before(d.NotAfter)`,
		by: []suite{scripts, invariants},
	},
	{
		name: "abort-is-ignored", in: "agent/run.State.ending",
		old: `case s.aborted != nil:`, new: `case s.aborted != nil && s.Phase == Open:`,
		by: simulated(scripts, aborts),
	},
	{
		name: "reboot-after-abort", in: "agent/run.State.windDown",
		old: `silenced := s.aborted != nil || s.overAt(now)`, new: `silenced := s.overAt(now)`,
		by: simulated(scripts, aborts),
	},
	{
		name: "host-starts-before-all-are-prepared", in: "agent/run.State.blocker",
		old: `case s.counts.unprepared > 0:`, new: `case s.counts.unprepared == len(s.members):`,
		by: simulated(scripts, invariants),
	},
	{
		name: "one-prepared-too-few", in: "agent/run.State.enough",
		old: `n+s.counts.status[Skipped] < s.policy.MinPrepared`, new: `n+s.counts.status[Skipped]+1 < s.policy.MinPrepared`,
		by: []suite{scripts, invariants},
	},
	{
		name: "one-failure-too-many", in: "agent/run.failures.add",
		old: `f.count < f.most`, new: `f.count <= f.most`,
		by: simulated(scripts, invariants),
	},
	{
		name: "rollout-forgives-failures", in: "agent/run.State.resume",
		old: `if !message.GoesOn(e.By) {`, new: `if e.By != message.ByAgent {`,
		by: []suite{scripts},
	},
	{
		name: "damage-of-a-paused-rollout-is-not-told", in: "agent/run.Control.tellHold",
		old: `case hold == nil || hold.By != now.By ||`, new: `case hold == nil ||`,
		by: tests("agent/controller", "TestUnreadableRolloutIsTold"),
	},
	{
		name: "late-failure-stops-the-run", in: "agent/run.State.stop",
		old: `if !s.overAt(at) {`, new: `if true {`,
		by: []suite{scripts},
	},
	{
		name: "stopped-run-is-timed-out", in: "agent/run.State.ending",
		old: `case s.failures.halt != "":`, new: `case s.failures.halt != "" && !s.overAt(now):`,
		by: []suite{scripts},
	},
	{
		name: "failed-host-is-not-undrained", in: "agent/run.member.ends",
		old: `if m.Owes.Undrain && m.step != undraining {`, new: `if m.Owes.Undrain && m.step == draining {`,
		by: []suite{scripts},
	},
	{
		name: "upgraded-host-is-not-undrained", in: "agent/run.State.isWell",
		old: `if m.Owes.Undrain {`, new: `if m.Owes.Undrain && len(s.policy.Checks.AfterHost) > 0 {`,
		by: simulated(scripts, invariants),
	},
	{
		name: "pause-is-ignored", in: "agent/run.State.blocker",
		old: `case s.Paused != nil:`, new: `case s.Paused != nil && s.counts.unstarted == len(s.members):`,
		by: []suite{scripts, invariants},
	},
	{
		name: "approval-is-ignored", in: "agent/run.stage.approved",
		body: `return true`,
		by:   []suite{scripts, invariants},
	},
	{
		name: "soak-is-ignored", in: "agent/run.stages.soaking",
		body: `return false`,
		by:   []suite{scripts},
	},
	{
		name: "checks-of-fleet-are-ignored", in: "agent/run.State.begin",
		old: `s.fleetTask(now); wanted {`, new: `s.fleetTask(now); wanted && s.Count(Upgraded) > 0 {`,
		by: simulated(scripts),
	},
	{
		name: "checks-before-host-are-ignored", in: "agent/run.State.unchecked",
		old: `return len(s.policy.Checks.BeforeHost) > 0 &&`, new: `return len(s.policy.Checks.BeforeHost) > 1 &&`,
		by: simulated(scripts),
	},
	{
		name: "checks-before-host-never-go-stale", in: "agent/run.State.unchecked",
		old: `(m.step != ready || !s.policy.stillCounts(m.passedAt, now))`, new: `m.step != ready`,
		by: []suite{scripts, invariants},
	},
	{
		name: "checks-before-host-outlast-a-pause", in: "agent/run.State.resume",
		old: `s.members[t.host].passedAt = time.Time{}`, new: `_ = t`,
		by: []suite{scripts, invariants},
	},
	{
		name: "checks-of-fleet-never-go-stale", in: "agent/run.State.fleetTask",
		old: `s.policy.stillCounts(passed, now) && !passed.Before`, new: `!passed.IsZero() && !passed.Before`,
		by: []suite{scripts},
	},
	{
		name: "checks-after-host-are-ignored", in: "agent/run.State.isUpgraded",
		old: `if s.policy.checksHosts() {`, new: `if s.policy.checksHosts() && len(s.policy.Checks.AfterHost) > 1 {`,
		by: []suite{scripts, invariants},
	},
	{
		name: "drain-is-not-waited-for", in: "agent/run.State.slot",
		old: `if s.policy.Hooks.Drain == nil {`, new: `if s.policy.Hooks.Undrain != nil {`,
		by: simulated(scripts),
	},
	{
		name: "host-of-later-stage-starts", in: "agent/run.stages.advance",
		old: `for s.current().left == 0 {`, new: `for s.current().left <= 1 {`,
		by: []suite{scripts, invariants},
	},
	{
		name: "host-starts-that-will-be-late", in: "agent/run.Deadline.fits",
		old: `return !now.Add(took).After(d.NotAfter)`, new: `return !now.After(d.NotAfter)`,
		by: []suite{scripts},
	},
	{
		name: "forecast-of-a-slot-that-nobody-frees", in: "agent/run.forecaster.step",
		old: `p.f.Waits = w.Detail`, new: `_ = w`,
		by: []suite{scripts},
	},
	{
		name: "forecast-of-a-silent-host", in: "agent/run.forecaster.resume",
		old: `m.final == "" && m.underWay()`, new: `m.final == "" && m.step >= idle`,
		by: []suite{scripts, invariants},
	},
	{
		name: "forecast-without-splay", in: "agent/run.forecaster.step",
		old: `if p.run.blocker(p.now) == nothing {`, new: `if b := p.run.blocker(p.now); b == nothing || b == splay {`,
		by: []suite{scripts},
	},
	{
		name: "forecast-without-soak", in: "agent/run.stages.clone",
		old: `c.list = slices.Clone(s.list)`, new: `c.list = slices.Clone(s.list); for n := range c.list { c.list[n].Soak = "" }`,
		by: []suite{scripts},
	},
	{
		name: "reboot-of-an-exempt-host", in: "agent/run.State.needsReboot",
		old: `if !skip {`, new: `if !skip || reason != "" {`,
		by: simulated(scripts),
	},
	{
		name: "duplicate-reply-counts", in: "agent/run.State.foldReply",
		old: `asked == "" || asked != r.Action {`, new: `asked != "" && asked != r.Action {`,
		by: []suite{scripts, invariants},
	},
	{
		name: "reply-of-another-run-counts", in: "agent/run.State.foldReply",
		old: `if r.Run != s.ID {`, new: `if r.Run > s.ID {`,
		by: []suite{scripts},
	},
	{
		name: "past-unknown-is-a-plain-failure", in: "agent/run.State.foldReply",
		old: `case reply.Unknown:`, new: `case reply.Unknown && r.Action == message.Prepare:`,
		by: simulated(scripts, invariants),
	},
	{
		name: "freeze-of-a-run-is-ignored", in: "agent/run.Deadline.freeze",
		old: `d.NotAfter, d.frozen, d.endsBy = begins, name,`, new: `d.frozen, d.endsBy = name,`,
		by: []suite{scripts},
	},
	{
		name: "overrun-limit-is-ignored", in: "agent/run.State.windDown",
		old: `if s.atOnce || !now.Before(s.endsBy) {`, new: `if s.atOnce {`,
		by: []suite{scripts, invariants},
	},
	{
		name: "unanswering-host-is-awaited", in: "agent/run.member.isAwaited",
		old: `m.step <= preparing && !m.owesBefore()`, new: `m.step <= preparing`,
		by: []suite{scripts, invariants},
	},
	{
		name: "abort-at-once-waits", in: "agent/run.State.windDown",
		old: `if s.atOnce || !now.Before(s.endsBy) {`, new: `if !now.Before(s.endsBy) {`,
		by: []suite{scripts, invariants},
	},
	{
		name: "clock-set-back-is-ignored", in: "agent/run.State.follow",
		old: `if now.Before(s.newest) {`, new: `if now.Before(s.OpenedAt) && s.Over() {`,
		by: []suite{scripts},
	},
}
