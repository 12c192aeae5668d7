package provider_test

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest/realagent"
)

// racks is the disruption budget racks with these attributes.
func racks(body string) string {
	return "resource \"osupgrade_disruption_budget\" \"racks\" {\n name = \"racks\"\n" + body + "\n}\n"
}

// TestDisruptionBudget takes a disruption budget through its life at the real agent.
func TestDisruptionBudget(t *testing.T) {
	t.Parallel()
	site := realagent.StartSite(t, acctest.Tenant)
	api := rest(t, site.Server)
	const address = "osupgrade_disruption_budget.racks"
	has := func(want v1.Budget) resource.TestCheckFunc {
		return func(*terraform.State) error {
			stored, err := client.BudgetNamed("racks").Get(t.Context(), api, acctest.Tenant)
			if err == nil && !v1.SameBudget(stored.Value, want) {
				t.Errorf("the site has %+v, want %+v", stored.Value, want)
			}
			return err
		}
	}
	one := v1.Budget{Per: "rack", MaxUnavailable: "1"}
	queried := v1.Budget{MaxUnavailable: "1", Prometheus: &rollout.Query{URL: "http://prometheus:9090", Query: "max(pg_replication_lag_seconds)", Below: "5"}}
	const queriedConfig = `max_unavailable = 1
 prometheus = {
  url   = "http://prometheus:9090"
  query = "max(pg_replication_lag_seconds)"
  below = 5
 }`
	shop := v1.Budget{Match: &v1.Match{Labels: map[string]string{"shop": "basel"}}, MinAvailable: "50%"}
	const shopConfig = `match = { labels = { shop = "basel" } }
 min_available = "50%"`
	byHand := func() {
		if _, err := client.BudgetNamed("racks").Put(t.Context(), api, acctest.Tenant, client.Stored[v1.Budget]{}, one, client.Precondition{}); err != nil {
			t.Error(err)
		}
	}
	acctest.Run(t, resource.TestCase{
		CheckDestroy: func(*terraform.State) error {
			if all, err := api.Budgets(t.Context(), acctest.Tenant); err != nil || len(all) > 0 {
				t.Errorf("after destroy there are %v, %v", all, err)
			}
			return nil
		},
		Steps: []resource.TestStep{
			{Config: site.Config(racks(`per = "rack"
 max_unavailable = 1`)), ConfigPlanChecks: plans(address, plancheck.ResourceActionCreate), Check: has(one)},
			{Config: site.Config(racks(shopConfig)), ConfigPlanChecks: plans(address, plancheck.ResourceActionUpdate), Check: has(shop)},
			{PreConfig: byHand, Config: site.Config(racks(shopConfig)), ConfigPlanChecks: plans(address, plancheck.ResourceActionUpdate), Check: has(shop)},
			{Config: site.Config(racks(queriedConfig)), ConfigPlanChecks: plans(address, plancheck.ResourceActionUpdate), Check: has(queried)},
			{Config: site.Config(racks(shopConfig)), ConfigPlanChecks: plans(address, plancheck.ResourceActionUpdate), Check: has(shop)},
			{ResourceName: address, ImportState: true, ImportStateId: "acme/racks", ImportStateKind: resource.ImportBlockWithID},
			{ResourceName: address, ImportState: true, ImportStateId: "acme/racks", ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name"},
		},
	})
}

// TestDisruptionBudget_refused: each mistake is refused at plan, at its attribute.
func TestDisruptionBudget_refused(t *testing.T) {
	t.Parallel()
	_, server := acctest.Fake(t)
	var steps []resource.TestStep
	for _, row := range []struct{ config, says string }{
		{racks(`per = "rack"`), "give max_unavailable or min_available"},
		{racks("max_unavailable = 1\n min_available = 1"), "give only one of them"},
		{racks("max_unavailable = 0"), "use at least 1 or 1%"},
		{racks(`max_unavailable = "many"`), `"many" is not a count`},
		{racks("max_unavailable = 1\n match = {}"), "it names no hosts"},
		{racks("max_unavailable = 1\n per = \"a b\""), "is not the key of a label"},
		{racks("max_unavailable = 1\n prometheus = { url = \"http://p:9090\", query = \"\" }"), "is not a query"},
		{racks("max_unavailable = 1\n prometheus = { url = \"p:9090\", query = \"up\" }"), "is not an address to call"},
		{racks("max_unavailable = 1\n prometheus = { url = \"http://p:9090\", query = \"up\", below = 1, above = 2 }"), "leaves no number above 2"},
		{strings.Replace(racks("max_unavailable = 1"), `name = "racks"`, `name = "Racks"`, 1), `"Racks"`},
	} {
		steps = append(steps, resource.TestStep{Config: server.Config(row.config), PlanOnly: true, ExpectError: spoken(row.says)})
	}
	acctest.Run(t, resource.TestCase{Steps: steps})
}

// TestDisruptionBudget_isWarnedOf: a plan warns of a label that no host has, and of a budget that
// lets fewer hosts leave service than the rollout.
func TestDisruptionBudget_isWarnedOf(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	api.SetHosts(acctest.Tenant, v1.Host{Hostname: "h01", Application: "app"})
	w := acctest.NewWorkspace(t, server.Env()...)
	w.Write(t, "main.tf", acctest.Requirement+racks("per = \"rack\"\n max_unavailable = 1"))
	told := strings.Join(acctest.Diagnostics(t, planned(w.Run(t, 0, "plan", "-json")))["osupgrade_disruption_budget.racks"], "\n")
	if want := `no known host has label "rack"`; !strings.Contains(told, want) {
		t.Errorf("no %q in %s", want, told)
	}
}
