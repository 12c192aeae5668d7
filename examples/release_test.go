package examples_test

import (
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest/realagent"
)

// TestRelease checks that -var release=… selects what is installed, and that a second apply with the
// release from before rolls it back.
func TestRelease(t *testing.T) {
	t.Parallel()
	server, _ := realagent.Start(t, 2)
	w := acctest.NewWorkspace(t, server.Env()...)
	lay(t, w, server, "release/main.tf")
	for _, apply := range []struct{ release, kernel string }{{"october", "6.1.10"}, {"november", "6.1.11"}, {"october", "6.1.10"}} {
		w.Run(t, 0, "apply", "-auto-approve", "-no-color", "-var", "release="+apply.release)
		w.Run(t, 0, "apply", "-auto-approve", "-no-color", "-refresh-only", "-var", "release="+apply.release)
		out := w.Run(t, 0, "output", "-no-color", "kernels")
		if strings.Count(out, `"`+apply.kernel+`"`) != 2 {
			t.Errorf("with release %s the kernels are %s", apply.release, out)
		}
		w.Run(t, 0, "plan", "-detailed-exitcode", "-no-color", "-var", "release="+apply.release)
	}
	api, err := client.New(client.Options{Endpoint: server.Endpoint, Token: server.Token})
	if err != nil {
		t.Fatal(err)
	}
	runs, err := api.Runs(t.Context(), server.Tenant, v1.RunFilter{})
	if err != nil || len(runs) != 3 || runs[0].RollbackOf != runs[1].ID {
		t.Errorf("the runs are %+v, %v", runs, err)
	}
	w.Run(t, 0, "destroy", "-auto-approve", "-no-color")
}
