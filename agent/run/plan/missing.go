package plan

import (
	"fmt"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// need is a script that a run starts, what for, and which member of the rollout names it.
type need struct{ script, by, field string }

// Needs are the scripts that a run starts on its hosts and at the site.
type Needs struct {
	// start are those of the start checks, by host; the site has no name.
	start          map[string][]need
	onHost, atSite []need
}

// Needs returns the scripts that a run by this plan starts.
func (p Plan) Needs() Needs {
	steps := make([]rollout.Stage, len(p.Rollout.Stages))
	for i, s := range p.Rollout.Stages {
		steps[i] = s.Stage
	}
	n := Needs{
		start: map[string][]need{}, onHost: needsOf(p.Rollout.Rollout, rollout.OnHost),
		atSite: append(needsOf(p.Rollout.Rollout, rollout.OnSite), needsOfSteps(steps, rollout.OnSite)...),
	}
	for _, asked := range p.Rollout.StartPlaces() {
		for i, c := range asked.Checks {
			n.start[asked.Host] = addScript(n.start[asked.Host], c, message.Start, asked.At[i])
		}
	}
	return n
}

// Missing returns, in words, what a host lacks for the run, as its worker says; unknown when the
// worker does not say which scripts it has though the run starts some.
func (n Needs) Missing(name string, host message.SelfReport) (missing []string, unknown bool) {
	return missingOf(slices.Concat(n.start[name], n.onHost), host)
}

// MissingAtSite is Missing for the scripts that are run at the site.
func (n Needs) MissingAtSite(scripts []string) (missing []string, unknown bool) {
	return missingOf(slices.Concat(n.start[""], n.atSite), message.SelfReport{Scripts: scripts})
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

// addScript adds the script of a check, if it has one.
func addScript(needs []need, c rollout.Check, of message.TaskKind, at int) []need {
	if c.Type != rollout.Exec {
		return needs
	}
	return append(needs, need{c.Script, "check " + c.Name, fmt.Sprintf("%s[%d].script", of.Member(), at)})
}

// needsOfDeclared are the scripts that start checks start on any host, or at the site.
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
