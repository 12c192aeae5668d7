package metrics

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/controller"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
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
	figures.Releases = []controller.ReleaseFigures{{Release: "spring", Hosts: 4}, {Environment: "basel", Release: "summer", Hosts: 1}}
	several := scrape(t, s, everything)
	for _, line := range []string{
		`osupgrade_hosts_unplaced{tenant="acme"} 3`,
		`osupgrade_environment_hosts{tenant="acme"} 5`,
		`osupgrade_environment_hosts{environment="basel",tenant="acme"} 2`,
		`osupgrade_environment_hosts_outdated{environment="basel",tenant="acme"} 1`,
		`osupgrade_release_hosts{release="spring",tenant="acme"} 4`,
		`osupgrade_release_hosts{environment="basel",release="summer",tenant="acme"} 1`,
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

// TestCountersOfEnvironments checks that each environment has counters of its own, which begin at 0 with
// the first scrape that knows it, that those of the default one have no label environment, and that
// they go with the environment. While the controller does not answer, they stay.
func TestCountersOfEnvironments(t *testing.T) {
	t.Parallel()
	s := New(Options{Healthy: func() error { return nil }})
	var figures controller.Figures
	var failure error
	tenant := s.Tenant("acme")
	tenant.Serve(func(context.Context) (controller.Figures, error) { return figures, failure })
	says := func(when string, lines ...string) string {
		t.Helper()
		text := scrape(t, s, everything)
		for _, line := range lines {
			if strings.Count("\n"+text, "\n"+line+"\n") != 1 {
				t.Errorf("%s it does not say %s", when, line)
			}
		}
		return text
	}
	if alone := says("without environments"); strings.Contains(alone, "environment=") {
		t.Errorf("without environments a scrape says\n%s", alone)
	}
	figures.Environments = []controller.EnvironmentFigures{{}, {Name: "basel"}, {Name: "bern"}}
	first := says("at first", `osupgrade_runs_total{environment="basel",result="failed",tenant="acme"} 0`, `osupgrade_windows_missed_total{environment="bern",tenant="acme"} 0`)
	each := 0
	for line := range strings.Lines(first) {
		if strings.Contains(line, `_total{`) && strings.Contains(line, `environment="basel"`) {
			each++
		}
	}
	if guide, err := os.ReadFile("../../../docs/guides/monitoring.md"); err != nil || !strings.Contains(string(guide), fmt.Sprintf("Each environment has %d counters", each)) {
		t.Errorf("the guide does not say that each environment has %d counters: %v", each, err)
	}
	tenant.RunEnded("basel", run.Failed, time.Minute)
	tenant.RunEnded("", run.Completed, time.Minute)
	tenant.HostEnded("basel", run.Host{Status: run.HostFailed, Class: message.Space})
	tenant.HostEnded("bern", run.Host{Status: run.Upgraded, UpToDate: true})
	tenant.WindowMissed("bern")
	counted := []string{
		`osupgrade_runs_total{environment="basel",result="failed",tenant="acme"} 1`, `osupgrade_runs_total{result="completed",tenant="acme"} 1`,
		`osupgrade_runs_total{result="failed",tenant="acme"} 0`, `osupgrade_run_hosts_ended_total{environment="basel",status="failed",tenant="acme"} 1`,
		`osupgrade_host_failures_total{class="space",environment="basel",tenant="acme"} 1`, `osupgrade_run_hosts_up_to_date_total{environment="bern",tenant="acme"} 1`,
		`osupgrade_windows_missed_total{environment="bern",tenant="acme"} 1`, `osupgrade_windows_missed_total{tenant="acme"} 0`, `osupgrade_run_duration_seconds_count{tenant="acme"} 2`,
	}
	says("once counted", counted...)
	failure = errors.New("it reads its log")
	says("without an answer", counted...)
	failure, figures.Environments = nil, figures.Environments[:2]
	if after := says("without bern", counted[0], counted[1]); strings.Contains(after, "bern") {
		t.Errorf("once bern is gone a scrape says\n%s", after)
	}
}
