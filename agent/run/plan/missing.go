package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// need is a script that a run starts, what for, and which member of the rollout names it.
type need struct{ script, by, field string }

// Missing returns, in words, what a host lacks for a run by this plan, as its
// worker says; unknown when the worker does not say which scripts it has though
// the run starts some.
func (p Plan) Missing(name string, host message.SelfReport) (missing []string, unknown bool) {
	return missingOf(append(p.needsOfStart(name), needsOf(p.Rollout.Rollout, rollout.OnHost)...), host)
}

// MissingAtSite is Missing for the scripts that are run at the site.
func (p Plan) MissingAtSite(scripts []string) (missing []string, unknown bool) {
	steps := make([]rollout.Stage, len(p.Rollout.Stages))
	for i, s := range p.Rollout.Stages {
		steps[i] = s.Stage
	}
	needs := append(append(p.needsOfStart(""), needsOf(p.Rollout.Rollout, rollout.OnSite)...), needsOfSteps(steps, rollout.OnSite)...)
	return missingOf(needs, message.SelfReport{Scripts: scripts})
}

func missingOf(needs []need, has message.SelfReport) (missing []string, unknown bool) {
	missing = slices.Clone(has.Lacks)
	for _, n := range needs {
		if has.Scripts != nil && !slices.Contains(has.Scripts, n.script) {
			missing = append(missing, fmt.Sprintf("script %s of %s is not in the folder of --checks, or cannot be run", n.script, n.by))
		}
	}
	return missing, has.Scripts == nil && len(needs) > 0
}

// needsOfStart are the scripts that the checks before the run start on a host, or at the site if it
// has no name.
func (p Plan) needsOfStart(host string) (needs []need) {
	for _, g := range p.Rollout.Start {
		if slices.Contains(g.Hosts, host) || host == "" && len(g.Hosts) == 0 {
			for i, c := range p.Rollout.StartChecks(g) {
				needs = addScript(needs, c, "start", g.Checks[i])
			}
		}
	}
	return needs
}

// addScript adds the script of a check, if it has one.
func addScript(needs []need, c rollout.Check, member string, at int) []need {
	if c.Type != rollout.Exec {
		return needs
	}
	return append(needs, need{c.Script, "check " + c.Name, fmt.Sprintf("checks.%s[%d].script", member, at)})
}

// needsOfDeclared is needsOfStart for a rollout as it is declared, on any host or at the site.
func needsOfDeclared(checks []rollout.StartCheck, where string) (needs []need) {
	for i, c := range checks {
		if (c.Match == nil) == (where == rollout.OnSite) {
			needs = addScript(needs, c.Check, "start", i)
		}
	}
	return needs
}

// needsOf are the scripts that a rollout with all its parts has run on each host, or at the
// site.
func needsOf(r rollout.Rollout, where string) []need {
	var needs []need
	checks := func(member string, list []rollout.Check) {
		for i, c := range list {
			needs = addScript(needs, c, member, i)
		}
	}
	hook := func(name string, h *rollout.Hook) {
		if h != nil && h.Type == rollout.Exec && (h.On == rollout.OnSite) == (where == rollout.OnSite) {
			needs = append(needs, need{h.Script, "hook " + name, "hooks." + name + ".script"})
		}
	}
	if where == rollout.OnSite {
		checks("fleet", r.Checks.Fleet)
	} else {
		checks("before-host", r.Checks.BeforeHost)
		checks("after-host", r.Checks.AfterHost)
	}
	hook("drain", r.Hooks.Drain)
	hook("undrain", r.Hooks.Undrain)
	return needs
}

// needsOfSteps are the scripts that the steps among stages have run at the site, or on a host that
// each chooses.
func needsOfSteps(stages []rollout.Stage, where string) (needs []need) {
	for n, s := range stages {
		if s.Step == nil {
			continue
		}
		for name, h := range map[string]*rollout.Hook{"do": s.Step.Do, "undo": s.Step.Undo} {
			if h != nil && h.Type == rollout.Exec && (h.On == rollout.OnSite) == (where == rollout.OnSite) {
				needs = append(needs, need{h.Script, name + " of stage " + s.Name, fmt.Sprintf("stages[%d].step.%s.script", n, name)})
			}
		}
	}
	slices.SortFunc(needs, func(a, b need) int { return cmp.Compare(a.field, b.field) })
	return needs
}
