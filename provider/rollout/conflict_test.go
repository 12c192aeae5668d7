package rollout_test

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

func foreignPause(r *v1.Rollout) { r.Paused, r.MaxFailures = true, "7%" }

// onPut makes an edit just before the next PUT of an apply. Dry runs do not count.
func onPut(api *fakeapi.Server, edit func(*v1.Rollout)) do {
	var fault fakeapi.Fault
	fault = func(serve http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("validate") == "true" {
				api.Inject(http.MethodPut, "", fault)
			} else {
				api.EditRollout(acctest.Tenant, edit)
			}
			serve.ServeHTTP(w, r)
		})
	}
	return func() { api.Inject(http.MethodPut, "", fault) }
}

func TestAccRollout_refusesToOverwriteWhatChangedSinceThePlan(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*fakeapi.Server) do{
		"just before the apply": func(api *fakeapi.Server) do {
			return func() { api.EditRollout(acctest.Tenant, foreignPause) }
		},
		"just before the write": func(api *fakeapi.Server) do { return onPut(api, foreignPause) },
	} {
		for kind, more := range map[string]string{"": "", ", also with overwriting": "overwrite_existing = true\n"} {
			t.Run(name+kind, func(t *testing.T) {
				t.Parallel()
				api, server := acctest.Fake(t)
				acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
					{Config: server.Config(block(more + `max_failures = "5%"`))},
					{
						Config:           server.Config(block(more + "max_failures = \"5%\"\n splay = \"1m\"")),
						ConfigPlanChecks: expect(change(api)),
						ExpectError: regexp.MustCompile(`(?s)Somebody else changed paused of tenant acme.*when planned: none\s+on the server now:\s+- true.*Run plan again` +
							`.*Somebody else changed max_failures of tenant acme.*when planned:\s+- 5%\s+on the server now:\s+- 7%`),
					},
					{
						Config: server.Config(block(more + "max_failures = \"5%\"\n splay = \"1m\"")),
						Check:  stored(api, v1.Rollout{MaxFailures: "5%", Splay: "1m"}),
					},
				}})
			})
		}
	}
}

func TestAccRollout_whatMeansTheSameIsNoConflict(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(block(`reserve = "1h"`))},
		{
			Config: server.Config(block("reserve = \"1h\"\n splay = \"1m\"")),
			ConfigPlanChecks: expect(do(func() {
				api.EditRollout(acctest.Tenant, func(r *v1.Rollout) { r.Reserve, r.OnFailure, r.Splay = "60m", "stop", "0s" })
			})),
			Check: stored(api, v1.Rollout{Reserve: "1h", Splay: "1m"}),
		},
	}})
}

func TestAccRollout_deleteRefusesWhatChangedSinceThePlan(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	acctest.Run(t, resource.TestCase{CheckDestroy: absent(api), Steps: []resource.TestStep{
		{Config: server.Config(block(complete))},
		{
			Config:           server.Config("# nothing"),
			ConfigPlanChecks: expect(do(func() { api.EditRollout(acctest.Tenant, func(r *v1.Rollout) { r.Reserve = "3h" }) })),
			ExpectError:      regexp.MustCompile(`(?s)Unable to delete osupgrade_rollout.*Somebody else changed reserve`),
		},
		{Config: server.Config("# nothing"), Check: absent(api)},
	}})
}

func TestAccRollout_adopts(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	api.SetRollout(acctest.Tenant, v1.Rollout{Reserve: "60m", OnFailure: "stop", MaxFailures: "3"})
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config: server.Config(block(`reserve = "1h"`)),
			ExpectError: regexp.MustCompile(`(?s)has max_failures already, which this resource did not\s+manage.*on the server:\s+- 3\s+in the configuration: none` +
				`.*import \{\s+to = osupgrade_rollout.example\s+id = "acme".*overwrite_existing = true`),
		},
		{Config: server.Config(block("reserve = \"1h\"\n max_failures = 3")), Check: writes(api, 0)},
	}})
}

func TestAccRollout_overwritesWhenTold(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	api.SetRollout(acctest.Tenant, whole())
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{{
		Config: server.Config(block("overwrite_existing = true\n reserve = \"1h\"")),
		Check:  stored(api, v1.Rollout{Reserve: "1h"}),
	}}})
}

func TestAccRollout_twoForOneTenantAreRefused(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	acctest.Run(t, resource.TestCase{CheckDestroy: absent(api), Steps: []resource.TestStep{{
		Config:      server.Config(block(""), "resource \"osupgrade_rollout\" \"rival\" {\n tenant = \"acme\"\n paused = true\n}\n"),
		ExpectError: regexp.MustCompile(`Two resources manage the rollout of one tenant`),
	}}})
}

func TestAccRollout_aLostAnswerIsNoConflict(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{{
		Config:           server.Config(block(complete)),
		ConfigPlanChecks: expect(do(func() { api.Inject(http.MethodPut, "", fakeapi.CloseAfter()) })),
		Check:            stored(api, whole()),
	}}})
}
