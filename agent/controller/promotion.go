package controller

import (
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/promotion"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/view"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// promotion is how far an environment has come to a release; nil if no run has gone to one.
func (s *state) promotion(env *environment) *v1.Promotion {
	p := env.ledger.Promotion()
	if p == nil {
		return nil
	}
	shown := v1.Promotion{Release: p.Release.Name, Since: p.Since, Last: p.Last, StepsDone: p.Steps, WayBack: s.wayBack(env, p)}
	if p.Was != nil {
		shown.Was = p.Was.Name
	}
	if back := p.RolledBack; back != nil {
		shown.RolledBack = &v1.PromotionRollback{Run: back.Run, At: view.Time(back.At), By: back.By, Reason: back.Why}
	}
	for name, host := range having(s.hosts.in(env.name), s.intent.applications()) {
		shown.Hosts.Of++
		if host.has(s.lastOf(name).ledger.Newest()).Release == p.Release {
			shown.Hosts.Has++
		}
	}
	return &shown
}

// wayBack tells until which stage the runs of an environment to its release can be rolled back: by the run
// that has closed the way back, that under way, or the rollout; nil if there is no such stage.
func (s *state) wayBack(env *environment, p *message.Promotion) *v1.WayBack {
	if c := p.Closed; c != nil {
		return &v1.WayBack{Until: c.Stage, Closed: view.OptionalTime(c.At)}
	}
	if current := env.ledger.Current(); current != nil {
		if back := current.WayBack(); back.Stage != "" {
			return &v1.WayBack{Until: back.Stage}
		}
	}
	stages := s.intent.effectiveOf(env.name).Stages
	if n := slices.IndexFunc(stages, func(stage v1.Stage) bool { return stage.PointOfNoReturn }); n >= 0 {
		return &v1.WayBack{Until: stages[n].Name}
	}
	return nil
}

// has is the release that a host has, also before the end of its run, at which that is noted.
func (h *host) has(newest *run.State) promotion.Host {
	if newest == nil || isNoted(h.LastRun, newest.Key()) || !newest.HasUpgraded(h.Name) {
		return promotion.Host{Release: h.Release, Was: h.Was}
	}
	return hasAfter(h.Host, newest)
}

// hasAfter is the release that a host has that a run has upgraded.
func hasAfter(h store.Host, r *run.State) promotion.Host {
	before := promotion.Host{Release: h.Release, Was: h.Was}
	switch p := r.Promotion; {
	case p != nil && p.Was != nil && before.Release == *p.Was && p.Since <= r.RollsBack.Of && r.RollsBack.Of <= p.Last:
		return before // It failed in the runs that are rolled back, and never came to their release.
	case r.IsRollback():
		return before.RolledBack()
	case r.Release == nil:
		return before.Upgraded(release.Ref{})
	}
	return before.Upgraded(r.Release.Ref())
}
