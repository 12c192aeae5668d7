package providerdata

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
)

func TestClaim(t *testing.T) {
	t.Parallel()
	c := New(nil, nil)
	for _, row := range []struct {
		why, tenant, list, configuration string
		exists, granted                  bool
	}{
		{"the first", "acme", "windows", "one", true, true},
		{"its replacement", "acme", "windows", "one", false, true},
		{"an identical block", "acme", "windows", "one", false, false},
		{"another object", "acme", "windows", "two", true, false},
		{"another list", "acme", "applications", "two", false, true},
		{"an identical block of one that does not exist", "acme", "applications", "two", false, false},
		{"another tenant", "beta", "windows", "two", true, true},
		{"an identical block of one that exists", "beta", "windows", "two", true, false},
	} {
		if got := c.Claim(row.tenant, row.list, row.configuration, row.exists); got != row.granted {
			t.Errorf("%s: got %v, want %v", row.why, got, row.granted)
		}
	}
}

func TestTenantOr(t *testing.T) {
	t.Parallel()
	own, provided := types.StringValue("own"), types.StringValue("provided")
	for name, row := range map[string]struct{ own, provided, want types.String }{
		"its own":                        {own, provided, own},
		"the provider's":                 {types.StringNull(), provided, provided},
		"not known until the provider's": {types.StringUnknown(), provided, provided},
		"none at all":                    {types.StringNull(), types.StringNull(), types.StringNull()},
		"the provider's is not known":    {types.StringNull(), types.StringUnknown(), types.StringUnknown()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := New(nil, nil)
			c.Tenant = row.provided
			if got := c.TenantOr(row.own); !got.Equal(row.want) {
				t.Errorf("got %s, want %s", got, row.want)
			}
		})
	}
	var none *Data
	if got := none.TenantOr(types.StringNull()); !got.IsUnknown() {
		t.Errorf("without a provider got %s, want unknown", got)
	}
}

func TestNeedTenant(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		tenant types.String
		says   string
	}{
		"named":     {types.StringValue("acme"), ""},
		"none":      {types.StringNull(), "OSUPGRADE_TENANT"},
		"not known": {types.StringUnknown(), "not applied yet"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var diags diag.Diagnostics
			got := NeedTenant(&diags, row.tenant)
			if diags.HasError() != (row.says != "") || got != row.tenant.ValueString() {
				t.Fatalf("got %q, %v", got, diags)
			}
			if row.says != "" && !strings.Contains(diags[0].Detail(), row.says) {
				t.Errorf("got %q, want one with %q", diags[0].Detail(), row.says)
			}
		})
	}
}

func TestClient(t *testing.T) {
	t.Parallel()
	api, err := client.New(client.Options{Endpoint: "http://127.0.0.1:1", Token: "t"})
	if err != nil {
		t.Fatal(err)
	}
	var diags diag.Diagnostics
	if got := New(api, nil).Client(&diags, "Unable to test"); got != api || diags.HasError() {
		t.Errorf("got %v, %v, want the client", got, diags)
	}
	var none *Data
	for says, c := range map[string]*Data{"not known yet: endpoint, token": New(nil, []string{"endpoint", "token"}), "not configured": none} {
		var diags diag.Diagnostics
		if got := c.Client(&diags, "Unable to test"); got != nil || !diags.HasError() || !strings.Contains(diags[0].Detail(), says) {
			t.Errorf("got %v, %v, want an error with %q", got, diags, says)
		}
	}
}

func TestFrom(t *testing.T) {
	t.Parallel()
	var diags diag.Diagnostics
	c := New(nil, nil)
	if From(nil, &diags) != nil || From(c, &diags) != c || diags.HasError() {
		t.Errorf("got %v, want nil for nil and the connection for itself", diags)
	}
	if From("something else", &diags) != nil || !diags.HasError() {
		t.Error("want an error for something else")
	}
}

// TestRival: a list and its entries exclude each other; entries do not.
func TestRival(t *testing.T) {
	t.Parallel()
	c := New(nil, nil)
	one, two := EntryOf("windows", "one"), EntryOf("windows", "two")
	c.Claim("acme", one, "a", false)
	c.Claim("acme", two, "b", false)
	if got := c.Rival("acme", two); got != "" {
		t.Errorf("the rival of an entry is %q", got)
	}
	if got := c.Rival("beta", "windows"); got != "" {
		t.Errorf("the rival of the list of another tenant is %q", got)
	}
	if got := c.Rival("acme", "windows"); got != one && got != two {
		t.Errorf("the rival of the list is %q", got)
	}
	c.Claim("acme", "windows", "c", false)
	if got := c.Rival("acme", one); got != "windows" {
		t.Errorf("the rival of an entry is %q", got)
	}
}

func TestOnce(t *testing.T) {
	t.Parallel()
	c := New(nil, nil)
	made := 0
	for range 2 {
		if got := c.Once("a", func() any { made++; return made }); got != 1 {
			t.Errorf("got %v, want 1", got)
		}
	}
	if got := c.Once("b", func() any { return "b" }); got != "b" {
		t.Errorf("got %v, want b", got)
	}
}
