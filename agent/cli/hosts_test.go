package cli

import (
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// TestForget checks that a host that is forgotten is listed no more.
func TestForget(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	s.SetHosts("acme", v1.Host{Hostname: "h01"}, v1.Host{Hostname: "h02"})
	for _, c := range []struct{ host, form, want string }{
		{"h01", "text", "Host h01 of tenant acme is deleted"},
		{"h02", "json", `"forgotten": "h02"`},
	} {
		code, stdout, stderr := call(t, as(t, s.URL, s.Token, "acme", "forget", c.host, "--output", c.form)...)
		if code != exitOK || !strings.Contains(stdout, c.want) {
			t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
		}
		if code, stdout, _ := call(t, as(t, s.URL, s.Token, "acme", "hosts")...); code != exitOK || strings.Contains(stdout, c.host) {
			t.Errorf("after %s was forgotten the hosts are:\n%s", c.host, stdout)
		}
	}
}
