package run_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

const unwaited = "triggers = { release = \"one\" }\n wait = false"

var (
	noChange = resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}
	// notEnded checks that the state has a run without an end.
	notEnded = resource.ComposeAggregateTestCheckFunc(
		attribute("run_id", "41"), resource.TestCheckResourceAttrSet(address, "opened_at"), resource.TestCheckNoResourceAttr(address, "result"),
		resource.TestCheckNoResourceAttr(address, "ended_at"), resource.TestCheckNoResourceAttr(address, "hosts.#"),
	)
)

// goesOn returns a fake API whose runs continue until somebody ends them.
func goesOn(t *testing.T) (*fakeapi.Server, acctest.Server) {
	t.Helper()
	api, server := withHosts(t, "completed", "")
	api.OnStart(func(string, v1.Run) {})
	return api, server
}

// TestAccRun_doesNotWait: the creation ends while the run goes on. Neither its progress nor its
// end is a change, not even if it fails; then the state has the result.
func TestAccRun_doesNotWait(t *testing.T) {
	t.Parallel()
	api, server := goesOn(t)
	config := server.Config(block(unwaited))
	fails := func() {
		api.EditRun(acctest.Tenant, 41, func(r *v1.Run) { r.Hosts[1].Status, r.Hosts[1].Error = "failed", "no space left on device" })
		api.FinishRun(acctest.Tenant, 41, "failed", "host h02 failed")
	}
	acctest.Run(t, resource.TestCase{CheckDestroy: runs(api, 1), Steps: []resource.TestStep{
		{Config: config, Check: notEnded},
		{
			PreConfig: func() {
				api.EditRun(acctest.Tenant, 41, func(r *v1.Run) { r.Phase, r.Hosts[0].Status = "upgrading", "upgraded" })
			},
			Config: config, ConfigPlanChecks: noChange, Check: notEnded,
		},
		{RefreshState: true, Check: notEnded},
		// A change of another attribute does not follow it either.
		{
			Config:           server.Config(block(unwaited + "\n reason = \"later\"")),
			ConfigPlanChecks: planned(plancheck.ResourceActionUpdate), Check: notEnded,
		},
		{
			PreConfig: fails, Config: server.Config(block(unwaited + "\n reason = \"later\"")), ConfigPlanChecks: noChange,
			Check: resource.ComposeAggregateTestCheckFunc(attribute("run_id", "41"), attribute("result", "failed"),
				resource.TestCheckResourceAttrSet(address, "ended_at"), attribute("hosts.1.status", "failed"), attribute("hosts.1.error", "no space left on device")),
		},
		// Whoever waits from now on waits for the next run.
		{
			Config:           server.Config(release("one")),
			ConfigPlanChecks: planned(plancheck.ResourceActionUpdate), Check: attribute("result", "failed"),
		},
	}})
	if n := api.Count(http.MethodPost, "/start"); n != 1 {
		t.Errorf("%d runs were started, want 1", n)
	}
}

// TestAccRun_refreshShowsNoDrift: a run that goes on is no drift, and its end is one.
func TestAccRun_refreshShowsNoDrift(t *testing.T) {
	t.Parallel()
	api, server := goesOn(t)
	w := acctest.NewWorkspace(t, server.Env()...)
	w.Write(t, "main.tf", acctest.Requirement+block(unwaited))
	w.Run(t, 0, "apply", "-auto-approve", "-input=false", "-no-color")
	api.EditRun(acctest.Tenant, 41, func(r *v1.Run) { r.Phase, r.Hosts[0].Status = "upgrading", "upgraded" })
	w.Run(t, 0, "plan", "-detailed-exitcode", "-input=false", "-no-color")
	if out := w.Run(t, 0, "plan", "-refresh-only", "-input=false", "-no-color"); !strings.Contains(out, "No changes") {
		t.Errorf("there is drift: %s", out)
	}
	api.FinishRun(acctest.Tenant, 41, "completed", "")
	w.Run(t, 0, "plan", "-detailed-exitcode", "-input=false", "-no-color")
	if out := w.Run(t, 0, "plan", "-refresh-only", "-input=false", "-no-color"); !strings.Contains(out, `+ result    = "completed"`) {
		t.Errorf("the end of the run is no drift: %s", out)
	}
}

// TestAccRun_waitsAfterAll: an apply that is to wait follows the run that goes on, and one that
// is not to wait any more leaves it.
func TestAccRun_waitsAfterAll(t *testing.T) {
	t.Parallel()
	api, server := goesOn(t)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(block(unwaited)), Check: notEnded},
		{
			PreConfig: func() {
				go func() {
					api.AwaitStreams(1)
					api.FinishRun(acctest.Tenant, 41, "failed", "h01 failed")
				}()
			},
			Config: server.Config(release("one")), ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
			ExpectError: regexp.MustCompile(`(?s)Unable to complete osupgrade_run.*h01\s+failed`),
		},
	}})
	if n := api.Count(http.MethodPost, "/start"); n != 1 {
		t.Errorf("%d runs were started, want 1", n)
	}
}

// TestAccRun_waitsNoMore: the state of an interrupted apply has a run that goes on, and the next
// apply is not to wait for it.
func TestAccRun_waitsNoMore(t *testing.T) {
	t.Parallel()
	api, w := interrupted(t)
	w.Write(t, "main.tf", acctest.Requirement+block(unwaited))
	w.Run(t, 0, "apply", "-auto-approve", "-input=false", "-no-color")
	w.Run(t, 0, "plan", "-detailed-exitcode", "-input=false", "-no-color")
	if all := api.Runs(acctest.Tenant); len(all) != 1 || all[0].Finished() {
		t.Errorf("there are the runs %v", all)
	}
}

// TestAccRun_unwaitedStartIsInterrupted: Ctrl-C ends the apply before it has the answer to its
// start. The next one takes over the run that goes on, without waiting for its end.
func TestAccRun_unwaitedStartIsInterrupted(t *testing.T) {
	t.Parallel()
	api, server := withHosts(t, "completed", "")
	started, answers := make(chan struct{}), make(chan struct{})
	api.OnStart(func(string, v1.Run) {
		close(started)
		<-answers
	})
	w := acctest.NewWorkspace(t, server.Env()...)
	w.Write(t, "main.tf", acctest.Requirement+block(unwaited))
	p := w.Start(t, "apply", "-auto-approve", "-input=false", "-no-color")
	p.Await(t, func() { <-started })
	p.Interrupt(t)
	code, out := p.Wait(t)
	close(answers)
	if code != 1 {
		t.Errorf("the interrupted apply ended with %d and says: %s", code, out)
	}
	if out := w.Run(t, 0, "apply", "-auto-approve", "-input=false", "-no-color"); !strings.Contains(out, "1 added") {
		t.Errorf("the next apply says %s", out)
	}
	w.Run(t, 0, "plan", "-detailed-exitcode", "-input=false", "-no-color")
	if all := api.Runs(acctest.Tenant); len(all) != 1 || all[0].Finished() {
		t.Errorf("there are the runs %v", all)
	}
}

// TestAccRun_replacedTriggersWaitForTheRunBefore: another run can only start after the one that
// goes on, and whoever waits for its own run does not share that of a resource that does not.
func TestAccRun_replacedTriggersWaitForTheRunBefore(t *testing.T) {
	t.Parallel()
	api, server := goesOn(t)
	next := func() {
		go func() {
			api.AwaitStreams(1)
			ends(api, "completed", "")
			api.FinishRun(acctest.Tenant, 41, "completed", "")
		}()
	}
	other := "resource \"osupgrade_run\" \"other\" {\n triggers = { release = \"two\" }\n}\n"
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(block(unwaited)), Check: notEnded},
		{
			PreConfig: next, Config: server.Config(block(strings.Replace(unwaited, "one", "two", 1))),
			ConfigPlanChecks: planned(plancheck.ResourceActionReplace), Check: resource.ComposeAggregateTestCheckFunc(attribute("run_id", "42"), runs(api, 2)),
		},
		{
			PreConfig: func() { api.OnStart(func(string, v1.Run) {}) },
			Config:    server.Config(block(strings.Replace(unwaited, "one", "three", 1))), Check: attribute("run_id", "43"),
		},
		{
			PreConfig: func() {
				go func() {
					api.AwaitStreams(1)
					ends(api, "completed", "")
					api.FinishRun(acctest.Tenant, 43, "completed", "")
				}()
			},
			Config: server.Config(block(strings.Replace(unwaited, "one", "three", 1)), strings.Replace(other, "two", "three", 1)),
			Check:  resource.ComposeAggregateTestCheckFunc(attribute("run_id", "43"), resource.TestCheckResourceAttr("osupgrade_run.other", "run_id", "44")),
		},
	}})
}

// TestAccRun_acceptWithoutAWait: nobody sees the result.
func TestAccRun_acceptWithoutAWait(t *testing.T) {
	t.Parallel()
	_, server := goesOn(t)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(block(unwaited + "\n accept = [\"partial\"]")), PlanOnly: true, ExpectError: regexp.MustCompile(`(?s)accept.*with\s+wait\s+=\s+false\s+it\s+does\s+not\s+see\s+the\s+result`)},
		{
			Config: server.Config("resource \"terraform_data\" \"wait\" { input = false }\n", block("wait = terraform_data.wait.output")),
			Check:  notEnded,
		},
	}})
}
