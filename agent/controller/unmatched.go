package controller

import (
	"context"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/plan"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Unmatched returns what of an intent matches no known host. It is found outside of the
// loop, which has runs to drive.
func (c *Controller) Unmatched(ctx context.Context, i plan.Intent) ([]v1.IntentWarning, error) {
	known, err := ask(ctx, c, func(s *state) plan.Known {
		known := s.knownHosts()
		known.InForce = &plan.Intent{Rollout: s.intent.rollout, Budgets: s.intent.budgets}
		if len(i.Environments) > 0 {
			known.InForce.Environments = s.besides(i.Environments)
			s.placed(&known)
		}
		return known
	})
	return c.unmatched(facing{i, known}), err
}

// besides returns what is in force of the environments that matter to some that are to be declared: those
// that they come after, and those that match or have their hosts, too. A tenant may have a thousand.
func (s *state) besides(next map[string]v1.Environment) map[string]v1.Environment {
	found := map[string]v1.Environment{}
	add := func(names ...string) {
		for _, name := range names {
			if d := s.intent.environments[name]; d != nil {
				found[name] = d.Environment
			}
		}
	}
	fits := map[string]func(plan.Host) bool{}
	for name, e := range next {
		fits[name] = plan.Fits(e.Match)
		if e.After != nil {
			add(e.After.Environments...)
		}
	}
	m := s.intent.sorting()
	for _, h := range s.hosts.known {
		for name, fits := range fits {
			if m != nil && (h.Assigned == name || fits(h.inPlan())) {
				add(append(m.Matching(h.inPlan()), h.Environment, h.Assigned)...)
				break
			}
		}
	}
	return found
}

func (c *Controller) unmatched(f facing) []v1.IntentWarning {
	if f.intent.HasScripts() && c.o.SiteScripts != nil {
		f.known.AtSite = c.o.SiteScripts()
	}
	return plan.Unmatched(f.intent, f.known)
}

// facing is what is declared for hosts, and the hosts that are known.
type facing struct {
	intent plan.Intent
	known  plan.Known
}

// facing returns both; nothing is known where nothing is declared.
func (s *state) facing() facing {
	f := facing{intent: plan.Intent{Config: s.intent.config, Rollout: s.intent.rollout, Budgets: s.intent.budgets}}
	if len(s.intent.environments) > 0 {
		f.intent.Environments = s.intent.declaredEnvironments()
	}
	f.intent.Releases = s.intent.namedReleases()
	if !f.intent.Empty() {
		f.known = s.knownHosts()
	}
	if len(f.intent.Environments) > 0 {
		s.placed(&f.known)
	}
	return f
}

// namedReleases are the releases that the configuration or an environment names.
func (i *intent) namedReleases() map[string]v1.Release {
	named := map[string]v1.Release{}
	add := func(goes release.Target) {
		if r, known := i.releases[goes.Named()]; known {
			named[goes.Named()] = r
		}
	}
	if i.config != nil {
		add(i.config.Target)
	}
	for _, d := range i.environments {
		add(d.Target)
	}
	return named
}

// placed adds what environments refer to: where the hosts are, and the calendars.
func (s *state) placed(known *plan.Known) {
	known.Where, known.Calendars = make(map[string]plan.Where, len(s.hosts.known)), s.intent.calendarKinds()
	for name, h := range s.hosts.known {
		if h.placed {
			known.Where[name] = h.where()
		}
	}
}

// knownHosts returns all known hosts, also those that no configuration lists.
func (s *state) knownHosts() plan.Known {
	known := plan.Known{Hosts: make([]plan.Host, 0, len(s.hosts.known)), OnHosts: s.hosts.scripts(s.Now().Before(s.started.Add(gracePeriod)))}
	for name, h := range s.hosts.known {
		known.Hosts = append(known.Hosts, plan.Host{Name: name, Application: h.Application, Role: h.Role, Labels: h.Labels, Environment: h.inEnvironment()})
	}
	return known
}

// scripts returns the scripts that some host has told of; nil if no host has told of any. A
// host that told of none since the start is waited for while others may still follow.
func (h *hosts) scripts(starting bool) (all []string) {
	seen := map[string]bool{}
	for _, known := range h.known {
		switch {
		case known.self.Scripts != nil:
			all = append([]string{}, all...)
		case starting, h.present.online(known.Name):
			return nil
		}
		for _, script := range known.self.Scripts {
			if !seen[script] {
				seen[script] = true
				all = append(all, script)
			}
		}
	}
	return all
}
