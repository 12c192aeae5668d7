package api

import (
	"fmt"
	"slices"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

const budgetsPath = "/v1/config/tenants/acme/os-upgrade/budgets"

// TestBudgetObject walks through the life of a disruption budget.
func TestBudgetObject(t *testing.T) {
	t.Parallel()
	m := &memory{}
	s := serve(t, m, access.Reads, access.Writes)
	const racks = budgetsPath + "/racks"
	s.want("GET", budgetsPath, "", 200, "[]")
	s.want("GET", racks, "", 404, `tenant \"acme\" has no disruption budget racks; create it with PUT`)
	s.want("PUT", racks, `{"per":"rack"}`, 400, "max-unavailable: it is missing; give max-unavailable or min-available")
	s.want("PUT", racks, `{"per":"rack","max-unavailable":"1","min-available":"50%"}`, 400, "min-available: max-unavailable is given, too; give only one of them")
	s.want("PUT", racks, `{"max-unavailable":"0"}`, 400, "use at least 1 or 1%")
	s.want("PUT", racks, `{"per":"a rack","max-unavailable":"ten"}`, 400, "is not the key of a label")
	s.want("PUT", racks, `{"match":{},"max-unavailable":"1"}`, 400, "it names no hosts")
	s.want("PUT", budgetsPath+"/Racks", `{"max-unavailable":"1"}`, 400, "is not the name of a disruption budget")
	s.want("PUT", racks+"?validate=true", `{"per":"rack","max-unavailable":"1"}`, 204, "")
	first := s.want("PUT", racks, `{"per":"rack","max-unavailable":"1"}`, 201, "").Get("ETag")
	s.want("GET", racks, "", 200, `{"per":"rack","max-unavailable":"1"}`)
	s.want("PATCH", racks, `{"max-unavailable":"10%","match":{"labels":{"shop":"basel"}}}`, 204, "", "If-Match", first)
	s.want("GET", budgetsPath+"?content=true", "", 200, `[{"name":"racks","etag":"\"1-2\"","budget":{"match":{"labels":{"shop":"basel"}},"per":"rack","max-unavailable":"10%"}}]`)
	if got := s.want("POST", budgetsPath, `{"name":"fleet","min-available":"50%"}`, 201, "").Get("Location"); got != budgetsPath+"/fleet" {
		t.Errorf("it is created at %s", got)
	}
	s.want("POST", budgetsPath, `{"name":"fleet","min-available":"50%"}`, 409, "has the disruption budget fleet already")
	for n := range v1.MaxBudgets - 2 {
		s.want("PUT", fmt.Sprintf("%s/b%d", budgetsPath, n), `{"max-unavailable":"1"}`, 201, "")
	}
	s.want("PUT", budgetsPath+"/more", `{"max-unavailable":"1"}`, 400, "there are too many")
	s.want("DELETE", racks, "", 412, "", "If-Match", first)
	s.want("DELETE", racks, "", 204, "")
	s.want("GET", racks, "", 404, "")
	if last := m.seen[len(m.seen)-1]; !slices.Equal(m.seen[:3], []uint64{1, 2, 3}) || last <= 3 {
		t.Errorf("the controller was waited for to see %v", m.seen)
	}
}

// TestBudgetWarnings checks that a write is answered with what of a budget no host has.
func TestBudgetWarnings(t *testing.T) {
	t.Parallel()
	s := serve(t, &knowing{}, access.Writes)
	for body, want := range map[string][]string{
		`{"per":"rack","max-unavailable":"1"}`:               {`299 - "per: no known host has label \"rack\", or any other"`},
		`{"match":{"roles":["egde"]},"max-unavailable":"1"}`: {`299 - "match.roles[0]: no known host has role \"egde\"; did you mean edge?"`},
		`{"min-available":"100%"}`:                           {`299 - "min-available: 100% of 1 host must stay in service, so none can be upgraded"`},
		`{"match":{"roles":["edge"]},"max-unavailable":"1"}`: nil,
	} {
		if got := s.want("PUT", budgetsPath+"/b?validate=true", body, 204, "").Values("Warning"); !slices.Equal(got, want) {
			t.Errorf("%s: the warnings are %q, not %q", body, got, want)
		}
	}
}
