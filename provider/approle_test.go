package provider_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest/realagent"
)

// approle is the approle deploy with this body.
func approle(body string) string {
	return "resource \"osupgrade_approle\" \"deploy\" {\n name = \"deploy\"\n" + body + "\n}\n"
}

// TestApprole takes an approle through its life at the real agent.
func TestApprole(t *testing.T) {
	t.Parallel()
	site := realagent.StartSite(t, acctest.Tenant)
	api := rest(t, site.Server)
	const address = "osupgrade_approle.deploy"
	has := func(want v1.Approle) resource.TestCheckFunc {
		return func(state *terraform.State) error {
			got, err := client.ApproleNamed("deploy").Get(t.Context(), api, acctest.Tenant)
			if err != nil {
				return err
			}
			if !v1.SameApprole(got.Value, want) {
				t.Errorf("the site has %+v, want %+v", got.Value, want)
			}
			known, err := api.Approle(t.Context(), acctest.Tenant, "deploy")
			if id := state.RootModule().Resources[address].Primary.Attributes["role_id"]; id == "" || id != known.RoleID {
				return fmt.Errorf("the state has the role-id %q, want %q: %w", id, known.RoleID, err)
			}
			return err
		}
	}
	const few = `token_policies = ["read", "write"]`
	const all = few + "\n secret_id_num_uses = 0\n secret_id_ttl = \"10m\"\n token_ttl = \"8h\"\n token_max_ttl = \"2d\""
	allApprole := v1.Approle{TokenPolicies: []string{"write", "read"}, SecretIDNumUses: new(0), SecretIDTTL: "10m", TokenTTL: "8h", TokenMaxTTL: "2d"}
	acctest.Run(t, resource.TestCase{
		CheckDestroy: func(*terraform.State) error {
			if all, err := api.Approles(t.Context(), acctest.Tenant); err != nil || len(all) > 0 {
				t.Errorf("after destroy there are %v, %v", all, err)
			}
			return nil
		},
		Steps: []resource.TestStep{
			{Config: site.Config(approle(`token_policies = ["night"]`)), PlanOnly: true, ExpectError: spoken(`"night" is neither a role nor a policy of the tenant`)},
			{Config: site.Config(approle(few + "\n secret_id_num_uses = -1")), PlanOnly: true, ExpectError: spoken("-1 is out of range; use a whole number from 0")},
			{Config: site.Config(approle(few)), ConfigPlanChecks: plans(address, plancheck.ResourceActionCreate), Check: has(v1.Approle{TokenPolicies: []string{"read", "write"}})},
			{Config: site.Config(approle(all)), ConfigPlanChecks: plans(address, plancheck.ResourceActionUpdate), Check: has(allApprole)},
			{Config: site.Config(approle(strings.NewReplacer(`"8h"`, `"480m"`, `["read", "write"]`, `["write", "read"]`).Replace(all))), ConfigPlanChecks: plans(address, plancheck.ResourceActionNoop)},
			{
				PreConfig: func() {
					if _, err := api.SetApprole(t.Context(), acctest.Tenant, v1.Approle{Name: "deploy", TokenPolicies: []string{"admin"}}); err != nil {
						t.Error(err)
					}
				},
				Config: site.Config(approle(all)), ConfigPlanChecks: plans(address, plancheck.ResourceActionUpdate), Check: has(allApprole),
			},
			{ResourceName: address, ImportState: true, ImportStateId: "acme/deploy", ImportStateKind: resource.ImportBlockWithID},
			{ResourceName: address, ImportState: true, ImportStateId: "acme/deploy", ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name"},
			{
				PreConfig: func() {
					if err := client.ApproleNamed("deploy").Delete(t.Context(), api, acctest.Tenant, client.Precondition{}); err != nil {
						t.Error(err)
					}
				},
				Config: site.Config(approle(all)), ConfigPlanChecks: plans(address, plancheck.ResourceActionCreate), Check: has(allApprole),
			},
		},
	})
}

// TestApprole_itself: the provider does not delete the approle as which it is logged in.
func TestApprole_itself(t *testing.T) {
	t.Parallel()
	site := realagent.StartSite(t, acctest.Tenant)
	role, secret := site.Secret(t, acctest.Tenant, "deploy", 0, "admin")
	w := acctest.NewWorkspace(t, append(site.Env(), "OSUPGRADE_TOKEN=", "OSUPGRADE_ROLE_ID="+role, "OSUPGRADE_SECRET_ID="+secret)...)
	w.Write(t, "main.tf", acctest.Requirement+approle("token_policies = [\"admin\"]\n overwrite_existing = true"))
	w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	if out := oneLine(w.Run(t, 1, "destroy", "-auto-approve", "-no-color")); !strings.Contains(out, "The provider is logged in as approle deploy of tenant acme. After its deletion it could not undo what it did.") {
		t.Errorf("the destroy says %s", out)
	}
}

// TestApprole_lostAnswer: a creation whose answer is lost is followed by a read, and the role-id
// is known all the same.
func TestApprole_lostAnswer(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	w := acctest.NewWorkspace(t, append(server.Env(), "OSUPGRADE_VALIDATE_AT_PLAN=false")...)
	w.Write(t, "main.tf", acctest.Requirement+approle(`token_policies = ["read"]`)+"output \"role_id\" { value = osupgrade_approle.deploy.role_id }\n")
	api.Inject(http.MethodPut, "/approles/deploy", fakeapi.CloseAfter())
	w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	w.Run(t, 0, "plan", "-detailed-exitcode", "-no-color")
	if out := w.Run(t, 0, "output", "role_id"); len(strings.TrimSpace(out)) != len(`""`)+36 || api.Pending() > 0 {
		t.Errorf("the role-id is %s", out)
	}
}

// TestApprole_replaced: -replace makes another approle, with another role-id.
func TestApprole_replaced(t *testing.T) {
	t.Parallel()
	site := realagent.StartSite(t, acctest.Tenant)
	w := acctest.NewWorkspace(t, site.Env()...)
	w.Write(t, "main.tf", acctest.Requirement+approle(`token_policies = ["read"]`)+"output \"role_id\" { value = osupgrade_approle.deploy.role_id }\n")
	w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	before := w.Run(t, 0, "output", "role_id")
	w.Run(t, 0, "apply", "-auto-approve", "-no-color", "-replace=osupgrade_approle.deploy")
	if after := w.Run(t, 0, "output", "role_id"); after == before {
		t.Errorf("the role-id is %s before and after", after)
	}
	w.Run(t, 0, "plan", "-detailed-exitcode", "-no-color")
}

// TestApprole_roleIDUnread: an approle whose role-id could not be read after its creation is not
// tainted. An update without a refresh goes on without the role-id, and the next refresh reads it.
func TestApprole_roleIDUnread(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	w := acctest.NewWorkspace(t, server.Env()...)
	w.Write(t, "main.tf", acctest.Requirement+"variable \"policy\" {\n default = \"read\"\n}\n"+approle("token_policies = [var.policy]")+"output \"role_id\" { value = osupgrade_approle.deploy.role_id }\n")
	api.Inject(http.MethodGet, "/approles/deploy", fakeapi.Status(http.StatusForbidden, "not now"))
	out := oneLine(w.Run(t, 0, "apply", "-auto-approve", "-no-color"))
	if !strings.Contains(out, "The approle could not be read back") || !strings.Contains(out, "the read of role_id after it failed") || api.Pending() > 0 {
		t.Errorf("the creation says %s", out)
	}
	for _, refresh := range []string{"-refresh=false", "-refresh=true"} {
		if out := oneLine(w.Run(t, 0, "apply", "-auto-approve", "-no-color", "-var=policy=write", refresh)); !strings.Contains(out, " 0 destroyed") {
			t.Errorf("the apply with %s says %s", refresh, out)
		}
	}
	if out := w.Run(t, 0, "output", "role_id"); len(strings.TrimSpace(out)) != len(`""`)+36 {
		t.Errorf("the role-id is %s", out)
	}
}
