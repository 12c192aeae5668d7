package rollout_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

// later is a value that is unknown before the apply.
func later(value string) string {
	return "resource \"terraform_data\" \"later\" {\n input = " + value + "\n}\n"
}

const out = "terraform_data.later.output"

// TestAccRollout_valuesThatAreNotKnownYet puts values of complete into outputs
// of other resources: texts, numbers and lists of texts, then objects and lists
// of them.
func TestAccRollout_valuesThatAreNotKnownYet(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	var steps []resource.TestStep
	for _, values := range [][]string{
		{
			`"canary"`, `["h02", "h01"]`, `"edge"`, `{ ring = "0", "topology/zone" = "" }`, `"30m"`, `"10%"`, `"5%"`, `"pause"`, `"10m"`,
			`"systemd"`, `"nginx.service"`, `204`, `["--least", "60m"]`, `"drain"`, `"2h"`,
		},
		{
			`{ hosts = ["h02", "h01"], labels = { ring = "0", "topology/zone" = "" }, roles = ["edge"], applications = ["os-upgrade-debian"] }`,
			`{ labels = { pinned = "yes" } }`, `{ prepare = "2h", upgrade = "90m", reboot = "20m" }`,
			`[{ type = "http", url = "http://127.0.0.1/healthz", status = 204, passes = 3, interval = "2s", timeout = "1m" }]`,
			`{ type = "http", url = "https://lb.example/hosts/{host}", method = "PUT" }`,
		},
	} {
		body, others := complete, ""
		for i, value := range values {
			name := fmt.Sprintf("later%d", i)
			was := body
			for _, before := range []string{"= ", "["} {
				body = strings.Replace(body, before+value, before+"terraform_data."+name+".output", 1)
			}
			if body == was {
				t.Fatalf("%s is not a value of complete", value)
			}
			others += "resource \"terraform_data\" \"" + name + "\" {\n input = " + value + "\n}\n"
		}
		steps = append(steps, resource.TestStep{Config: server.Config(others, block(body)), Check: stored(api, whole())}, resource.TestStep{Config: server.Config()})
	}
	acctest.Run(t, resource.TestCase{Steps: steps})
}

// TestAccRollout_whatIsKnownIsCheckedAtPlan checks that an unknown value prevents only
// the validation of values beside and below it.
func TestAccRollout_whatIsKnownIsCheckedAtPlan(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{{
		Config: server.Config(later(`"a"`), block(`
  stages       = [{ name = `+out+`, match = { roles = ["a"] } }, { name = "B" }]
  max_failures = "one"
  reserve      = `+out)),
		PlanOnly:    true,
		ExpectError: regexp.MustCompile(`(?s)value of stages\[1\].name.*value of max_failures`),
	}}})
	if n := len(api.Requests()); n > 0 {
		t.Errorf("the server had %d requests, want none", n)
	}
}

func TestAccRollout_whatTurnsOutWrongIsToldAtApply(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	acctest.Run(t, resource.TestCase{CheckDestroy: absent(api), Steps: []resource.TestStep{{
		Config:      server.Config(later(`"soon"`), block("reserve = "+out)),
		ExpectError: regexp.MustCompile(`(?s)value of reserve.*"soon"\s+is\s+not\s+a\s+duration`),
	}}})
}

func TestAccRollout_providerThatIsNotKnownYet(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	config := acctest.Requirement + later(`{ endpoint = "`+server.Endpoint+`", tenant = "acme" }`) + `
provider "osupgrade" {
  endpoint = ` + out + `.endpoint
  tenant   = ` + out + `.tenant
  token    = "` + server.Token + `"
}
` + block(complete)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: config, Check: stored(api, whole())},
		{Config: config, ConfigPlanChecks: emptyPlan()},
	}})
}
