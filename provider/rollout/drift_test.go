package rollout_test

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

// TestAccRollout_driftIsPutBack makes some of the edits of TestFromAPI_seesEveryEdit.
func TestAccRollout_driftIsPutBack(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	steps := []resource.TestStep{{Config: server.Config(block(complete))}}
	for name, edit := range map[string]func(*v1.Rollout){
		"stage removed":   func(r *v1.Rollout) { r.Stages = r.Stages[:1] },
		"labels":          func(r *v1.Rollout) { r.Stages[0].Match.Labels["ring"] = "1" },
		"max-failures":    func(r *v1.Rollout) { r.MaxFailures = "50%" },
		"paused":          func(r *v1.Rollout) { r.Paused = false },
		"unit":            func(r *v1.Rollout) { r.Checks.BeforeHost[0].Unit = "sshd.service" },
		"hook gone":       func(r *v1.Rollout) { r.Hooks.Undrain = nil },
		"everything gone": func(r *v1.Rollout) { *r = v1.Rollout{} },
	} {
		steps = append(steps, resource.TestStep{
			PreConfig: func() {
				t.Log(name)
				api.EditRollout(acctest.Tenant, edit)
			},
			Config:           server.Config(block(complete)),
			ConfigPlanChecks: action(plancheck.ResourceActionUpdate),
			Check:            stored(api, whole()),
		})
	}
	acctest.Run(t, resource.TestCase{Steps: steps})
}

// TestAccRollout_whatOthersAddIsDrift checks that an undeclared attribute has its
// default, and that apply reverts another value.
func TestAccRollout_whatOthersAddIsDrift(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	config := server.Config(block(`stages = [{ name = "rest" }]`))
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: config},
		{
			PreConfig: func() {
				api.EditRollout(acctest.Tenant, func(r *v1.Rollout) {
					r.Paused, r.Stages[0].Soak, r.Hooks = true, "1h", &v1.RolloutHooks{Drain: &v1.Hook{Type: "exec", Script: "a"}}
				})
			},
			Config:           config,
			ConfigPlanChecks: action(plancheck.ResourceActionUpdate),
			Check:            stored(api, v1.Rollout{Stages: []v1.Stage{{Name: "rest"}}}),
		},
	}})
}

func TestAccRollout_disappears(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(block(complete))},
		{
			PreConfig:        func() { api.RemoveRollout(acctest.Tenant) },
			Config:           server.Config(block(complete)),
			ConfigPlanChecks: action(plancheck.ResourceActionCreate),
			Check:            stored(api, whole()),
		},
	}})
}

func TestAccRollout_isNotForgottenWithoutProof(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(block(complete))},
		{
			PreConfig: func() {
				api.Inject(http.MethodGet, "", fakeapi.Status(http.StatusNotFound, `tenant "acme" does not exist`))
			},
			Config:      server.Config(block(complete)),
			PlanOnly:    true,
			ExpectError: regexp.MustCompile(`(?s)Unable to read osupgrade_rollout.*does not exist`),
		},
		{Config: server.Config(block(complete)), ConfigPlanChecks: emptyPlan()},
	}})
}
