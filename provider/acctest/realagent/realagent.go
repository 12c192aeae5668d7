// Package realagent runs the real agent for tests of the provider. It is not part
// of package acctest, so that tests against the fake API do not import the agent.
package realagent

import (
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/dev"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

// Start starts the agent for one test, with simulated hosts that upgrade without
// delay, and returns its folder. The first host is DIR/hosts/h01.
func Start(t testing.TB, hosts int) (acctest.Server, string) {
	t.Helper()
	dir := t.TempDir()
	d, err := dev.Start(t.Context(), dev.Options{Dir: dir, Tenant: acctest.Tenant, Hosts: hosts})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return acctest.Server{Endpoint: d.Endpoint, Token: d.Token, Tenant: d.Tenant}, dir
}
