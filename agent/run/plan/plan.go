// Package plan applies a rollout to the fleet when a run is opened: it decides
// which hosts are members, in which order they go, which hosts are left out and
// why, and the policy of the run.
//
// It does no I/O. The log holds what New returns, so that a change of the rollout
// or of the fleet has an effect on the next run only.
package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/reached"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Host has the properties by which a rollout chooses a host.
type Host struct {
	Name        string
	Application string
	Role        string
	Labels      map[string]string
	// Environment is the name of the environment that it is in, for a selector; empty for none.
	Environment string
	// Silent says that the host has not been heard of. It is a member all the same.
	Silent bool
	// OutOfService says that the host is out of service since an earlier run, so that
	// it counts although it is silent.
	OutOfService bool
	// NonMember says that the run leaves the host alone, as a retry does with those
	// that were upgraded. It counts in its stage while it is out of service.
	NonMember bool
	// Unfit is why the host must not go to the release of the run; empty if it may, or if the run has
	// no release.
	Unfit string
}

// Plan has what a run is opened with.
type Plan struct {
	// Hosts are the members in their order: by stage, and by name within a stage.
	Hosts []string
	// Silent are the members that have not been heard of.
	Silent []string
	// Others are the non-members that count in a stage.
	Others []message.Entry
	// Exempt are the hosts that the run leaves out, by name, each with the reason.
	Exempt  []rollout.Exempt
	Rollout rollout.Resolved
	// Until is the stage after which the run ends; empty if it goes on to the last one.
	Until string
	// Reached is what earlier runs have done; nil if the next run does not go on where this one ends.
	Reached *message.Reached
}

// OfSteps reports whether only steps can be done now, and a run may have nothing else: it ends after a
// stage, or the hosts are done.
func (p Plan) OfSteps() bool {
	alone := len(p.Hosts) == 0
	switch {
	case !p.hasStep():
		return false
	case reached.GoesOn(p.Reached):
		return alone || len(p.Hosts) == len(p.Silent) && p.Rollout.Absent == rollout.Skip
	}
	return alone && p.Until != ""
}

// Left is what a planned run has to do.
type Left struct {
	// Hosts counts the members that lack what the run installs, Silent those of them that have not been
	// heard of, and Have the hosts that have it, also those that the run leaves out.
	Hosts, Silent, Have int
}

// Left counts what a run has to do; has reports whether a host has what the run installs, nil if that is
// not known of any. A run that takes the steps that earlier runs have left needs its hosts, whatever
// they have.
func (p Plan) Left(has func(host string) bool) (left Left) {
	if has == nil || reached.GoesOn(p.Reached) && p.hasStep() {
		return Left{Hosts: len(p.Hosts), Silent: len(p.Silent)}
	}
	silent := make(map[string]bool, len(p.Silent))
	for _, name := range p.Silent {
		silent[name] = true
	}
	for _, name := range p.Hosts {
		switch {
		case has(name):
			left.Have++
		case silent[name]:
			left.Silent++
			left.Hosts++
		default:
			left.Hosts++
		}
	}
	for _, e := range p.Exempt {
		if has(e.Host) {
			left.Have++
		}
	}
	return left
}

// Nothing reports whether there is nothing to do because all hosts have what the run installs.
func (l Left) Nothing() bool { return l.Hosts == 0 && l.Have > 0 }

func (p Plan) hasStep() bool {
	return slices.ContainsFunc(p.Rollout.Stages, func(s rollout.ResolvedStage) bool { return s.Step != nil })
}

// isLeft reports whether the run can do anything: there is a step, or a host that is heard of.
func (p Plan) isLeft() bool { return len(p.Hosts) > len(p.Silent) || p.hasStep() }

// Reserve returns how long before the end of its window the run ends.
func (p Plan) Reserve() time.Duration { return p.Rollout.Reserve.Duration() }

// HostOf returns the host of a step: the first, by name, that is heard of and that its match
// chooses; false when there is none.
func HostOf(step *rollout.Step, hosts []Host) (name string, some bool) {
	chosen := compile(step.Match)
	for _, h := range hosts {
		if !h.Silent && (!some || h.Name < name) && chosen.matches(h) {
			name, some = h.Name, true
		}
	}
	return name, some
}

// NoStage is the reason for leaving out a host that is in no stage.
const NoStage = "no stage of the rollout matches it"

// absent reports whether a host was silent before any run took it out of service.
func (h Host) absent() bool { return h.Silent && !h.OutOfService }

// New applies a rollout to hosts, whose names differ, for a run that goes on where its course says. A nil
// rollout has the defaults only. The error names the first value of the rollout that cannot be read, or the
// stage that it does not have.
func New(r *v1.Rollout, hosts []Host, course reached.Course) (Plan, error) {
	if r == nil {
		r = &v1.Rollout{}
	}
	full := r.WithDefaults()
	sorted := slices.Clone(hosts)
	slices.SortFunc(sorted, func(a, b Host) int { return cmp.Compare(a.Name, b.Name) })
	resolved, err := r.Resolve()
	if err != nil {
		return Plan{}, fmt.Errorf("cannot plan a run by the rollout: %w", err)
	}
	stages := StageNames(r)
	last := slices.Index(stages, course.Until)
	if last < 0 && course.Until != "" {
		return Plan{}, fmt.Errorf("cannot plan a run until stage %s, which is none of the rollout: it has %s", course.Until, strings.Join(stages, ", "))
	}
	planned := goOn(full, resolved, sorted, course, len(stages))
	if reached.GoesOn(planned.Reached) && !course.Chosen && !planned.isLeft() {
		course.Before = nil
		planned = goOn(full, resolved, sorted, course, len(stages))
	}
	if last >= 0 && last+1 < len(stages) {
		planned = goOn(full, resolved, sorted, course, last+1)
		planned.Until = course.Until
	}
	return planned, nil
}

// StageNames returns the names of the stages of a rollout, which may be nil.
func StageNames(r *v1.Rollout) (all []string) {
	if r == nil {
		r = &v1.Rollout{}
	}
	for _, s := range r.WithDefaults().Stages {
		all = append(all, s.Name)
	}
	return all
}

// goOn plans a run of the first stages of a rollout, which is resolved already.
func goOn(full v1.Rollout, resolved rollout.Resolved, hosts []Host, course reached.Course, stages int) Plan {
	planned := Plan{Rollout: resolved, Reached: course.Begin(full.Stages)}
	known := reached.HostsOf(planned.Reached)
	if !course.Chosen {
		hosts = slices.Clone(hosts)
		for i := range hosts {
			hosts[i].NonMember = hosts[i].NonMember || known[hosts[i].Name].Done
		}
	}
	var divided [][]Host
	divided, planned.Exempt = divide(full, hosts, known)
	planned.Reached = reached.Meet(planned.Reached, met(full.Stages, divided, known))
	left, in := full.Stages[:0:0], divided[:0:0]
	for i, s := range full.Stages[:stages] {
		if s.Step == nil || !reached.StepDone(planned.Reached, s.Name) && course.TakesSteps(planned.Reached) {
			left, in = append(left, s), append(in, divided[i])
		}
	}
	full.Stages = left
	planned.count(full, in)
	planned.enlist(left, in, compile(full.ExemptReboot))
	planned.groupStart(full.Checks.Start, hosts)
	return planned
}

// met returns the members that no earlier run has met, by their stage.
func met(stages []v1.Stage, divided [][]Host, known reached.Hosts) map[string][]string {
	all := map[string][]string{}
	for i, hosts := range divided {
		for _, h := range hosts {
			if _, is := known[h.Name]; !is && !h.NonMember {
				all[stages[i].Name] = append(all[stages[i].Name], h.Name)
			}
		}
	}
	return all
}

// groupStart decides where each check before the run is asked: of the members, those that are heard
// of. A host that nobody hears cannot be asked; a check of type hosts misses it.
func (p *Plan) groupStart(checks []v1.StartCheck, hosts []Host) {
	if len(checks) == 0 {
		return
	}
	matchers := make([]*matcher, len(checks))
	for n, c := range checks {
		if c.Match != nil {
			matchers[n] = compile(c.Match)
		}
	}
	byName := make(map[string]Host, len(hosts))
	for _, h := range hosts {
		byName[h.Name] = h
	}
	heard := slices.DeleteFunc(slices.Clone(p.Hosts), func(name string) bool { return byName[name].Silent })
	p.Rollout.GroupStart(heard, func(host, check int) bool { return matchers[check].matches(byName[heard[host]]) })
}

// count resolves each count of the rollout to a number of hosts.
func (p *Plan) count(full v1.Rollout, stages [][]Host) {
	present := 0
	for i, hosts := range stages {
		n := members(hosts)
		if full.Stages[i].Step != nil {
			p.Rollout.Stages = append(p.Rollout.Stages, full.Stages[i].Resolve(0, 0))
			continue
		}
		if n == 0 {
			continue
		}
		if full.Absent == rollout.Skip {
			hosts = slices.DeleteFunc(slices.Clone(hosts), Host.absent)
		}
		p.Rollout.Stages = append(p.Rollout.Stages, full.Stages[i].Resolve(n, len(hosts)))
		if full.Absent == rollout.Skip {
			hosts = slices.DeleteFunc(hosts, func(h Host) bool { return h.Silent })
		}
		present += members(hosts)
	}
	p.Rollout.MaxFailures = max(1, full.MaxFailures.Of(present, rollout.Down))
	p.Rollout.MinPrepared = min(present, full.MinPrepared.Of(present, rollout.Up))
}

// divide assigns each host to the stage that it had in an earlier run, or else to the first that matches
// it, or leaves it out. A stage without members is empty, as is one with a step.
func divide(r v1.Rollout, hosts []Host, known reached.Hosts) (stages [][]Host, exempt []rollout.Exempt) {
	out := compile(r.Exempt)
	matchers := make([]*matcher, len(r.Stages))
	for i, stage := range r.Stages {
		if stage.Step == nil {
			matchers[i] = compile(cmp.Or(stage.Match, &v1.Match{}))
		}
	}
	stages = make([][]Host, len(matchers))
	for _, host := range hosts {
		stage := slices.IndexFunc(matchers, func(m *matcher) bool { return m.matches(host) })
		if before, is := known[host.Name]; is {
			stage = slices.IndexFunc(r.Stages, func(s v1.Stage) bool { return s.Name == before.Stage })
		}
		switch {
		case host.NonMember && (stage < 0 || out.matches(host)):
		case out.matches(host):
			exempt = append(exempt, rollout.Exempt{Host: host.Name, Reason: "the rollout's exempt matches " + out.words(host)})
		case stage < 0:
			exempt = append(exempt, rollout.Exempt{Host: host.Name, Reason: NoStage})
		case host.Unfit != "" && !host.NonMember:
			exempt = append(exempt, rollout.Exempt{Host: host.Name, Reason: host.Unfit})
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

// members counts the members of a stage.
func members(stage []Host) (n int) {
	for _, host := range stage {
		if !host.NonMember {
			n++
		}
	}
	return n
}

// enlist adds the members and the non-members, stage by stage.
func (p *Plan) enlist(declared []v1.Stage, stages [][]Host, noReboot *matcher) {
	named := 0
	for i, stage := range stages {
		if len(stage) > 0 {
			p.addOthers(named, stage)
			p.addMembers(stage, noReboot)
		}
		if len(stage) > 0 || declared[i].Step != nil {
			named++
		}
	}
}

// addMembers adds the members of a stage.
func (p *Plan) addMembers(hosts []Host, noReboot *matcher) {
	for _, host := range hosts {
		if host.NonMember {
			continue
		}
		p.Hosts = append(p.Hosts, host.Name)
		if host.Silent {
			p.Silent = append(p.Silent, host.Name)
		}
		if noReboot.matches(host) {
			p.Rollout.NoReboot = append(p.Rollout.NoReboot, rollout.Exempt{
				Host: host.Name, Reason: "the rollout's exempt-reboot matches " + noReboot.words(host),
			})
		}
	}
}

// addOthers adds the non-members of a stage.
func (p *Plan) addOthers(stage int, hosts []Host) {
	for _, host := range hosts {
		if host.NonMember && (p.Rollout.Absent == rollout.CountAbsent || !host.absent()) {
			p.Others = append(p.Others, message.Entry{Host: host.Name, Stage: p.Rollout.Stages[stage].Name, Silent: host.Silent})
		}
	}
}
