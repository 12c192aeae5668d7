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

// Plan plans the rollback: the stages of the runs that are taken back, the last one first. The hosts are
// those of the environment, and one that the rollback leaves alone is no member.
func (t Taken) Plan(hosts []plan.Host) plan.Plan {
	p := plan.Plan{Rollout: t.Rollout}
	stages := map[string][]plan.Host{}
	sorted := slices.Clone(hosts)
	slices.SortFunc(sorted, func(a, b plan.Host) int { return cmp.Compare(a.Name, b.Name) })
	for _, h := range sorted {
		switch stage, had := t.Hosts[h.Name]; {
		case !had:
		case h.Unfit != "" && !h.NonMember:
			p.Exempt = append(p.Exempt, rollout.Exempt{Host: h.Name, Reason: h.Unfit})
		default:
			stages[stage] = append(stages[stage], h)
		}
	}
	for _, s := range t.backwards() {
		t.addStage(&p, s, stages[s.Name])
	}
	t.keep(&p, sorted)
	return p
}

// backwards returns the stages, the last one first.
func (t Taken) backwards() []rollout.ResolvedStage {
	stages := slices.Clone(t.Stages)
	slices.Reverse(stages)
	return stages
}

// addStage adds a stage, if it has members or a step that is taken back. No stage of a rollback is a point
// of no return.
func (t Taken) addStage(p *plan.Plan, s rollout.ResolvedStage, hosts []plan.Host) {
	s.PointOfNoReturn, s.Size = false, 0
	if undo, takes := t.Steps[s.Name]; takes {
		s.TakesBack = undo
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
		case t.Rollout.Absent == rollout.CountAbsent, !h.Silent, h.OutOfService:
			others = append(others, message.Entry{Host: h.Name, Stage: s.Name, Silent: h.Silent})
		}
	}
	if s.Size > 0 {
		p.Rollout.Stages = append(p.Rollout.Stages, s)
		p.Others = append(p.Others, others...)
	}
}

// keep fits to the members what else the rollout says of hosts.
func (t Taken) keep(p *plan.Plan, hosts []plan.Host) {
	heard, members := map[string]bool{}, map[string]bool{}
	for _, name := range p.Hosts {
		members[name] = true
	}
	for _, h := range hosts {
		heard[h.Name] = members[h.Name] && !h.Silent
	}
	present := len(p.Hosts)
	if t.Rollout.Absent == rollout.Skip {
		present -= len(p.Silent)
	}
	p.Rollout.MaxFailures = max(1, t.Rollout.MaxFailures)
	if p.Rollout.MinPrepared = present; t.Rollout.MinPrepared < t.Members {
		p.Rollout.MinPrepared = min(present, t.Rollout.MinPrepared)
	}
	p.Rollout.NoReboot = slices.DeleteFunc(slices.Clone(t.Rollout.NoReboot), func(e rollout.Exempt) bool { return !members[e.Host] })
	p.Rollout.Start = nil
	for _, g := range t.Rollout.Start {
		atSite := len(g.Hosts) == 0
		g.Hosts = slices.DeleteFunc(slices.Clone(g.Hosts), func(host string) bool { return !heard[host] })
		if atSite || len(g.Hosts) > 0 {
			p.Rollout.Start = append(p.Rollout.Start, g)
		}
	}
}
