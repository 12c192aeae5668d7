package controller

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/plan"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestUnmatched checks that the state tells what matches no known host, of hosts whatever
// their application, and of a script only when each host that may have it has told.
func TestUnmatched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		check := []v1.Check{{Type: "exec", Script: "smoke"}}
		m.rollout = &v1.Rollout{
			Stages: []v1.Stage{{Name: "a", Match: &v1.Match{Hosts: []string{"h02", "h09"}, Applications: []string{"other"}}}, {Name: "b"}},
			Checks: &v1.RolloutChecks{BeforeHost: check, Fleet: check},
		}
		o := m.options(t)
		o.SiteScripts = func() []string { return []string{} }
		c, _ := m.run(t, o)
		want := func(want ...string) {
			t.Helper()
			state, err := c.State(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, w := range state.IntentWarnings {
				got = append(got, w.String())
			}
			if !slices.Equal(got, want) {
				t.Errorf("the warnings are\n%q\nnot\n%q", got, want)
			}
		}
		const host = `rollout.stages[0].match.hosts[1]: no known host is named "h09"`
		const onHosts = `rollout.checks.before-host[0].script: "smoke" is not in the --checks folder of any known host`
		const atSite = `rollout.checks.fleet[0].script: "smoke" is not in the --checks folder of the site`
		m.Alive("h01", message.Alive{Application: "app", SelfReport: message.SelfReport{Scripts: []string{}}})
		want(host, `rollout.stages[0].match.applications[0]: no known host has application "other"; hosts have app`, atSite)
		m.Alive("h02", message.Alive{Application: "other", SelfReport: message.SelfReport{Scripts: []string{"other"}}})
		want(host, onHosts, atSite)
		m.Alive("h02", message.Alive{Application: "other"})
		want(host, atSite)
		m.Alive("h02", message.Alive{Application: "other", SelfReport: message.SelfReport{Scripts: []string{"smoke"}}})
		want(host, atSite)
		time.Sleep(2 * gracePeriod)
		m.Alive("h01", message.Alive{Application: "app", SelfReport: message.SelfReport{Scripts: []string{}}})
		want(host, atSite)
		found, err := c.Unmatched(t.Context(), plan.Intent{Config: &v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: "app"}, {Name: "third"}}}})
		if err != nil || len(found) != 1 || found[0].Field != "worker-applications[1].name" {
			t.Errorf("of a configuration that is not written it says %v, %v", found, err)
		}
	})
}
