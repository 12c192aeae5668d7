package run_test

import (
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

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
