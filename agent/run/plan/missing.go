package plan

import (
	"fmt"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// need is a script that a run starts, and what for.
type need struct{ script, by string }

// Missing returns, in words, what a host lacks for a run by this plan, as its
// worker says; unknown when the worker does not say which scripts it has though
// the run starts some.
func (p Plan) Missing(host message.SelfReport) (missing []string, unknown bool) {
	return missingOf(p.needs(rollout.OnHost), host)
}

// MissingAtSite is Missing for the scripts that are run at the site.
func (p Plan) MissingAtSite(scripts []string) (missing []string, unknown bool) {
	return missingOf(p.needs(rollout.OnSite), message.SelfReport{Scripts: scripts})
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

// needs are the scripts that are run on each host, or at the site.
func (p Plan) needs(where string) []need {
	var needs []need
	checks := func(list []rollout.Check) {
		for _, c := range list {
			if c.Type == rollout.Exec {
				needs = append(needs, need{c.Script, "check " + c.Name})
			}
		}
	}
	hook := func(name string, h *rollout.Hook) {
		if h != nil && h.Type == rollout.Exec && (h.On == rollout.OnSite) == (where == rollout.OnSite) {
			needs = append(needs, need{h.Script, "hook " + name})
		}
	}
	if where == rollout.OnSite {
		checks(p.Rollout.Checks.Fleet)
	} else {
		checks(p.Rollout.Checks.BeforeHost)
		checks(p.Rollout.Checks.AfterHost)
	}
	hook("drain", p.Rollout.Hooks.Drain)
	hook("undrain", p.Rollout.Hooks.Undrain)
	return needs
}
