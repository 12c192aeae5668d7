package provider_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest/realagent"
)

// releaseNamed is a release with these attributes, and the environment basel that names it.
func releaseNamed(name, body string) string {
	return "resource \"osupgrade_release\" \"x\" {\n name = \"" + name + "\"\n" + body + "\n lifecycle {\n create_before_destroy = true\n }\n}\n" +
		basel(ofBasel+"\n releases = { os = osupgrade_release.x.name }")
}

// TestRelease takes a release through its life at the real agent: another spelling is no change, a
// description changes in place, another member replaces it while an environment names it, and what an
// operator withdraws stays withdrawn.
func TestRelease(t *testing.T) {
	t.Parallel()
	site := realagent.StartSite(t, acctest.Tenant)
	api := rest(t, site.Server)
	const address = "osupgrade_release.x"
	stored := func() map[string]client.Stored[v1.Release] {
		all, err := api.StoredReleases(t.Context(), acctest.Tenant)
		if err != nil {
			t.Error(err)
		}
		return all
	}
	has := func(name, text string) resource.TestCheckFunc {
		return func(*terraform.State) error {
			all := stored()
			if got := string(all[name].Value.Text()); len(all) != 1 || got != text {
				t.Errorf("the site has %d releases, %s: %s, want %s", len(all), name, got, text)
			}
			e, err := client.EnvironmentNamed("basel").Get(t.Context(), api, acctest.Tenant)
			if err == nil && e.Value.Named() != name {
				t.Errorf("the environment names %q, want %q", e.Value.Named(), name)
			}
			return err
		}
	}
	const (
		nov     = "version = \"2.1.0\"\n packages = { as_of = \"2026-11-21T00:00:00Z\", except = [\"b\", \"a\"] }"
		novText = `{"component":"os","version":"2.1.0","scheme":"opaque","packages":{"select":"all","as-of":"2026-11-21T00:00:00Z","except":["a","b"]}}`
		spelt   = "version = \"2.1.0\"\n component = \"os\"\n packages = { select = \"all\", as_of = \"2026-11-21T01:00:00+01:00\", except = [\"a\", \"b\"] }"
		dec     = "data = jsonencode({ image = \"box\", slots = [1, true] })"
		decText = `{"component":"os","scheme":"opaque","data":{"image":"box","slots":[1,true]}}`
	)
	acctest.Run(t, resource.TestCase{
		CheckDestroy: func(*terraform.State) error {
			if all := stored(); len(all) > 0 {
				t.Errorf("after destroy there are %v", all)
			}
			return nil
		},
		Steps: []resource.TestStep{
			{Config: site.Config(releaseNamed("nov", nov)), ConfigPlanChecks: plans(address, plancheck.ResourceActionCreate), Check: has("nov", novText)},
			{Config: site.Config(releaseNamed("nov", spelt+"\n description = \"November\"")), ConfigPlanChecks: plans(address, plancheck.ResourceActionUpdate), Check: has("nov", novText)},
			{PreConfig: func() {
				if err := api.WithdrawRelease(t.Context(), acctest.Tenant, "nov", "loses routes"); err != nil {
					t.Error(err)
				}
			}, Config: site.Config(releaseNamed("nov", spelt+"\n description = \"late November\"")), ConfigPlanChecks: plans(address, plancheck.ResourceActionUpdate), Check: func(*terraform.State) error {
				if r := stored()["nov"].Value; r.Withdrawn == nil || r.Withdrawn.Reason != "loses routes" || r.Description != "late November" {
					t.Errorf("it is %+v", r)
				}
				return nil
			}},
			{Config: site.Config(releaseNamed("dec", dec)), ConfigPlanChecks: plans(address, plancheck.ResourceActionCreateBeforeDestroy), Check: has("dec", decText)},
			{Config: site.Config(releaseNamed("dec", dec+"\n withdrawn = { reason = \"worse\" }")), ConfigPlanChecks: plans(address, plancheck.ResourceActionUpdate), Check: func(*terraform.State) error {
				if w := stored()["dec"].Value.Withdrawn; w == nil || w.Reason != "worse" || w.By == "" || w.At.IsZero() {
					t.Errorf("it is withdrawn %+v", w)
				}
				return nil
			}},
			{ResourceName: address, ImportState: true, ImportStateId: "acme/dec", ImportStateKind: resource.ImportBlockWithID},
			{ResourceName: address, ImportState: true, ImportStateId: "acme/dec", ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name"},
		},
	})
}

// TestRelease_refused: each mistake is refused at plan, at its attribute.
func TestRelease_refused(t *testing.T) {
	t.Parallel()
	_, server := acctest.Fake(t)
	only := func(body string) string {
		return "resource \"osupgrade_release\" \"x\" {\n name = \"nov\"\n" + body + "\n}\n"
	}
	var steps []resource.TestStep
	for _, row := range []struct{ config, says string }{
		{only(""), "Exactly one of these attributes must be configured: [packages,images,data]"},
		{only("packages = {}\n data = \"1\""), "Invalid Attribute Combination"},
		{only("data = \"{\""), "it is not JSON; use jsonencode()"},
		{only("data = \"null\""), "null is not a value"},
		{only("packages = { as_of = \"yesterday\" }"), "it is not a time (RFC 3339)"},
		{only("packages = { as_of = \"2999-01-01T00:00:00Z\" }"), "is in the future"},
		{only("packages = { select = \"listed\" }"), "name the packages that select listed upgrades"},
		{only("packages = {}\n from = [\">= 2\"]"), "have no order; use = or another scheme"},
		{only("packages = {}\n scheme = \"deb\"\n requires = { kernel = \"=> 6\" }"), "is not a range of versions"},
		{only("images = [{ url = \"x\", platform = \"linux/sparc\" }]"), "linux/sparc"},
		{only("images = [{ url = \"https://a:b@example.com/x\" }]"), "whoever reads the configuration would read it"},
		{only("packages = {}\n downgrade = true"), "nothing is a downgrade"},
		{basel(ofBasel + "\n releases = { os = \"nov\" }"), "is no release of tenant acme; declare it first"},
		{basel(ofBasel + "\n releases = { os = \"nov\" }\n follow = {}"), "give only one of them"},
		{basel(ofBasel + "\n follow = { age = \"400d\" }"), "is too long; use 0s to 365d"},
	} {
		steps = append(steps, resource.TestStep{Config: server.Config(row.config), PlanOnly: true, ExpectError: spoken(row.says)})
	}
	acctest.Run(t, resource.TestCase{Steps: steps})
}

// TestReleases: the data source tells what names each release, and how many hosts have it.
func TestReleases(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	api.SetRelease(acctest.Tenant, "dec", v1.Release{Data: []byte("1")})
	api.SetRelease(acctest.Tenant, "nov", v1.Release{Version: "2.1.0", Data: []byte("2"), Installs: map[string]string{"app": "2.1.0"}})
	e := v1.Environment{Match: v1.Match{Roles: []string{"edge"}}}
	e.Releases = map[string]string{"os": "nov"}
	api.SetEnvironment(acctest.Tenant, "basel", e)
	host := func(name, version string, online bool) v1.Host {
		return v1.Host{Hostname: name, Online: online, Versions: map[string]string{"app": version}}
	}
	upgraded := func(h v1.Host, release string) v1.Host {
		h.Release = release
		return h
	}
	entry := func(dec string, haveDec int64, state string, hosts knownvalue.Check) statecheck.StateCheck {
		return statecheck.ExpectKnownValue("data.osupgrade_releases.x", tfjsonpath.New("releases"), knownvalue.ListExact([]knownvalue.Check{
			knownvalue.ObjectPartial(map[string]knownvalue.Check{
				"name": knownvalue.StringExact("dec"), "state": knownvalue.StringExact(dec), "hosts": knownvalue.Int64Exact(haveDec), "named_by": knownvalue.ListSizeExact(0), "withdrawn": knownvalue.Null(),
			}),
			knownvalue.ObjectPartial(map[string]knownvalue.Check{
				"name": knownvalue.StringExact("nov"), "version": knownvalue.StringExact("2.1.0"), "state": knownvalue.StringExact(state), "hosts": hosts,
				"named_by": knownvalue.ListExact([]knownvalue.Check{knownvalue.StringExact("environment basel")}),
			}),
		}))
	}
	config := server.Config("data \"osupgrade_releases\" \"x\" {}\n")
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: config, ConfigStateChecks: []statecheck.StateCheck{entry("imported", 0, "imported", knownvalue.Int64Exact(0))}},
		{
			PreConfig: func() {
				api.SetHosts(acctest.Tenant, upgraded(host("h1", "2.1.0", true), "dec"), host("h2", "2.0.0", true))
			},
			Config: config, ConfigStateChecks: []statecheck.StateCheck{entry("imported", 1, "imported", knownvalue.Int64Exact(1))},
		},
		{
			PreConfig: func() {
				api.SetHosts(acctest.Tenant, upgraded(host("h1", "2.1.0", true), "dec"), host("h2", "2.0.0", false))
			},
			Config: config, ConfigStateChecks: []statecheck.StateCheck{entry("active", 1, "active", knownvalue.Int64Exact(1))},
		},
	}})
}

// TestRelease_sameName: a member that differs under the same name is planned as a replacement.
func TestRelease_sameName(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	config := func(version string) string {
		return server.Config("resource \"osupgrade_release\" \"x\" {\n name = \"nov\"\n version = \"" + version + "\"\n packages = {}\n}\n")
	}
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: config("2.1.0")},
		{Config: config("2.1.1"), ConfigPlanChecks: plans("osupgrade_release.x", plancheck.ResourceActionReplace), Check: func(*terraform.State) error {
			r, _, ok := api.Release(acctest.Tenant, "nov")
			if !ok || r.Version != "2.1.1" {
				t.Errorf("the server has %+v, %v", r, ok)
			}
			return nil
		}},
	}})
}
