package realhost_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestRealStages upgrades four hosts in two stages, the first of which loses its power
// under way. Never is more than one host of a stage away, and none of the second stage
// begins before the first is done.
func TestRealStages(t *testing.T) {
	realhost.Need(t, realhost.Hosts)
	t.Parallel()
	site := realhost.NewSite(t)
	repository := realhost.NewRepository(t)
	repository.Publish(appliance("1.0"), kernel("1.0"))
	hosts := map[string]*realhost.Container{}
	for n := range 4 {
		name := fmt.Sprintf("h%02d", n+1)
		c := realhost.NewContainer(t, realhost.ContainerOptions{Hostname: name})
		realhost.AddRepository(c, "appliance", repository)
		c.Start()
		c.Must("apt-get -q update && apt-get -q -y install appliance appliance-kernel")
		c.Cut()
		site.AddHost(c, name, settings)
		c.Start()
		hosts[name] = c
	}
	names := []string{"h01", "h02", "h03", "h04"}
	site.Online(names...)
	rollout := v1.Rollout{Stages: []v1.Stage{
		{Name: "canary", Match: &v1.Match{Hosts: []string{"h01"}}, MaxUnavailable: "1"},
		{Name: "rest", MaxUnavailable: "1"},
	}}
	if _, err := site.Client.PutRollout(t.Context(), realhost.Tenant, rollout, client.Precondition{}); err != nil {
		t.Fatal(err)
	}
	repository.Add(appliance("2.0"), kernel("2.0"))
	run := site.Begin()
	var canary []string
	cut := false
	realhost.Until(t, "the run ends", 10*time.Minute, func() bool {
		now, err := site.Client.Run(t.Context(), realhost.Tenant, run.ID)
		if err != nil {
			t.Fatal(err)
		}
		run = now
		var away []string
		for _, h := range run.Hosts {
			if h.Slot != nil {
				away = append(away, h.Hostname)
			}
			if h.Hostname == "h01" && (len(canary) == 0 || canary[len(canary)-1] != h.Status) {
				canary = append(canary, h.Status)
			}
		}
		if len(away) > 1 || slices.Contains(away, "h01") && len(away) > 0 && away[0] != "h01" {
			t.Errorf("away at once: %v", away)
		}
		if len(away) > 0 && !slices.Contains(away, "h01") && canary[len(canary)-1] != "upgraded" {
			t.Errorf("%v is away though the canary is %s", away, canary[len(canary)-1])
		}
		if !cut && canary[len(canary)-1] == "upgrading" {
			cut = true
			hosts["h01"].Cut()
			hosts["h01"].Start()
		}
		return run.Phase == "finished"
	})
	if run.Result != "completed" || !cut {
		t.Fatalf("the run ended as %s: %s; cut: %v, the canary was %v", run.Result, run.Reason, cut, canary)
	}
	for _, name := range names {
		if got := hosts[name].Must("dpkg-query -W -f '${db:Status-Abbrev}${Version} ' appliance appliance-kernel"); got != "ii 2.0 ii 2.0 " {
			t.Errorf("%s has %q", name, got)
		}
	}
}
