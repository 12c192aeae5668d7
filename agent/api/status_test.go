package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestStatusOfTenants checks that each caller is told of the tenants whose state it may read, and of
// no other.
func TestStatusOfTenants(t *testing.T) {
	t.Parallel()
	j, all := openSite(t, t.TempDir(), "acme", "beta")
	defer j.close()
	for name, row := range map[string]struct{ token, sees string }{
		"all tenants":          {all, "acme beta"},
		"a viewer of all":      {j.client(access.AnyTenant, access.Viewer), "acme beta"},
		"a viewer of one":      {j.client("beta", access.Viewer), "beta"},
		"one that only starts": {j.client("acme", access.Starts), ""},
		"one of a calendar":    {j.client("acme", access.Calendar), ""},
	} {
		_, text := j.want(http.StatusOK, "", row.token, http.MethodGet, "/v1/state/status", "")
		var got []v1.TenantStatus
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, status := range got {
			if names = append(names, status.Tenant); status.Trouble != "" || status.Situation == nil {
				t.Errorf("%s: the status is %+v", name, status)
			}
		}
		if strings.Join(names, " ") != row.sees {
			t.Errorf("%s sees %q, want %q", name, names, row.sees)
		}
	}
	j.want(http.StatusOK, "2", all, http.MethodGet, "/v1/state/status?count=true", "")
	j.want(http.StatusUnauthorized, "", "", http.MethodGet, "/v1/state/status", "")
}
