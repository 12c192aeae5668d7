// Package rollout resolves a tenant's rollout for the fleet as it is when a run
// is opened: which hosts go, in which order, which are left out and why, and
// the policy that the run keeps to its end.
//
// It decides, and touches nothing: a changed rollout or fleet counts for the
// next run, because what Plan returns is written down with the run.
package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
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
}

// Planned is what a run is opened with.
type Planned struct {
	// Hosts are the members in the order in which they go: stage by stage, by
	// name within a stage.
	Hosts []string
	// Silent are the members that are not heard of.
	Silent []string
	// Exempt are the hosts that are left out, by name, and why.
	Exempt []message.Exempt
	Policy message.Policy
	// Reserve is how long before the end of its window the run ends.
	Reserve time.Duration
}

// NoStage is the reason of a host that is left out because there is no place
// for it.
const NoStage = "no stage of the rollout matches it"

// Plan resolves a rollout for hosts, whose names differ. A nil rollout is one
// with nothing but defaults. The error is a rollout that v1 would not accept.
func Plan(r *v1.Rollout, hosts []Host) (Planned, error) {
	if r == nil {
		r = &v1.Rollout{}
	}
	full := r.WithDefaults()
	sorted := slices.SortedFunc(slices.Values(hosts), func(a, b Host) int { return cmp.Compare(a.Name, b.Name) })
	stages, exempt := divide(full, sorted)
	planned := Planned{Exempt: exempt}
	read := reader{}
	planned.Policy = read.policy(full, stages)
	planned.Reserve = read.duration("reserve", full.Reserve)
	if read.err != nil {
		return Planned{}, fmt.Errorf("cannot plan a run by the rollout: %w", read.err)
	}
	planned.enlist(stages, compile(full.ExemptReboot))
	return planned, nil
}

// divide puts each host into the first stage that matches it, or leaves it out.
func divide(r v1.Rollout, hosts []Host) (stages [][]Host, exempt []message.Exempt) {
	out := compile(r.Exempt)
	matchers := make([]*matcher, len(r.Stages))
	for i, stage := range r.Stages {
		matchers[i] = compile(cmp.Or(stage.Match, &v1.Match{}))
	}
	stages = make([][]Host, len(matchers))
	for _, host := range hosts {
		stage := slices.IndexFunc(matchers, func(m *matcher) bool { return m.matches(host) })
		switch {
		case out.matches(host):
			exempt = append(exempt, message.Exempt{Host: host.Name, Reason: "the rollout's exempt matches " + out.words(host)})
		case stage < 0:
			exempt = append(exempt, message.Exempt{Host: host.Name, Reason: NoStage})
		default:
			stages[stage] = append(stages[stage], host)
		}
	}
	return stages, exempt
}

// enlist writes down who takes part, stage by stage.
func (p *Planned) enlist(stages [][]Host, noReboot *matcher) {
	for _, host := range slices.Concat(stages...) {
		p.Hosts = append(p.Hosts, host.Name)
		if host.Silent {
			p.Silent = append(p.Silent, host.Name)
		}
		if noReboot.matches(host) {
			p.Policy.NoReboot = append(p.Policy.NoReboot, message.Exempt{
				Host: host.Name, Reason: "the rollout's exempt-reboot matches " + noReboot.words(host),
			})
		}
	}
}
