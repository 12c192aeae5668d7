package run

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/plan"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/reached"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestInvariantsOverRuns plays several runs of one rollout, planned as a controller plans them: some end
// after a stage, some fail, some have chosen hosts, some are retries, and in between hosts change their role and the rollout
// its stages. The oracle judges that each goes on where the runs before have ended (invariant 15).
func TestInvariantsOverRuns(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p := newProperty(rt)
		r := drawRollout(rt)
		roles := map[string]string{}
		for n := range rapid.IntRange(1, 6).Draw(rt, "hosts") {
			roles[fmt.Sprintf("h%02d", n+1)] = ""
		}
		for range rapid.IntRange(2, 5).Draw(rt, "runs") {
			for name := range roles {
				if roles[name] == "" || rapid.IntRange(0, 3).Draw(rt, "changes its role") == 0 {
					roles[name] = rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "role of "+name)
				}
			}
			if rapid.IntRange(0, 9).Draw(rt, "the rollout changes") == 0 {
				r = drawRollout(rt)
			}
			if e, opens := p.planned(r, roles); opens {
				p.openRun(e)
				p.playMostly()
				p.carriesOn()
			}
		}
	})
}

// playMostly plays a run whose hosts and steps mostly come through.
func (p *property) playMostly() {
	for range rapid.IntRange(0, 40).Draw(p.rt, "events") {
		happens := []func(){p.comesThrough, p.comesThrough, p.comesThrough, p.comesThrough, p.outcome1, p.outcome1, p.outcome1, p.random}
		happens[rapid.IntRange(0, len(happens)-1).Draw(p.rt, "happens")]()
		p.drive()
		p.check()
	}
	p.toTheEnd(p.drive)
	p.check()
}

// drawRollout draws a rollout whose stages have hosts by their role, or a step.
func drawRollout(rt *rapid.T) v1.Rollout {
	r := v1.Rollout{OnFailure: rapid.SampledFrom([]string{rollout.Stop, rollout.Continue, rollout.Pause}).Draw(rt, "on-failure")}
	step := func(name string) v1.Stage {
		return v1.Stage{Name: name, Step: &v1.Step{Do: &v1.Hook{Type: rollout.Exec, On: rollout.OnSite, Script: name, Timeout: "10m"}}}
	}
	steps := rapid.IntRange(0, 3).Draw(rt, "has steps") > 0
	for _, role := range []string{"a", "b", "c"} {
		if steps && rapid.Bool().Draw(rt, "a step before") {
			r.Stages = append(r.Stages, step("before-"+role))
		}
		soak := rapid.SampledFrom([]rollout.Span{"", "", "10m", "5h"}).Draw(rt, "soak")
		r.Stages = append(r.Stages, v1.Stage{Name: role, Match: &v1.Match{Roles: []string{role}}, MaxUnavailable: "100%", Soak: soak})
	}
	if steps {
		r.Stages = append(r.Stages, step("last"))
	}
	r.Stages[rapid.IntRange(0, len(r.Stages)-1).Draw(rt, "closes")].PointOfNoReturn = true
	return r
}

// planned returns the opening of the next run of a rollout, as a controller plans it; false if there is
// nothing to do.
func (p *property) planned(r v1.Rollout, roles map[string]string) (message.Opened, bool) {
	course := reached.Course{Before: p.in().Reached(), Chosen: rapid.IntRange(0, 3).Draw(p.rt, "chosen") == 0}
	pinned := drawPin(p.rt)
	if pinned != nil {
		course.Release = pinned.Digest
	}
	var retryOf uint64
	if newest := p.in().Newest(); course.Chosen && newest != nil && rapid.Bool().Draw(p.rt, "a retry") {
		retryOf, course.Before = newest.Key(), p.in().ReachedToRetry()
		course.RetryOf = retryOf
	}
	if !course.Chosen && rapid.Bool().Draw(p.rt, "ends after a stage") {
		course.Until = rapid.SampledFrom(plan.StageNames(&r)).Draw(p.rt, "until")
	}
	var hosts []plan.Host
	for name, role := range roles {
		_, lasting := p.in().Roster().Entry(name)
		hosts = append(hosts, plan.Host{
			Name: name, Role: role, Silent: rapid.IntRange(0, 9).Draw(p.rt, "silent") == 0, OutOfService: lasting,
			NonMember: course.Chosen && rapid.Bool().Draw(p.rt, "not chosen"),
		})
	}
	planned, err := plan.New(&r, hosts, course)
	if err != nil {
		p.rt.Fatal(err)
	}
	if len(planned.Hosts) == len(planned.Silent) && !planned.OfSteps() {
		return message.Opened{}, false
	}
	return message.Opened{
		Trigger: message.TriggerManual, NotAfter: p.now.Add(drawSpan(p.rt, "lasts", 24*time.Hour)), Rollout: planned.Rollout, Members: planned.Hosts,
		Roster: p.in().Roster().Opening(planned.Silent, planned.Others), Exempt: planned.Exempt,
		Until: planned.Until, Reached: planned.Reached, Chosen: course.Chosen, RetryOf: retryOf, Release: pinned, Promotion: p.in().Promotion(),
	}, true
}

// drawPin draws the release of a run; nil for none.
func drawPin(rt *rapid.T) *release.Pin {
	name := rapid.SampledFrom([]string{"", "r1", "r1", "r1", "r2"}).Draw(rt, "release")
	if name == "" {
		return nil
	}
	return new(release.Release{Version: name, Data: []byte("{}")}.WithDefaults().Pin(name))
}

// carriesOn tells anew what is known of the environment, so that its runs can be trimmed: nothing is lost.
func (p *property) carriesOn() {
	if rapid.Bool().Draw(p.rt, "is carried") {
		before, goes := p.in().ReachedToRetry(), p.in().Promotion()
		p.must(p.eventOf(p.in(), p.ledger.Carrying(p.in())))
		if now := p.in().ReachedToRetry(); now != before && (now == nil || before == nil || !slices.EqualFunc(now.Stages, before.Stages, func(a, b message.ReachedStage) bool { return a.Name == b.Name && a.Run == b.Run })) {
			p.rt.Fatalf("carried as %+v, it was %+v", now, before)
		}
		if now := p.in().Promotion(); !reflect.DeepEqual(now, goes) {
			p.rt.Fatalf("carried as going to %+v, it went to %+v", now, goes)
		}
	}
}
