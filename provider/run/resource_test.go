package run_test

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

const address = "osupgrade_run.test"

func block(body string) string { return "resource \"osupgrade_run\" \"test\" {\n" + body + "\n}\n" }

func release(name string) string { return block(`triggers = { release = "` + name + `" }`) }

func attribute(name, value string) resource.TestCheckFunc {
	return resource.TestCheckResourceAttr(address, name, value)
}

func planned(a plancheck.ResourceActionType) resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(address, a)}}
}

// runs checks how many runs the server has seen.
func runs(api *fakeapi.Server, want int) resource.TestCheckFunc {
	return func(*terraform.State) error {
		if got := len(api.Runs(acctest.Tenant)); got != want {
			return fmt.Errorf("the server has %d runs, want %d", got, want)
		}
		return nil
	}
}

// withHosts returns a fake API with two hosts, whose runs end with a given result.
func withHosts(t *testing.T, result, reason string) (*fakeapi.Server, acctest.Server) {
	t.Helper()
	api, server := acctest.Fake(t)
	api.SetHosts(acctest.Tenant, v1.Host{Hostname: "h01"}, v1.Host{Hostname: "h02"})
	ends(api, result, reason)
	return api, server
}

func ends(api *fakeapi.Server, result, reason string) {
	api.OnStart(func(tenant string, run v1.Run) {
		if result != "completed" {
			api.EditRun(tenant, run.ID, func(r *v1.Run) {
				r.Hosts[0].Status = "upgraded"
				r.Hosts[1].Status, r.Hosts[1].Error = "failed", "no space left on device"
			})
		}
		api.FinishRun(tenant, run.ID, result, reason)
	})
}

func TestAccRun_lifecycle(t *testing.T) {
	t.Parallel()
	api, server := withHosts(t, "completed", "")
	closed := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	pointOfNoReturn := func() {
		api.EditRun(acctest.Tenant, 42, func(r *v1.Run) { r.WayBack = &v1.WayBack{Until: "complete", Closed: &closed} })
	}
	acctest.Run(t, resource.TestCase{CheckDestroy: runs(api, 2), Steps: []resource.TestStep{
		{
			Config: server.Config(release("one")),
			Check: resource.ComposeAggregateTestCheckFunc(
				attribute("run_id", "41"), attribute("result", "completed"), attribute("tenant", "acme"),
				attribute("hosts.#", "2"), attribute("hosts.0.hostname", "h01"), attribute("hosts.0.status", "upgraded"),
				resource.TestCheckNoResourceAttr(address, "hosts.0.error"), resource.TestCheckNoResourceAttr(address, "way_back.%"),
				resource.TestCheckResourceAttrSet(address, "opened_at"), resource.TestCheckResourceAttrSet(address, "ended_at"),
			),
		},
		{
			Config:           server.Config(release("two")),
			ConfigPlanChecks: planned(plancheck.ResourceActionReplace),
			Check:            attribute("run_id", "42"),
		},
		{
			Config:           server.Config(block("triggers = { release = \"two\" }\n timeouts = { create = \"1h\" }")),
			PreConfig:        pointOfNoReturn,
			ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
			Check: resource.ComposeAggregateTestCheckFunc(attribute("run_id", "42"), runs(api, 2),
				attribute("way_back.until", "complete"), attribute("way_back.closed_at", "2026-11-27T12:00:00Z")),
		},
		{ResourceName: address, ImportState: true, ImportStateId: "acme/42", ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "run_id", ImportStateVerifyIgnore: []string{"triggers", "timeouts"}},
		{ResourceName: address, ImportState: true, ImportStateId: "42", ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "run_id", ImportStateVerifyIgnore: []string{"triggers", "timeouts"}},
	}})
}

func TestAccRun_asksForWhatIsConfigured(t *testing.T) {
	t.Parallel()
	api, server := withHosts(t, "completed", "")
	body := func(duration string) string {
		return server.Config(block("override_window = true\n reason = \"CVE-2026-1\"\n duration = \"" + duration + "\""))
	}
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config: body("4h"),
			Check: func(*terraform.State) error {
				if got := api.Runs(acctest.Tenant)[0].RequestReason; got != "CVE-2026-1" {
					return fmt.Errorf("the run was asked for with the reason %q", got)
				}
				return nil
			},
		},
		{
			Config:           body("240m"),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
			Check:            runs(api, 1),
		},
		// Only triggers and retry_of start another run.
		{Config: body("5h"), ConfigPlanChecks: planned(plancheck.ResourceActionUpdate), Check: runs(api, 1)},
		{Config: server.Config(block(`reason = "another"`)), ConfigPlanChecks: planned(plancheck.ResourceActionUpdate), Check: runs(api, 1)},
	}})
}

// TestAccRun_release checks that a run is started with the release that is named, that another one starts
// another run, and that a rollback, which has none, keeps the name that was asked for.
func TestAccRun_release(t *testing.T) {
	t.Parallel()
	api, server := withHosts(t, "completed", "")
	asked := func(release string) resource.TestCheckFunc {
		return func(*terraform.State) error {
			if r := api.Runs(acctest.Tenant)[0]; r.Release == nil || r.Release.Name != release {
				return fmt.Errorf("the run was started with the release %+v", r.Release)
			}
			return nil
		}
	}
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(block(`release = "spring"`)), Check: resource.ComposeAggregateTestCheckFunc(asked("spring"), attribute("release", "spring"))},
		{Config: server.Config(block(`reason = "another"`)), ConfigPlanChecks: planned(plancheck.ResourceActionUpdate), Check: resource.ComposeAggregateTestCheckFunc(runs(api, 1), attribute("release", "spring"))},
		{
			PreConfig: func() {
				api.OnStart(func(tenant string, run v1.Run) {
					api.EditRun(tenant, run.ID, func(r *v1.Run) { r.Release, r.RollbackOf = nil, 41 })
					api.FinishRun(tenant, run.ID, "completed", "")
				})
			},
			Config: server.Config(block(`release = "winter"`)), ConfigPlanChecks: planned(plancheck.ResourceActionReplace), Check: attribute("release", "winter"),
		},
		{Config: server.Config(block(`release = "winter"`)), ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}},
	}})
}

// TestAccRun_rollsARunBack checks that rollback_of is sent, and what does not go with it.
func TestAccRun_rollsARunBack(t *testing.T) {
	t.Parallel()
	api, server := withHosts(t, "completed", "")
	done := api.AddRun(acctest.Tenant, v1.Run{Phase: "finished", Result: "completed", Hosts: []v1.RunHost{{Hostname: "h01", Status: "upgraded"}}})
	back := func(more string) string {
		return server.Config(block(fmt.Sprintf("rollback_of = %d\n%s", done, more)))
	}
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: back(""), PlanOnly: true, ExpectError: regexp.MustCompile(`a\s+rollback\s+needs\s+one`)},
		{Config: back("reason = \"x\"\nrelease = \"spring\""), PlanOnly: true, ExpectError: regexp.MustCompile(`does\s+not\s+go\s+with\s+a\s+rollback`)},
		{Config: server.Config(block("rollback_of = 77\nreason = \"x\"")), PlanOnly: true, ExpectError: regexp.MustCompile(`(?s)There is no run to roll back.*Tenant\s+acme\s+has\s+no\s+run\s+77`)},
		{
			Config: back(`reason = "loses routes"`),
			Check: func(*terraform.State) error {
				if got := api.Runs(acctest.Tenant)[0].RollbackOf; got != done {
					return fmt.Errorf("the run rolls back run %d, want %d", got, done)
				}
				return nil
			},
		},
	}})
}

func TestAccRun_failureTaintsAndIsTriedAgain(t *testing.T) {
	t.Parallel()
	for _, result := range []string{"failed", "aborted", "timed-out"} {
		t.Run(result, func(t *testing.T) {
			t.Parallel()
			api, server := withHosts(t, result, "host h02 failed")
			acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
				{
					Config:      server.Config(release("one")),
					ExpectError: regexp.MustCompile(`(?s)Unable to complete osupgrade_run.*Run 41 of tenant acme ended with the result ` + result + `:\s+host\s+h02\s+failed\s+host\s+h02\s+is\s+failed:\s+no\s+space\s+left\s+on\s+device`),
				},
				{
					PreConfig:        func() { ends(api, "completed", "") },
					Config:           server.Config(release("one")),
					ConfigPlanChecks: planned(plancheck.ResourceActionReplace),
					Check:            resource.ComposeAggregateTestCheckFunc(attribute("run_id", "42"), attribute("result", "completed")),
				},
			}})
		})
	}
}

func TestAccRun_partialFailsUnlessItIsAccepted(t *testing.T) {
	t.Parallel()
	_, server := withHosts(t, "partial", "host h02 was not reached")
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config:      server.Config(release("one")),
			ExpectError: regexp.MustCompile(`(?s)Not all hosts of osupgrade_run were upgraded.*host\s+h02\s+is\s+failed.*set\s+retry_of\s+=\s+41.*set\s+accept\s+=`),
		},
		{
			Config: server.Config(block(`accept = ["completed", "partial"]`)),
			Check: resource.ComposeAggregateTestCheckFunc(
				attribute("result", "partial"), attribute("hosts.1.status", "failed"), attribute("hosts.1.error", "no space left on device")),
		},
	}})
}

// TestAccRun_aLostAnswerStartsOneRun: the start is repeated with the same id.
func TestAccRun_aLostAnswerStartsOneRun(t *testing.T) {
	t.Parallel()
	api, server := withHosts(t, "completed", "")
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{{
		Config: server.Config(release("one")),
		ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{acctest.Do(func() {
			api.Inject(http.MethodPost, "/start", losesTheStart(api))
		})}},
		Check: resource.ComposeAggregateTestCheckFunc(attribute("run_id", "41"), runs(api, 1)),
	}}})
}

// losesTheStart loses the answer to the next start. The question of a plan whether one is
// possible is no start.
func losesTheStart(api *fakeapi.Server) fakeapi.Fault {
	return func(serve http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("validate") == "true" {
				api.Inject(http.MethodPost, "/start", losesTheStart(api))
				serve.ServeHTTP(w, r)
				return
			}
			fakeapi.CloseAfter()(serve).ServeHTTP(w, r)
		})
	}
}

// TestAccRun_takesOverTheRunOfAnApplyThatDidNotSeeItsEnd: also one that was killed, of which
// there is no state.
func TestAccRun_takesOverTheRunOfAnApplyThatDidNotSeeItsEnd(t *testing.T) {
	t.Parallel()
	api, server := withHosts(t, "completed", "")
	api.OnStart(func(string, v1.Run) {})
	const later = "triggers = { release = \"one\" }\n "
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config:      server.Config(block(later + soonOver)),
			ExpectError: regexp.MustCompile(`(?s)did\s+not\s+end\s+within\s+timeouts.create;\s+not\s+done\s+yet:\s+h01\s+\(preparing\),\s+h02\s+\(preparing\)`),
		},
		{
			PreConfig: func() {
				go func() {
					api.AwaitStreams(1)
					api.FinishRun(acctest.Tenant, 41, "completed", "")
				}()
			},
			Config: server.Config(block(later)),
			Check:  resource.ComposeAggregateTestCheckFunc(attribute("run_id", "41"), attribute("result", "completed"), runs(api, 1)),
		},
	}})
}

// TestAccRun_aRunThatCannotStartIsToldAtPlan: outside of the windows, say.
func TestAccRun_aRunThatCannotStartIsToldAtPlan(t *testing.T) {
	t.Parallel()
	api, server := withHosts(t, "completed", "")
	api.RefuseStart("no maintenance window is open")
	w := acctest.NewWorkspace(t, server.Env()...)
	w.Write(t, "main.tf", acctest.Requirement+release("one"))
	if out := w.Run(t, 0, "plan", "-no-color"); !strings.Contains(out, "A run could not start now") || !strings.Contains(out, "no maintenance window is open") {
		t.Errorf("the plan does not warn: %s", out)
	}
	w.Run(t, 1, "apply", "-auto-approve", "-no-color")
	if n := len(api.Runs(acctest.Tenant)); n > 0 {
		t.Errorf("%d runs were started", n)
	}
}

func TestAccRun_followsTheEvents(t *testing.T) {
	t.Parallel()
	api, server := withHosts(t, "completed", "")
	api.OnStart(func(tenant string, run v1.Run) {
		go func() {
			api.AwaitStreams(1)
			api.EditRun(tenant, run.ID, func(r *v1.Run) { r.Phase = "upgrading"; r.Hosts[0].Status = "upgraded" })
			api.CutStreams()
			api.FinishRun(tenant, run.ID, "completed", "")
		}()
	})
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{{
		Config: server.Config(release("one")),
		Check:  attribute("result", "completed"),
	}}})
}

func TestAccRun_waitsForTheRunUnderWay(t *testing.T) {
	t.Parallel()
	api, server := withHosts(t, "completed", "")
	other := api.AddRun(acctest.Tenant, v1.Run{Phase: "upgrading"})
	go func() {
		api.AwaitStreams(1)
		api.FinishRun(acctest.Tenant, other, "failed", "")
	}()
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{{
		Config: server.Config(release("one")),
		Check: resource.ComposeAggregateTestCheckFunc(attribute("run_id", "42"), attribute("result", "completed"), func(*terraform.State) error {
			if n := api.Answers(http.StatusPreconditionFailed); n != 1 {
				return fmt.Errorf("the server refused %d times, want once", n)
			}
			return nil
		}),
	}}})
}

// soonOver is a timeout that expires during the wait for a run. The request that
// starts the run must be answered within it, however busy the machine is.
const soonOver = `timeouts = { create = "5s" }`

func TestAccRun_timeIsOver(t *testing.T) {
	t.Parallel()
	api, server := withHosts(t, "completed", "")
	api.OnStart(func(string, v1.Run) {})
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(block("triggers = {}\n " + soonOver)), ExpectError: regexp.MustCompile(`(?s)Unable to wait for the end of osupgrade_run.*Run 41 of\s+tenant\s+acme\s+was\s+started,\s+but\s+it\s+did\s+not\s+end\s+within\s+timeouts.create`)},
		{
			PreConfig: func() {
				api.FinishRun(acctest.Tenant, 41, "completed", "")
				ends(api, "completed", "")
			},
			Config:           server.Config(block("triggers = {}")),
			ConfigPlanChecks: planned(plancheck.ResourceActionReplace),
			Check:            attribute("run_id", "42"),
		},
	}})
}

func TestAccRun_keepsARunThatTheServerForgot(t *testing.T) {
	t.Parallel()
	api, server := withHosts(t, "completed", "")
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(release("one"))},
		{
			PreConfig:        func() { api.ForgetRun(acctest.Tenant, 41) },
			Config:           server.Config(release("one")),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
			Check:            attribute("result", "completed"),
		},
		{
			PreConfig:   func() { api.Inject(http.MethodGet, "/runs/41", fakeapi.Status(http.StatusForbidden, "not for you")) },
			Config:      server.Config(release("one")),
			PlanOnly:    true,
			ExpectError: regexp.MustCompile(`not for you`),
		},
	}})
}

func TestAccRun_refusedStart(t *testing.T) {
	t.Parallel()
	api, server := withHosts(t, "completed", "")
	api.RefuseStart("no maintenance window is open")
	acctest.Run(t, resource.TestCase{CheckDestroy: runs(api, 0), Steps: []resource.TestStep{{
		Config:      server.Config(release("one")),
		ExpectError: regexp.MustCompile(`(?s)Unable to create osupgrade_run.*POST /v1/state/tenants/acme/os-upgrade/start.*no\s+maintenance\s+window\s+is\s+open`),
	}}})
}

// TestAccRun_refusedForARunThatHasEnded: the server names a run that has ended. It is not waited for.
func TestAccRun_refusedForARunThatHasEnded(t *testing.T) {
	t.Parallel()
	api, server := withHosts(t, "completed", "")
	ended := api.AddRun(acctest.Tenant, v1.Run{Phase: "finished", Result: "completed", Hosts: []v1.RunHost{{Hostname: "h01", Status: "upgraded"}}})
	acctest.Run(t, resource.TestCase{CheckDestroy: runs(api, 1), Steps: []resource.TestStep{{
		Config:      server.Config(block(fmt.Sprintf("retry_of = %d\ntimeouts = { create = \"1m\" }", ended))),
		ExpectError: regexp.MustCompile(`(?s)Unable to create osupgrade_run.*left\s+no\s+host\s+to\s+retry`),
	}}})
}

func TestAccRun_wrongValuesAreToldAtPlan(t *testing.T) {
	t.Parallel()
	api, server := withHosts(t, "completed", "")
	var steps []resource.TestStep
	for body, says := range map[string]string{
		`override_window = true`: `(?s)Invalid configuration of osupgrade_run.*needs one`,
		`duration = "4h"`:        `override`,
		"override_window = true\n reason = \"x\"\n duration = \"8d\"": `too\s+long`,
		`accept = ["done"]`: `is\s+not\s+a\s+result\s+of\s+a\s+run`,
		`reason = ""`:       `""\s+is\s+no\s+value`,
		`tenant = "A"`:      `is\s+not\s+a\s+name`,
		`run_id = 7`:        `(?i)read-only|configurable`,
		`triggers = "one"`:  `map`,
	} {
		steps = append(steps, resource.TestStep{Config: server.Config(block(body)), PlanOnly: true, ExpectError: regexp.MustCompile(says)})
	}
	acctest.Run(t, resource.TestCase{Steps: steps})
	if n := len(api.Requests()); n > 0 {
		t.Errorf("the server had %d requests, want none", n)
	}
}

func TestAccRun_importIDs(t *testing.T) {
	t.Parallel()
	_, server := withHosts(t, "completed", "")
	steps := []resource.TestStep{{Config: server.Config(release("one"))}}
	for id, says := range map[string]string{
		"acme/x":  `"x" is not the id of a run`,
		"Acme/41": `"Acme" is not the name of a tenant`,
		"0":       `"0" is not the id of a run`,
		"acme/77": `run 77: there is no such run`,
	} {
		steps = append(steps, resource.TestStep{ResourceName: address, ImportState: true, ImportStateId: id, ExpectError: regexp.MustCompile(says)})
	}
	acctest.Run(t, resource.TestCase{Steps: steps})
}

func TestAccRun_unknownTriggers(t *testing.T) {
	t.Parallel()
	_, server := withHosts(t, "completed", "")
	config := server.Config(`
resource "terraform_data" "later" { input = "one" }
`, block("triggers = { release = terraform_data.later.output }\n reason = terraform_data.later.output"))
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{{Config: config, Check: attribute("triggers.release", "one")}}})
}

func TestAccRun_deletingLeavesTheRunGoing(t *testing.T) {
	t.Parallel()
	api, server := withHosts(t, "completed", "")
	api.OnStart(func(string, v1.Run) {})
	acctest.Run(t, resource.TestCase{
		CheckDestroy: func(*terraform.State) error {
			if run := api.Runs(acctest.Tenant)[0]; run.Finished() {
				return errors.New("deleting the resource has ended the run")
			}
			return nil
		},
		Steps: []resource.TestStep{
			{Config: server.Config(block(soonOver)), ExpectError: regexp.MustCompile(`did\s+not\s+end`)},
			{Config: server.Config("# nothing"), Check: runs(api, 1)},
		},
	})
}

func TestAccRun_retriesTheHostsThatFailed(t *testing.T) {
	t.Parallel()
	api, server := withHosts(t, "completed", "")
	failed := api.AddRun(acctest.Tenant, v1.Run{Phase: "finished", Result: "failed", Hosts: []v1.RunHost{{Hostname: "h01", Status: "failed"}}})
	config := server.Config(block(fmt.Sprintf("retry_of = %d", failed)))
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config: config,
			Check: resource.ComposeAggregateTestCheckFunc(attribute("result", "completed"), attribute("hosts.#", "1"), func(*terraform.State) error {
				if got := api.Runs(acctest.Tenant)[0].RetryOf; got != failed {
					return fmt.Errorf("the run retries run %d, want %d", got, failed)
				}
				return nil
			}),
		},
		{ResourceName: address, ImportState: true, ImportStateId: "acme/42", ImportStateKind: resource.ImportBlockWithID},
		{Config: server.Config(block("retry_of = 0")), PlanOnly: true, ExpectError: regexp.MustCompile(`(?s)retry_of.*0 is out of range`)},
		{Config: server.Config(block("retry_of = 77")), PlanOnly: true, ExpectError: regexp.MustCompile(`(?s)There is no run to retry.*Tenant\s+acme\s+has\s+no\s+run\s+77`)},
		{Config: server.Config(block("")), ConfigPlanChecks: planned(plancheck.ResourceActionReplace)},
	}})
}

// TestAccRun_ofChosenHosts: the run has the hosts that fit, and another choice is another run.
func TestAccRun_ofChosenHosts(t *testing.T) {
	t.Parallel()
	api, server := withHosts(t, "completed", "")
	api.SetHosts(acctest.Tenant, v1.Host{Hostname: "h01", Role: "till", Labels: map[string]string{"shop": "basel"}}, v1.Host{Hostname: "h02", Role: "till"})
	const basel = `labels = { shop = "basel,bern" }`
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(block("labels = {}")), PlanOnly: true, ExpectError: regexp.MustCompile(`labels\s+map\s+must\s+contain\s+at\s+least\s+1`)},
		{Config: server.Config(block("labels = { shop = \"a b\" }")), PlanOnly: true, ExpectError: regexp.MustCompile(`"a\s+b"\s+is\s+not\s+the\s+value\s+of\s+a\s+label`)},
		{Config: server.Config(block(basel)), Check: resource.ComposeAggregateTestCheckFunc(attribute("hosts.#", "1"), attribute("hosts.0.hostname", "h01"))},
		{Config: server.Config(block(basel)), ConfigPlanChecks: planned(plancheck.ResourceActionNoop)},
		{
			Config: server.Config(block("roles = [\"till\"]\n host_names = [\"h02\", \"h09\"]")), ConfigPlanChecks: planned(plancheck.ResourceActionReplace),
			Check: resource.ComposeAggregateTestCheckFunc(attribute("hosts.#", "1"), attribute("hosts.0.hostname", "h02")),
		},
	}})
}

// TestAccRun_followsARunThatHasNotEnded: the state of an apply that was interrupted has a run
// without an end. The next apply follows that run, and judges it.
func TestAccRun_followsARunThatHasNotEnded(t *testing.T) {
	t.Parallel()
	api, server := withHosts(t, "completed", "")
	id := api.AddRun(acctest.Tenant, v1.Run{Phase: "upgrading", Hosts: []v1.RunHost{{Hostname: "h01", Status: "upgrading"}}})
	w := acctest.NewWorkspace(t, server.Env()...)
	w.Write(t, "main.tf", acctest.Requirement+block(""))
	w.Run(t, 0, "import", "-no-color", address, fmt.Sprint(id))
	go func() {
		api.AwaitStreams(1)
		api.FinishRun(acctest.Tenant, id, "failed", "h01 failed")
	}()
	if out := w.Run(t, 1, "apply", "-auto-approve", "-no-color"); !strings.Contains(out, "0 to add, 1 to change") || !strings.Contains(out, "h01 failed") {
		t.Errorf("the apply did not follow the run: %s", out)
	}
	if n := len(api.Runs(acctest.Tenant)); n != 1 {
		t.Errorf("there are %d runs, want 1", n)
	}
}
