package api

import (
	"context"
	"net/http"
	"slices"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/plan"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// knowing is a controller that knows hosts.
type knowing struct{ memory }

func (*knowing) Unmatched(_ context.Context, i plan.Intent) ([]v1.IntentWarning, error) {
	return plan.Unmatched(i, plan.Known{Hosts: []plan.Host{{Name: "h01", Application: "app", Role: "edge"}}}), nil
}

// TestWarningsOfWrites checks that each write that is accepted, and each that would be,
// is answered with a header for each part that matches no known host, and with nothing else
// than before.
func TestWarningsOfWrites(t *testing.T) {
	t.Parallel()
	s := serve(t, &knowing{}, access.Reads, access.Writes)
	const body = `{"stages":[{"name":"a","match":{"roles":["egde","core"]}},{"name":"b"}]}`
	want := []string{
		`299 - "stages[0].match.roles[0]: no known host has role \"egde\"; did you mean edge?"`,
		`299 - "stages[0].match.roles[1]: no known host has role \"core\"; hosts have edge"`,
	}
	warned := func(header http.Header, want ...string) {
		t.Helper()
		if got := header.Values("Warning"); !slices.Equal(got, want) {
			t.Errorf("the warnings are %q, not %q", got, want)
		}
	}
	warned(s.want("PUT", rolloutPath+"?validate=true", body, 204, ""), want...)
	warned(s.want("PUT", rolloutPath, `{"stages":[{"name":"a","match":{"roles":[""]}}]}`, 400, ""))
	warned(s.want("PUT", rolloutPath, body, 412, "", "If-Match", "*"))
	warned(s.want("PUT", rolloutPath, body, 201, ""), want...)
	warned(s.want("PUT", rolloutPath, body, 204, ""), want...)
	warned(s.want("GET", rolloutPath, "", 200, body))
	warned(s.want("PATCH", rolloutPath, `{"splay":"1h"}`, 204, ""), want...)
	warned(s.want("PATCH", rolloutPath, `[{"op":"test","path":"/splay","value":"1h"},{"op":"remove","path":"/stages"}]`, 204, "", "Content-Type", v1.JSONPatch))
	warned(s.want("PUT", "/v1/config/tenants/acme/os-upgrade", `{"worker-applications":[{"name":"ap"},{"name":"app"}]}`, 201, ""),
		`299 - "worker-applications[0].name: no known host has application \"ap\"; did you mean app?"`)
}

// TestWriteWithoutWarnings checks that a write is accepted if nobody can tell which hosts are
// known.
func TestWriteWithoutWarnings(t *testing.T) {
	t.Parallel()
	s := serve(t, &memory{}, access.Writes)
	if got := s.want("PUT", rolloutPath, `{"stages":[{"name":"a","match":{"roles":["core"]}}]}`, 201, "").Values("Warning"); got != nil {
		t.Errorf("it warns of %q", got)
	}
}
