package config_test

import (
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

// TestAccConfig_release: what runs install is owned where it is declared, and stays as it is where it
// is not.
func TestAccConfig_release(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	api.SetRelease(acctest.Tenant, "nov", v1.Release{Data: []byte("1")})
	api.SetRelease(acctest.Tenant, "dec", v1.Release{Data: []byte("2")})
	const own = "worker_applications = [\"a\"]\n"
	goes := func(of release.Target) resource.TestCheckFunc {
		return stored(api, v1.OSUpgrade{WorkerApplications: apps("a"), Target: of})
	}
	nov := release.Target{Releases: map[string]string{"os": "nov"}}
	dec := release.Target{Releases: map[string]string{"os": "dec"}}
	follow := release.Target{Follow: &release.Follow{Select: "security", Age: "7d"}}
	byHand := func(of release.Target) func() {
		return func() { api.EditConfig(acctest.Tenant, func(c *v1.OSUpgrade) { c.Target = of }) }
	}
	const named = own + `releases = { os = "nov" }`
	acctest.Run(t, resource.TestCase{
		CheckDestroy: func(*terraform.State) error { return nil },
		Steps: []resource.TestStep{
			{Config: server.Config(block(named)), Check: goes(nov)},
			{PreConfig: byHand(dec), Config: server.Config(block(named)), ConfigPlanChecks: action(plancheck.ResourceActionUpdate), Check: goes(nov)},
			{Config: server.Config(block(own + `follow = { select = "security", age = "168h" }`)), Check: goes(follow)},
			{Config: server.Config(block(own + `follow = { select = "security", age = "7d" }`)), Check: goes(follow)},
			{Config: server.Config(block(own)), Check: goes(follow)},
			{PreConfig: byHand(dec), Config: server.Config(block(own)), ConfigPlanChecks: emptyPlan(), Check: goes(dec)},
			{Config: server.Config(block(own + "releases = { os = \"nov\" }\nfollow = {}")), ExpectError: regexp.MustCompile("Invalid Attribute Combination")},
			{Config: server.Config(block(own)), Check: goes(dec)},
		},
	})
}
