package acctest

import (
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/dev"
)

// Agent starts the real agent for one test, with simulated hosts that take no
// time, and returns its folder: DIR/hosts/h01 is the first host.
func Agent(t testing.TB, hosts int) (Server, string) {
	t.Helper()
	dir := t.TempDir()
	d, err := dev.Start(t.Context(), dev.Options{Dir: dir, Tenant: Tenant, Hosts: hosts})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return Server{Endpoint: d.Endpoint, Token: d.Token, Tenant: d.Tenant}, dir
}
