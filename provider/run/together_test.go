package run_test

import (
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

// TestAccRun_twoOfOnePurpose: two resources with the same triggers have a run each. The second
// waits for the run of the first instead of taking it over.
func TestAccRun_twoOfOnePurpose(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	api.OnStart(func(tenant string, run v1.Run) {
		time.AfterFunc(time.Second, func() { api.FinishRun(tenant, run.ID, "completed", "") })
	})
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{{
		Config: server.Config(release("one"), "resource \"osupgrade_run\" \"other\" {\n triggers = { release = \"one\" }\n}\n"),
		Check:  runs(api, 2),
	}}})
}

// pair are two resources of the same triggers; the first one may depend on the second.
func pair(dependency string) string {
	return acctest.Requirement + block("triggers = { release = \"one\" }\n "+dependency) + `
resource "osupgrade_run" "other" {
  triggers = { release = "one" }
}
output "ids" { value = toset([osupgrade_run.test.run_id, osupgrade_run.other.run_id]) }
`
}

// interrupted returns a folder whose state has run 41, which goes on. A later run ends at once.
func interrupted(t *testing.T) (*fakeapi.Server, *acctest.Workspace) {
	t.Helper()
	api, server := acctest.Fake(t)
	w := acctest.NewWorkspace(t, server.Env()...)
	w.Write(t, "main.tf", acctest.Requirement+release("one"))
	p := w.Start(t, "apply", "-auto-approve", "-input=false", "-no-color")
	p.Await(t, func() { api.AwaitStreams(1) })
	p.Interrupt(t)
	p.Wait(t)
	ends(api, "completed", "")
	return api, w
}

// wantPair checks that the two resources have a run each.
func wantPair(t *testing.T, api *fakeapi.Server, w *acctest.Workspace) {
	t.Helper()
	if out := w.Run(t, 0, "output", "-json", "ids"); strings.Join(strings.Fields(out), "") != "[41,42]" {
		t.Errorf("the two resources have the runs %s, want 41 and 42", out)
	}
	if n := len(api.Runs(acctest.Tenant)); n != 2 {
		t.Errorf("the server has %d runs, want 2", n)
	}
	w.Run(t, 0, "plan", "-detailed-exitcode", "-input=false", "-no-color")
}

// TestRun_aRunInAStateIsNotShared: the run of a state goes on, and another resource with the
// same triggers is created beside it. That one waits, and has a run of its own.
func TestRun_aRunInAStateIsNotShared(t *testing.T) {
	t.Parallel()
	api, w := interrupted(t)
	w.Write(t, "main.tf", pair(""))
	p := w.Start(t, "apply", "-auto-approve", "-input=false", "-no-color")
	p.Await(t, func() { api.AwaitStreams(2) })
	api.FinishRun(acctest.Tenant, 41, "completed", "")
	if code, out := p.Wait(t); code != 0 {
		t.Errorf("the apply ended with %d and says: %s", code, out)
	}
	wantPair(t, api, w)
}

// TestRun_aRunInAStateThatIsReachedLater: here the other resource is created, and has taken the
// run over, before the resource that has it is reached. That one says so, and is replaced.
func TestRun_aRunInAStateThatIsReachedLater(t *testing.T) {
	t.Parallel()
	api, w := interrupted(t)
	w.Write(t, "main.tf", pair("depends_on = [osupgrade_run.other]"))
	p := w.Start(t, "apply", "-auto-approve", "-input=false", "-no-color")
	p.Await(t, func() { api.AwaitStreams(1) })
	api.FinishRun(acctest.Tenant, 41, "completed", "")
	code, out := p.Wait(t)
	if code != 1 || !strings.Contains(strings.Join(strings.Fields(out), " "), "has taken it over") {
		t.Errorf("the apply ended with %d and says: %s", code, out)
	}
	w.Run(t, 0, "apply", "-auto-approve", "-input=false", "-no-color")
	wantPair(t, api, w)
}
