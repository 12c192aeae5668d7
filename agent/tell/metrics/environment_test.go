package metrics

import (
	"context"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/controller"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
)

// TestEnvironmentsInMetrics checks that each environment has its metrics, that those of the default one
// have no label environment, and that an environment which is removed disappears.
func TestEnvironmentsInMetrics(t *testing.T) {
	t.Parallel()
	s := New(Options{Healthy: func() error { return nil }})
	var figures controller.Figures
	s.Tenant("acme").Serve(func(context.Context) (controller.Figures, error) { return figures, nil })
	if alone := scrape(t, s, everything); strings.Contains(alone, "environment=") || strings.Contains(alone, "osupgrade_environment_") || !strings.Contains(alone, `osupgrade_run_active{tenant="acme"} 0`) {
		t.Errorf("without environments a scrape says\n%s", alone)
	}
	figures.Unplaced = 3
	figures.Environments = []controller.EnvironmentFigures{
		{Hosts: 5}, {Name: "basel", Hosts: 2, Outdated: 1, Run: &controller.RunFigures{Phase: run.Upgrading, Hosts: map[run.Status]int{run.Upgraded: 4}}}, {Name: "bern"},
	}
	several := scrape(t, s, everything)
	for _, line := range []string{
		`osupgrade_hosts_unplaced{tenant="acme"} 3`,
		`osupgrade_environment_hosts{tenant="acme"} 5`,
		`osupgrade_environment_hosts{environment="basel",tenant="acme"} 2`,
		`osupgrade_environment_hosts_outdated{environment="basel",tenant="acme"} 1`,
		`osupgrade_run_active{tenant="acme"} 0`,
		`osupgrade_run_active{environment="basel",tenant="acme"} 1`,
		`osupgrade_run_active{environment="bern",tenant="acme"} 0`,
		`osupgrade_run_hosts{environment="basel",status="upgraded",tenant="acme"} 4`,
		`osupgrade_window_open{environment="bern",tenant="acme"} 0`,
	} {
		if strings.Count("\n"+several, "\n"+line+"\n") != 1 {
			t.Errorf("it does not say %s", line)
		}
	}
	figures.Environments = figures.Environments[:2]
	if after := scrape(t, s, everything); strings.Contains(after, "bern") || !strings.Contains(after, "basel") {
		t.Errorf("once bern is removed a scrape says\n%s", after)
	}
}
