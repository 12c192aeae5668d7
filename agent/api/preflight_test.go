package api_test

import (
	"net/http"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site/dev"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestStartValidate checks that a start can be rehearsed, by who may start, and that
// what is wrong with a body is told as of any start.
func TestStartValidate(t *testing.T) {
	t.Parallel()
	d, err := dev.Start(t.Context(), dev.Options{Dir: t.TempDir(), Hosts: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	c, err := client.New(client.Options{Endpoint: d.Endpoint, Token: d.Token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if _, err := c.Preflight(t.Context(), d.Tenant, v1.Start{}); !client.HasStatus(err, http.StatusNotFound) {
		t.Errorf("without a configuration: %v", err)
	}
	config := v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: dev.Application}}}
	if _, err := c.PutConfig(t.Context(), d.Tenant, config, client.Precondition{}); err != nil {
		t.Fatal(err)
	}
	p, err := c.Preflight(t.Context(), d.Tenant, v1.Start{OverrideWindow: true, Reason: "x", Hosts: []string{"h02"}})
	if err != nil || p.Refused != "" || p.Run == nil || len(p.Run.Hosts) != 1 || p.Run.Hosts[0].Hostname != "h02" || len(p.Unknown) > 0 {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := c.Preflight(t.Context(), d.Tenant, v1.Start{Duration: "x"}); !client.HasStatus(err, http.StatusBadRequest) {
		t.Errorf("with a wrong duration: %v", err)
	}
	if runs, err := c.Runs(t.Context(), d.Tenant, v1.RunFilter{}); err != nil || len(runs) != 0 {
		t.Errorf("there are %d runs, %v", len(runs), err)
	}
}
