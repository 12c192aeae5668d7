// Package plan resolves a tenant's rollout for the fleet as it is when a run
// is opened: which hosts go, in which order, which are left out and why, and
// the policy that the run keeps to its end.
//
// It decides, and touches nothing: a changed rollout or fleet counts for the
// next run, because what New returns is written down with the run.
package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/policy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// Host is what a rollout may choose a host by.
type Host struct {
	Name        string
	Application string
	Role        string
	Labels      map[string]string
	// Silent hosts are not heard of. They are members all the same.
	Silent bool
	// Aside are hosts that are not to be members: they count in their stage
	// while they are out of service.
	Aside bool
}

// Plan is what a run is opened with.
type Plan struct {
	// Hosts are the members in the order in which they go: stage by stage, by
	// name within a stage.
	Hosts []string
	// Silent are the members that are not heard of.
	Silent []string
	// Others are the hosts that count in a stage and are no members.
	Others []message.Entry
	// Exempt are the hosts that are left out, by name, and why.
	Exempt []policy.Exempt
	Policy policy.Resolved
}

// Reserve is how long before the end of its window the run ends.
func (p Plan) Reserve() time.Duration { return p.Policy.Reserve.Duration() }

// NoStage is the reason of a host that is left out because there is no place
// for it.
const NoStage = "no stage of the rollout matches it"

// New resolves a rollout for hosts, whose names differ. A nil rollout is one
// with nothing but defaults. The error is a rollout that v1 would not accept.
func New(r *v1.Rollout, hosts []Host) (Plan, error) {
	if r == nil {
		r = &v1.Rollout{}
	}
	full := r.WithDefaults()
	sorted := slices.SortedFunc(slices.Values(hosts), func(a, b Host) int { return cmp.Compare(a.Name, b.Name) })
	stages, exempt := divide(full, sorted)
	resolved, err := r.Resolve()
	if err != nil {
		return Plan{}, fmt.Errorf("cannot plan a run by the rollout: %w", err)
	}
	planned := Plan{Exempt: exempt, Policy: resolved}
	planned.count(full, stages)
	planned.enlist(stages, compile(full.ExemptReboot))
	return planned, nil
}

// count turns shares of hosts into numbers.
func (p *Plan) count(full v1.Rollout, stages [][]Host) {
	size := 0
	for i, hosts := range stages {
		if n := members(hosts); n > 0 {
			p.Policy.Stages = append(p.Policy.Stages, full.Stages[i].Resolve(n, len(hosts)-n))
			size += n
		}
	}
	p.Policy.MaxFailures = max(1, full.MaxFailures.Of(size, policy.Down))
	p.Policy.MinPrepared = min(size, full.MinPrepared.Of(size, policy.Up))
}

// divide puts each host into the first stage that matches it, or leaves it out.
// Stages in which nobody is a member are empty.
func divide(r v1.Rollout, hosts []Host) (stages [][]Host, exempt []policy.Exempt) {
	out := compile(r.Exempt)
	matchers := make([]*matcher, len(r.Stages))
	for i, stage := range r.Stages {
		matchers[i] = compile(cmp.Or(stage.Match, &v1.Match{}))
	}
	stages = make([][]Host, len(matchers))
	for _, host := range hosts {
		stage := slices.IndexFunc(matchers, func(m *matcher) bool { return m.matches(host) })
		switch {
		case host.Aside && (stage < 0 || out.matches(host)):
		case out.matches(host):
			exempt = append(exempt, policy.Exempt{Host: host.Name, Reason: "the rollout's exempt matches " + out.words(host)})
		case stage < 0:
			exempt = append(exempt, policy.Exempt{Host: host.Name, Reason: NoStage})
		default:
			stages[stage] = append(stages[stage], host)
		}
	}
	for i := range stages {
		if members(stages[i]) == 0 {
			stages[i] = nil
		}
	}
	return stages, exempt
}

// members counts the hosts of a stage that are not aside.
func members(stage []Host) (n int) {
	for _, host := range stage {
		if !host.Aside {
			n++
		}
	}
	return n
}

// enlist writes down who takes part, stage by stage.
func (p *Plan) enlist(stages [][]Host, noReboot *matcher) {
	named := 0
	for _, stage := range stages {
		if len(stage) > 0 {
			p.setAside(named, stage)
			named++
		}
	}
	for _, host := range slices.Concat(stages...) {
		if host.Aside {
			continue
		}
		p.Hosts = append(p.Hosts, host.Name)
		if host.Silent {
			p.Silent = append(p.Silent, host.Name)
		}
		if noReboot.matches(host) {
			p.Policy.NoReboot = append(p.Policy.NoReboot, policy.Exempt{
				Host: host.Name, Reason: "the rollout's exempt-reboot matches " + noReboot.words(host),
			})
		}
	}
}

// setAside writes down which hosts of a stage are no members.
func (p *Plan) setAside(stage int, hosts []Host) {
	for _, host := range hosts {
		if host.Aside {
			p.Others = append(p.Others, message.Entry{Host: host.Name, Stage: p.Policy.Stages[stage].Name, Silent: host.Silent})
		}
	}
}
