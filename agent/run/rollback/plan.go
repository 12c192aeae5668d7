package rollback

import (
	"cmp"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/plan"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// CannotRollBack is why a host is left out whose worker would upgrade it instead.
const CannotRollBack = "its agent cannot roll back; upgrade the agent"

// Plan plans the rollback: the stages of the runs that are rolled back, the last one first. The hosts are
// those of the environment, and one that the rollback leaves alone is no member.
func (scope Scope) Plan(hosts []plan.Host) plan.Plan {
	p := plan.Plan{Rollout: scope.Rollout}
	stages := map[string][]plan.Host{}
	sorted := slices.Clone(hosts)
	slices.SortFunc(sorted, func(a, b plan.Host) int { return cmp.Compare(a.Name, b.Name) })
	for _, h := range sorted {
		switch stage, had := scope.Hosts[h.Name]; {
		case !had:
		case h.Unfit != "" && !h.NonMember:
			p.Exempt = append(p.Exempt, rollout.Exempt{Host: h.Name, Reason: h.Unfit})
		default:
			stages[stage] = append(stages[stage], h)
		}
	}
	for _, s := range scope.backwards() {
		scope.addStage(&p, s, stages[s.Name])
	}
	scope.keep(&p, sorted)
	return p
}

// backwards returns the stages, the last one first.
func (scope Scope) backwards() []rollout.ResolvedStage {
	stages := slices.Clone(scope.Stages)
	slices.Reverse(stages)
	return stages
}

// addStage adds a stage, if it has members or a step that is undone. No stage of a rollback is a point
// of no return.
func (scope Scope) addStage(p *plan.Plan, s rollout.ResolvedStage, hosts []plan.Host) {
	s.PointOfNoReturn, s.Size = false, 0
	if undo, some := scope.Steps[s.Name]; some {
		s.Undo = undo
		p.Rollout.Stages = append(p.Rollout.Stages, s)
		return
	}
	var others []message.Entry
	for _, h := range hosts {
		switch {
		case !h.NonMember:
			p.Hosts = append(p.Hosts, h.Name)
			if h.Silent {
				p.Silent = append(p.Silent, h.Name)
			}
			s.Size++
		case scope.Rollout.Absent == rollout.CountAbsent, !h.Silent, h.OutOfService:
			others = append(others, message.Entry{Host: h.Name, Stage: s.Name, Silent: h.Silent})
		}
	}
	if s.Size > 0 {
		p.Rollout.Stages = append(p.Rollout.Stages, s)
		p.Others = append(p.Others, others...)
	}
}

// keep fits to the members what else the rollout says of hosts.
func (scope Scope) keep(p *plan.Plan, hosts []plan.Host) {
	heard, members := map[string]bool{}, map[string]bool{}
	for _, name := range p.Hosts {
		members[name] = true
	}
	for _, h := range hosts {
		heard[h.Name] = members[h.Name] && !h.Silent
	}
	present := len(p.Hosts)
	if scope.Rollout.Absent == rollout.Skip {
		present -= len(p.Silent)
	}
	p.Rollout.MaxFailures = max(1, scope.Rollout.MaxFailures)
	if p.Rollout.MinPrepared = present; scope.Rollout.MinPrepared < scope.Members {
		p.Rollout.MinPrepared = min(present, scope.Rollout.MinPrepared)
	}
	p.Rollout.NoReboot = slices.DeleteFunc(slices.Clone(scope.Rollout.NoReboot), func(e rollout.Exempt) bool { return !members[e.Host] })
	p.Rollout.Start = nil
	for _, g := range scope.Rollout.Start {
		atSite := len(g.Hosts) == 0
		g.Hosts = slices.DeleteFunc(slices.Clone(g.Hosts), func(host string) bool { return !heard[host] })
		if atSite || len(g.Hosts) > 0 {
			p.Rollout.Start = append(p.Rollout.Start, g)
		}
	}
}
