package plan

import (
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
				needs = addScript(needs, c, message.Start, g.Checks[i])
			}
		}
	}
	return needs
}

// addScript adds the script of a check, if it has one.
func addScript(needs []need, c rollout.Check, of message.TaskKind, at int) []need {
	if c.Type != rollout.Exec {
		return needs
	}
	return append(needs, need{c.Script, "check " + c.Name, fmt.Sprintf("%s[%d].script", of.Member(), at)})
}

// needsOfDeclared is needsOfStart for a rollout as it is declared, on any host or at the site.
func needsOfDeclared(checks []rollout.StartCheck, where string) (needs []need) {
	for i, c := range checks {
		if (c.Match == nil) == (where == rollout.OnSite) {
			needs = addScript(needs, c.Check, message.Start, i)
		}
	}
	return needs
}

// needsOf are the scripts that a rollout with all its parts has run on each host, or at the
// site.
func needsOf(r rollout.Rollout, where string) (needs []need) {
	for _, kind := range message.TaskKinds() {
		t := kind.Of(&r)
		if t.OnSite() != (where == rollout.OnSite) {
			continue
		}
		for i, c := range t.Checks {
			needs = addScript(needs, c, kind, i)
		}
		if h := t.Hook; h != nil && h.Type == rollout.Exec {
			needs = append(needs, need{h.Script, "hook " + string(kind), kind.Member() + ".script"})
		}
	}
	return needs
}

// needsOfSteps are the scripts that the steps among stages have run at the site, or on a host that
// each chooses.
func needsOfSteps(stages []rollout.Stage, where string) (needs []need) {
	for n, s := range stages {
		for _, kind := range message.TaskKinds() {
			if s.Step == nil || !kind.OfStage() {
				continue
			}
			if h := kind.HookOf(s.Step); h != nil && h.Type == rollout.Exec && (h.On == rollout.OnSite) == (where == rollout.OnSite) {
				needs = append(needs, need{h.Script, fmt.Sprintf("%s of stage %s", kind, s.Name), fmt.Sprintf("stages[%d].%s.script", n, kind.Member())})
			}
		}
	}
	return needs
}
