package api_test

import (
	"net/http"
	"reflect"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site/dev"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestOffersAndPlans checks what simulated hosts say that an upgrade would change: in a
// preflight in numbers, for one host whole; that a run then has these changes as its plan,
// and that the hosts offer something else after it.
func TestOffersAndPlans(t *testing.T) {
	t.Parallel()
	d, err := dev.Start(t.Context(), dev.Options{Dir: t.TempDir(), Hosts: 2, ActionTime: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	c, err := client.New(client.Options{Endpoint: d.Endpoint, Token: d.Token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	ctx := t.Context()
	config := v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: dev.Application}}}
	if _, err := c.PutConfig(ctx, d.Tenant, config, client.Precondition{}); err != nil {
		t.Fatal(err)
	}
	// wait waits for something that hosts tell when they come to it: no action waits for it.
	wait := func(what string, get func() (v1.HostPlan, error), done func(v1.HostPlan) bool) v1.HostPlan {
		t.Helper()
		for end := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
			told, err := get()
			if err == nil && done(told) {
				return told
			}
			if err != nil && !client.HasStatus(err, http.StatusNotFound) || time.Now().After(end) {
				t.Fatalf("%s is %+v, %v", what, told, err)
			}
		}
	}
	// told waits for an offer that differs from another.
	told := func(host string, other []v1.VersionChange) v1.HostPlan {
		t.Helper()
		get := func() (v1.HostPlan, error) { return c.Offer(ctx, d.Tenant, host) }
		return wait("the offer of "+host, get, func(offer v1.HostPlan) bool { return !reflect.DeepEqual(offer.Changes, other) })
	}
	before := told("h01", nil)
	told("h02", nil)
	if len(before.Changes) == 0 || before.At.IsZero() || before.Changes[0].From == "" || before.Changes[0].To == "" {
		t.Errorf("h01 offers %+v", before)
	}
	start := v1.Start{OverrideWindow: true, Reason: "x", Hosts: []string{"h01"}}
	p, err := c.Preflight(ctx, d.Tenant, start)
	if err != nil || len(p.Offers) != 1 {
		t.Fatalf("a preflight of h01 has the offers %+v, %v", p.Offers, err)
	}
	if got := p.Offers[0]; got.Hostname != "h01" || got.At == nil || !got.At.Equal(before.At) || got.Changes != len(before.Changes) || got.Reboot != before.Reboot {
		t.Errorf("a preflight has %+v of h01, which offers %+v", got, before)
	}
	r, err := c.Start(ctx, d.Tenant, start)
	if err != nil {
		t.Fatal(err)
	}
	after := told("h01", before.Changes)
	get := func() (v1.HostPlan, error) { return c.Plan(ctx, d.Tenant, r.ID, "h01") }
	plan := wait("the plan of h01", get, func(v1.HostPlan) bool { return true })
	if !reflect.DeepEqual(plan.Changes, before.Changes) {
		t.Errorf("the run changes %+v; h01 offered %+v", plan.Changes, before.Changes)
	}
	if len(after.Changes) == len(before.Changes) && after.Changes[0].From != before.Changes[0].To {
		t.Errorf("after the run h01 offers %+v, before it was %+v", after.Changes, before.Changes)
	}
	for what, err := range map[string]error{
		"the offer of a host that is not known": second(c.Offer(ctx, d.Tenant, "h77")), "the plan of a host that is not in the run": second(c.Plan(ctx, d.Tenant, r.ID, "h02")),
		"a plan of a run that is none": second(c.Plan(ctx, d.Tenant, r.ID+1000, "h01")),
	} {
		if !client.HasStatus(err, http.StatusNotFound) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func second(_ v1.HostPlan, err error) error { return err }
