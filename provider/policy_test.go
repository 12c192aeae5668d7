package provider_test

import (
	"net/http"
	"regexp"
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

// plans checks what a plan does with a resource.
func plans(address string, action plancheck.ResourceActionType) resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(address, action)}}
}

// spoken matches words as the CLI breaks them into lines.
func spoken(words string) *regexp.Regexp {
	fields := strings.Fields(words)
	for i, field := range fields {
		fields[i] = regexp.QuoteMeta(field)
	}
	return regexp.MustCompile(strings.Join(fields, `[\s│╷╵]+`))
}

// policy is the policy night of these rules.
func policy(body string) string {
	return "resource \"osupgrade_policy\" \"night\" {\n name = \"night\"\n" + body + "\n}\n"
}

const nightRules = `rest_api = { rules = [
  { path = "/v1/*/os-upgrade/**", operations = { read = "allow" } },
  { path = "/v1/state/os-upgrade/pause", description = "Stop.", operations = { execute = "allow", all = "reject" } },
] }`

func nightPolicy() v1.Policy {
	return v1.Policy{RestAPI: &v1.PolicyRules{Rules: []v1.PolicyRule{
		{Path: "/v1/*/os-upgrade/**", Operations: map[string]string{"read": "allow"}},
		{Path: "/v1/state/os-upgrade/pause", Description: "Stop.", Operations: map[string]string{"execute": "allow", "all": "reject"}},
	}}}
}

// TestPolicy takes a policy through its life at the real agent.
func TestPolicy(t *testing.T) {
	t.Parallel()
	site := realagent.StartSite(t, acctest.Tenant)
	api := rest(t, site.Server)
	const address = "osupgrade_policy.night"
	has := func(want v1.Policy) resource.TestCheckFunc {
		return func(*terraform.State) error {
			stored, err := client.PolicyNamed("night").Get(t.Context(), api, acctest.Tenant)
			if err == nil && !v1.SamePolicy(stored.Value, want) {
				t.Errorf("the site has %+v, want %+v", stored.Value, want)
			}
			return err
		}
	}
	none := v1.Policy{RestAPI: &v1.PolicyRules{}}
	byHand := func(p v1.Policy) func() {
		return func() {
			if _, err := client.PolicyNamed("night").Put(t.Context(), api, acctest.Tenant, client.Stored[v1.Policy]{}, p, client.Precondition{}); err != nil {
				t.Error(err)
			}
		}
	}
	acctest.Run(t, resource.TestCase{
		CheckDestroy: func(*terraform.State) error {
			if all, err := api.Policies(t.Context(), acctest.Tenant); err != nil || len(all) > 0 {
				t.Errorf("after destroy there are %v, %v", all, err)
			}
			return nil
		},
		Steps: []resource.TestStep{
			{Config: site.Config(policy(nightRules)), ConfigPlanChecks: plans(address, plancheck.ResourceActionCreate), Check: has(nightPolicy())},
			{Config: site.Config(policy("rest_api = { rules = [] }")), ConfigPlanChecks: plans(address, plancheck.ResourceActionUpdate), Check: has(none)},
			{PreConfig: byHand(nightPolicy()), Config: site.Config(policy("rest_api = { rules = [] }")), ConfigPlanChecks: plans(address, plancheck.ResourceActionUpdate), Check: has(none)},
			{Config: site.Config(policy(nightRules)), Check: has(nightPolicy())},
			{ResourceName: address, ImportState: true, ImportStateId: "acme/night", ImportStateKind: resource.ImportBlockWithID},
			{ResourceName: address, ImportState: true, ImportStateId: "acme/night", ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name"},
			{PreConfig: func() {
				if err := client.PolicyNamed("night").Delete(t.Context(), api, acctest.Tenant, client.Precondition{}); err != nil {
					t.Error(err)
				}
			}, Config: site.Config(policy(nightRules)), ConfigPlanChecks: plans(address, plancheck.ResourceActionCreate), Check: has(nightPolicy())},
			{Config: site.Config(strings.Replace(policy(nightRules), "night", "evening", 2))},
		},
	})
}

// TestPolicy_refused: each mistake is refused at plan, at its attribute.
func TestPolicy_refused(t *testing.T) {
	t.Parallel()
	site := realagent.StartSite(t, acctest.Tenant)
	rule := func(text string) string { return policy("rest_api = { rules = [{ " + text + " }] }") }
	var steps []resource.TestStep
	for _, row := range []struct{ config, says string }{
		{rule(`path = "/v1/**", operations = { write = "allow" }`), `"write" is no operation; use all, read, create, update, delete, execute`},
		{rule(`path = "/v1/**", operations = { read = "yes" }`), `"yes" is neither allow nor reject`},
		{rule(`path = "/v1/**", operations = {}`), `the rule says nothing; give allow or reject`},
		{rule(`path = "/v1/**/a", operations = { read = "allow" }`), `Attribute: rest_api.rules[0].path`},
		{strings.Replace(rule(`path = "/v1/**", operations = { read = "allow" }`), `"night"`, `"viewer"`, 2), `"viewer" is the name of a role; use another`},
		{strings.Replace(rule(`path = "/v1/**", operations = { read = "allow" }`), `name = "night"`, `name = "Night"`, 1), `"Night" is not a name`},
	} {
		steps = append(steps, resource.TestStep{Config: site.Config(row.config), PlanOnly: true, ExpectError: spoken(row.says)})
	}
	acctest.Run(t, resource.TestCase{Steps: steps})
}

// TestPolicy_taken: a policy that somebody else made is not overwritten.
func TestPolicy_taken(t *testing.T) {
	t.Parallel()
	site := realagent.StartSite(t, acctest.Tenant)
	other := v1.Policy{RestAPI: &v1.PolicyRules{Rules: []v1.PolicyRule{}}}
	if _, err := client.PolicyNamed("night").Put(t.Context(), rest(t, site.Server), acctest.Tenant, client.Stored[v1.Policy]{}, other, client.Precondition{}); err != nil {
		t.Fatal(err)
	}
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: site.Config(policy(nightRules)), PlanOnly: true, ExpectError: spoken("Policy night of tenant acme has rest_api already, which this resource did not manage")},
		{Config: site.Config(policy(nightRules + "\noverwrite_existing = true"))},
	}})
}

// TestPolicy_inUse: a policy that a token names is deleted only with force_destroy, and the
// refusal says what to do.
func TestPolicy_inUse(t *testing.T) {
	t.Parallel()
	site := realagent.StartSite(t, acctest.Tenant)
	api := rest(t, site.Server)
	w := acctest.NewWorkspace(t, site.Env()...)
	w.Write(t, "main.tf", acctest.Requirement+policy(nightRules))
	w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	if _, err := api.NewToken(t.Context(), acctest.Tenant, v1.NewToken{Name: "phone", Allow: []string{"night"}}); err != nil {
		t.Fatal(err)
	}
	out := oneLine(w.Run(t, 1, "destroy", "-auto-approve", "-no-color"))
	for _, want := range []string{`policy "night" is named by token phone`, "create_before_destroy = true", "set force_destroy = true"} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q in %s", want, out)
		}
	}
	w.Write(t, "main.tf", acctest.Requirement+policy(nightRules+"\nforce_destroy = true"))
	w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	if out := oneLine(w.Run(t, 0, "destroy", "-auto-approve", "-no-color")); !strings.Contains(out, "it allows nothing to the users, approles and tokens that still name it") {
		t.Errorf("the plan does not warn: %s", out)
	}
}

// TestPolicy_lostAnswers: a write or deletion whose answer is lost is followed by a read.
func TestPolicy_lostAnswers(t *testing.T) {
	t.Parallel()
	for _, method := range []string{http.MethodPut, http.MethodDelete} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			api, server := acctest.Fake(t)
			w := acctest.NewWorkspace(t, append(server.Env(), "OSUPGRADE_VALIDATE_AT_PLAN=false")...)
			w.Write(t, "main.tf", acctest.Requirement+policy(nightRules))
			api.Inject(method, "/policies/night", fakeapi.CloseAfter())
			w.Run(t, 0, "apply", "-auto-approve", "-no-color")
			w.Run(t, 0, "plan", "-detailed-exitcode", "-no-color")
			w.Run(t, 0, "destroy", "-auto-approve", "-no-color")
			if api.Pending() != 0 {
				t.Error("no answer was lost")
			}
		})
	}
}
