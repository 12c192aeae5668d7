package provider_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest/realagent"
)

// beta is the tenant beta with this body.
func beta(body string) string {
	return "resource \"osupgrade_tenant\" \"beta\" {\n name = \"beta\"\n" + body + "\n}\n"
}

// TestTenant takes a tenant through its life at the real agent, which restores a removed one only
// if that is declared.
func TestTenant(t *testing.T) {
	t.Parallel()
	site := realagent.StartSite(t, acctest.Tenant)
	api := rest(t, site.Server)
	const address = "osupgrade_tenant.beta"
	called := func(want string) resource.TestCheckFunc {
		return func(*terraform.State) error {
			got, err := client.Tenants.Get(t.Context(), api, "beta")
			if err == nil && got.Value.DescriptiveName != want {
				t.Errorf("the tenant is called %q, want %q", got.Value.DescriptiveName, want)
			}
			return err
		}
	}
	const ltd = `descriptive_name = "Beta Ltd"`
	acctest.Run(t, resource.TestCase{
		CheckDestroy: func(*terraform.State) error {
			if all, err := api.TenantObjects(t.Context()); err != nil || len(all) != 1 {
				t.Errorf("after destroy there are %v, %v", all, err)
			}
			return nil
		},
		Steps: []resource.TestStep{
			{Config: site.Config(strings.Replace(beta(ltd), `"beta"`+"\n", "\"Beta\"\n", 1)), PlanOnly: true, ExpectError: spoken(`"Beta" is not a name`)},
			{Config: site.Config(beta("descriptive_name = \"Beta\\nLtd\"")), PlanOnly: true, ExpectError: spoken("has characters that cannot be shown")},
			{Config: site.Config(beta("")), ConfigPlanChecks: plans(address, plancheck.ResourceActionCreate), Check: called("")},
			{Config: site.Config(beta(ltd)), ConfigPlanChecks: plans(address, plancheck.ResourceActionUpdate), Check: called("Beta Ltd")},
			{
				PreConfig: func() {
					if _, err := client.Tenants.Put(t.Context(), api, "beta", client.Stored[v1.Tenant]{}, v1.Tenant{DescriptiveName: "Gamma"}, client.Precondition{}); err != nil {
						t.Error(err)
					}
				},
				Config: site.Config(beta(ltd)), ConfigPlanChecks: plans(address, plancheck.ResourceActionUpdate), Check: called("Beta Ltd"),
			},
			{ResourceName: address, ImportState: true, ImportStateId: "beta", ImportStateKind: resource.ImportBlockWithID},
			{ResourceName: address, ImportState: true, ImportStateId: "beta", ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name"},
			{ResourceName: address, ImportState: true, ImportStateId: "acme/beta", ExpectError: spoken(`"acme/beta" is not the name of a tenant`)},
			{
				PreConfig: func() {
					if err := api.DeleteTenant(t.Context(), "beta", false); err != nil {
						t.Error(err)
					}
				},
				Config: site.Config(beta(ltd)), ExpectError: spoken("the site keeps the log and the configuration of a tenant of this name, which was removed"),
			},
			{Config: site.Config(beta(ltd + "\n restore = true")), ConfigPlanChecks: plans(address, plancheck.ResourceActionCreate), Check: called("Beta Ltd")},
		},
	})
}

// TestTenant_restoreNothing: a tenant that never was is created with restore, too.
func TestTenant_restoreNothing(t *testing.T) {
	t.Parallel()
	site := realagent.StartSite(t, acctest.Tenant)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{{Config: site.Config(beta("restore = true"))}}})
}

// TestTenant_withWhatItHas: a plan that creates a tenant and what is in it does not warn that
// there is no such tenant yet, and one apply creates both.
func TestTenant_withWhatItHas(t *testing.T) {
	t.Parallel()
	site := realagent.StartSite(t, acctest.Tenant)
	w := acctest.NewWorkspace(t, site.Env()...)
	w.Write(t, "main.tf", acctest.Requirement+example(t, "resources/osupgrade_tenant/resource.tf"))
	if out := w.Run(t, 0, "apply", "-auto-approve", "-no-color"); strings.Contains(out, "did not validate") || !strings.Contains(out, "2 added") {
		t.Errorf("the apply says %s", out)
	}
	w.Run(t, 0, "plan", "-detailed-exitcode", "-no-color")
	w.Run(t, 0, "destroy", "-auto-approve", "-no-color")
}

// TestTenant_refused: a tenant of the site's configuration is not removed, and a token of one
// tenant creates none.
func TestTenant_refused(t *testing.T) {
	t.Parallel()
	site := realagent.StartSite(t, acctest.Tenant)
	w := acctest.NewWorkspace(t, site.Env()...)
	w.Write(t, "main.tf", acctest.Requirement+strings.Replace(beta("overwrite_existing = true"), `name = "beta"`, `name = "acme"`, 1))
	w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	if out := oneLine(w.Run(t, 1, "destroy", "-auto-approve", "-no-color")); !strings.Contains(out, "the tenant is in the site's configuration, which wins; remove it from the tenants of osupgrade-agent serve") {
		t.Errorf("the destroy says %s", out)
	}
	w = acctest.NewWorkspace(t, append(site.Env(), "OSUPGRADE_TOKEN="+site.TokenOf(t, acctest.Tenant, access.Admin))...)
	w.Write(t, "main.tf", acctest.Requirement+beta(""))
	if out := oneLine(w.Run(t, 1, "apply", "-auto-approve", "-no-color")); !strings.Contains(out, "Unable to create osupgrade_tenant") || !strings.Contains(out, "token") {
		t.Errorf("the apply says %s", out)
	}
}

// TestTenant_inUse: a tenant with hosts is removed only with force_destroy.
func TestTenant_inUse(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	w := acctest.NewWorkspace(t, server.Env()...)
	w.Write(t, "main.tf", acctest.Requirement+beta(""))
	w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	api.SetHosts("beta", v1.Host{Hostname: "h01"})
	out := oneLine(w.Run(t, 1, "destroy", "-auto-approve", "-no-color"))
	for _, want := range []string{"the tenant has 1 hosts (h01)", "Delete the hosts first", "set force_destroy = true"} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q in %s", want, out)
		}
	}
	w.Write(t, "main.tf", acctest.Requirement+beta("force_destroy = true"))
	w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	if out := oneLine(w.Run(t, 0, "destroy", "-auto-approve", "-no-color")); !strings.Contains(out, "With force_destroy, a run in progress is aborted.") {
		t.Errorf("the plan does not warn: %s", out)
	}
}

// TestTenant_lostAnswers: a creation or removal whose answer is lost is followed by a read.
func TestTenant_lostAnswers(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	w := acctest.NewWorkspace(t, append(server.Env(), "OSUPGRADE_VALIDATE_AT_PLAN=false")...)
	w.Write(t, "main.tf", acctest.Requirement+beta(`descriptive_name = "Beta Ltd"`))
	api.Inject(http.MethodPut, "/tenants/beta", fakeapi.CloseAfter())
	w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	w.Run(t, 0, "plan", "-detailed-exitcode", "-no-color")
	api.Inject(http.MethodDelete, "/tenants/beta", fakeapi.CloseAfter())
	w.Run(t, 0, "destroy", "-auto-approve", "-no-color")
	if api.Pending() > 0 {
		t.Error("no answer was lost")
	}
}
