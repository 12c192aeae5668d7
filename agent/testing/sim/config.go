package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/oracle"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// drawRollout makes a random rollout, of everything that a rollout may have.
func (w *World) drawRollout(purpose string) *v1.Rollout {
	d := w.rng
	yes := func(what string, p float64) bool { return d.chance(purpose+" "+what, p) }
	text := func(what string, of ...string) string { return one(d, purpose+" "+what, of...) }
	span := func(what string, of ...rollout.Span) rollout.Span { return one(d, purpose+" "+what, of...) }
	count := func(what string, of ...rollout.Count) rollout.Count { return one(d, purpose+" "+what, of...) }
	if yes("none", 0.1) {
		return nil
	}
	r := &v1.Rollout{
		Stages:          w.drawStages(purpose),
		MaxFailures:     count("max-failures", "", "1", "2", "50%", "100%"),
		OnFailure:       text("on-failure", "", "stop", "pause", "continue", "continue"),
		Absent:          text("absent", "", "skip", "count"),
		MinPrepared:     count("min-prepared", "", "0%", "1", "50%", "100%"),
		PreparePatience: span("prepare-patience", "", "0s", "20s", "1m"),
		Overrun:         text("overrun", "", "finish-host", "stop"),
		OverrunLimit:    span("overrun-limit", "", "0s", "30s", "3m"),
		Reserve:         span("reserve", "", "0s", "1m"),
		RetryAfter:      span("retry-after", "", "1m", "2m"),
		Splay:           span("splay", "", "0s", "30s", "3m"),
		Paused:          yes("paused", 0.05),
		FleetLock:       w.fleetLock,
		Timeouts: &v1.CommandTimeouts{
			Prepare: span("timeout of prepare", "1m", "3m"), Upgrade: span("timeout of upgrade", "1m", "4m", "8m"),
			Reboot: span("timeout of reboot", "1m", "3m", "6m"),
		},
	}
	if yes("exempt", 0.1) {
		r.Exempt = &v1.Match{Labels: map[string]string{"ring": "1"}}
	}
	if yes("exempt-reboot", 0.15) {
		r.ExemptReboot = &v1.Match{Roles: []string{"db"}}
	}
	r.Checks = &v1.RolloutChecks{
		Start:      w.drawStartChecks(purpose),
		BeforeHost: w.drawChecks(purpose+" before", 0.4), AfterHost: w.drawChecks(purpose+" after", 0.4), Fleet: w.drawChecks(purpose+" fleet", 0.3),
	}
	r.Hooks = &v1.RolloutHooks{Drain: w.drawHook(purpose+" drain", 0.4), Undrain: w.drawHook(purpose+" undrain", 0.4)}
	if problems := r.Validate(); len(problems) > 0 {
		w.violated("the simulation itself made an invalid rollout: %v", problems)
	}
	return r
}

// budgetNames are those that disruption budgets have.
var budgetNames = []string{"fleet", "rings"}

// drawBudget makes a random disruption budget; nil is none.
func (w *World) drawBudget(purpose string) *v1.Budget {
	d := w.rng
	if d.chance(purpose+" none", 0.3) {
		return nil
	}
	b := &v1.Budget{Per: one(d, purpose+" per", "", "ring", "ring", "rack")}
	if d.chance(purpose+" match", 0.2) {
		b.Match = &v1.Match{Roles: []string{"web"}}
	}
	if d.chance(purpose+" min-available", 0.3) {
		b.MinAvailable = one[rollout.Count](d, purpose+" min", "1", "50%", "2", "100%")
	} else {
		b.MaxUnavailable = one[rollout.Count](d, purpose+" max", "1", "1", "2", "50%")
	}
	if problems := b.Validate(); len(problems) > 0 {
		w.violated("the simulation itself made an invalid budget: %v", problems)
	}
	return b
}

// drawStages draws the stages of a rollout. Half of them have steps.
func (w *World) drawStages(purpose string) []v1.Stage {
	d := w.rng
	steps := d.chance(purpose+" steps", 0.5)
	matches := []*v1.Match{{Hosts: []string{"h01"}}, {Labels: map[string]string{"ring": "0"}}, {Roles: []string{"web"}}, {Applications: []string{application}}}
	var stages []v1.Stage
	if steps && d.chance(purpose+" first is a step", 0.6) {
		stages = append(stages, v1.Stage{Name: "first", Step: w.drawStep(purpose, "FIRST", matches[d.n(purpose+" match", len(matches))])})
	}
	for n := range d.n(purpose+" stages", 4) {
		s := v1.Stage{
			Name: fmt.Sprintf("s%d", n), Match: matches[d.n(purpose+" match", len(matches))],
			MaxUnavailable: one[rollout.Count](d, purpose+" max-unavailable", "", "1", "1", "2", "50%", "100%"),
			Soak:           one[rollout.Span](d, purpose+" soak", "", "", "20s", "2m"),
		}
		if d.chance(purpose+" approval", 0.2) {
			s.Approval, s.ApprovalTimeout = true, one[rollout.Span](d, purpose+" approval-timeout", "1m", "10m", "1d")
		}
		if steps && d.chance(purpose+" is a step", 0.5) {
			s.Match, s.MaxUnavailable, s.Step = nil, "", w.drawStep(purpose, strings.ToUpper(s.Name), s.Match)
		}
		stages = append(stages, s)
	}
	all := !slices.ContainsFunc(stages, func(s v1.Stage) bool { return s.Step == nil })
	if steps && len(stages) == 0 || len(stages) > 0 && (all || d.chance(purpose+" rest", 0.8)) {
		stages = append(stages, v1.Stage{Name: "rest", MaxUnavailable: one[rollout.Count](d, purpose+" max-unavailable", "", "1", "2", "50%")})
		if steps && (all || d.chance(purpose+" last is a step", 0.5)) {
			stages = append(stages, v1.Stage{Name: "last", Step: w.drawStep(purpose, "LAST", &v1.Match{Applications: []string{application}})})
		}
	}
	if len(stages) > 0 && d.chance(purpose+" point of no return", 0.3) {
		stages[d.n(purpose+" which point of no return", len(stages))].PointOfNoReturn = true
	}
	return stages
}

// undoScript is the script that undoes a step.
const undoScript = "undo"

// drawStep draws a step, at the site or on one of the hosts that a match selects. Its outputs bear a name.
func (w *World) drawStep(purpose, output string, match *v1.Match) *v1.Step {
	d := w.rng
	retries := d.n(purpose+" retries of the step", 2)
	s := &v1.Step{Do: &v1.Hook{
		Type: "exec", Script: "step", On: one(d, purpose+" step on", "site", "host"),
		Timeout: one[rollout.Span](d, purpose+" timeout of the step", "10s", "30s", "2m"), Retries: &retries, RetryInterval: "5s",
	}}
	if d.chance(purpose+" gives", 0.5) {
		s.Gives = one(d, purpose+" outputs", []string{output}, []string{output, output + "_KEY"})
	}
	if d.chance(purpose+" undo", 0.5) {
		s.Undo = &v1.Hook{Type: "exec", Script: undoScript, On: s.Do.On, Timeout: "10s"}
	}
	if s.Do.On == "host" {
		s.Match = match
	}
	return s
}

func (w *World) drawChecks(purpose string, p float64) []v1.Check {
	if !w.rng.chance(purpose, p) {
		return nil
	}
	checks := []v1.Check{{Type: "exec", Script: "ready", Timeout: one[rollout.Span](w.rng, purpose+" timeout", "10s", "30s", "1m")}}
	if w.rng.chance(purpose+" two", 0.3) {
		checks = append(checks, v1.Check{Type: "tcp", Address: "127.0.0.1:80", Timeout: "10s"})
	}
	return checks
}

// drawStartChecks draws checks before a run prepares any host, at the site or on the hosts that each
// matches.
func (w *World) drawStartChecks(purpose string) (checks []v1.StartCheck) {
	d := w.rng
	matches := []*v1.Match{nil, nil, {Hosts: []string{"h01"}}, {Roles: []string{"web"}}, {Applications: []string{application}}}
	if !d.chance(purpose+" start", 0.25) {
		return nil
	}
	for n := range 1 + d.n(purpose+" start checks", 2) {
		checks = append(checks, v1.StartCheck{
			Check: v1.Check{Type: "exec", Name: fmt.Sprintf("start%d", n), Script: "well", Timeout: one[rollout.Span](d, purpose+" timeout of a start check", "10s", "1m")},
			Match: matches[d.n(purpose+" match of a start check", len(matches))],
		})
	}
	return checks
}

func (w *World) drawHook(purpose string, p float64) *v1.Hook {
	if !w.rng.chance(purpose, p) {
		return nil
	}
	retries := w.rng.n(purpose+" retries", 2)
	return &v1.Hook{
		Type: "exec", Script: "balancer", On: one(w.rng, purpose+" on", "", "host", "site"),
		Timeout: one[rollout.Span](w.rng, purpose+" timeout", "10s", "30s"), Retries: &retries, RetryInterval: "5s",
	}
}

// stop is the calendar of freezes.
const stop = "stop"

// freeze writes a freeze that begins soon, or has begun, in place of an earlier one.
func (w *World) freeze() {
	now := time.Now().UTC()
	start := now.Add(w.rng.span("freeze start", -3*time.Minute, 8*time.Minute)).Truncate(time.Minute)
	lasts := w.rng.span("freeze lasts", time.Minute, 8*time.Minute).Truncate(time.Minute)
	w.mu.Lock()
	w.oracle.Freeze(now, start, start.Add(lasts))
	w.mu.Unlock()
	w.note("a freeze is written, from %s on for %s", start, lasts)
	w.setCalendar(stop, &v1.Calendar{Kind: "freeze", Events: []v1.Event{{
		Start: start.Format("2006-01-02T15:04"), Duration: fmt.Sprintf("%dm", int(lasts.Minutes())), Timezone: "UTC",
	}}})
}

// frozen is the freeze of a calendar that freeze has written; zero for no calendar.
func (w *World) frozen(c *v1.Calendar) oracle.Frozen {
	if c == nil {
		return oracle.Frozen{}
	}
	event := c.Events[0]
	start, err := time.Parse("2006-01-02T15:04", event.Start)
	w.must(err)
	lasts, err := time.ParseDuration(event.Duration)
	w.must(err)
	return oracle.Frozen{Start: start, End: start.Add(lasts)}
}

// thaw removes the freeze.
func (w *World) thaw() {
	w.mu.Lock()
	w.oracle.Thaw(time.Now())
	w.mu.Unlock()
	w.note("the freeze is removed")
	w.setCalendar(stop, nil)
}

// drawConfig makes a random configuration: a few windows within the fault phase, most of
// them short enough that the next one opens, and is judged, before the phase ends.
func (w *World) drawConfig() *v1.OSUpgrade {
	c := &v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: application}}, MaintenanceWindows: []v1.MaintenanceWindow{}}
	start := time.Duration(0)
	for range 1 + w.rng.n("windows", 3) {
		start += w.rng.span("window start", 0, 8*time.Minute).Truncate(time.Minute)
		c.MaintenanceWindows = append(c.MaintenanceWindows, v1.MaintenanceWindow{
			DaysOfWeek: "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday",
			StartTime:  fmt.Sprintf("%02d:%02d", int(start.Hours()), int(start.Minutes())%60),
			Timezone:   "UTC", Duration: one(w.rng, "window duration", "2m", "3m", "5m", "10m", "30m"),
		})
		start += 4 * time.Minute
	}
	c.Target = w.drawOfEnvironment("configuration", 0.5)
	return c
}
