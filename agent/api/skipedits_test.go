package api

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/audit"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/credentialtest"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// hourly is a controller with two environments that have windows at any time asked for.
type hourly struct{ memory }

// noon is when the first window opens that no request names.
var noon = time.Date(2126, 11, 28, 12, 0, 0, 0, time.UTC)

func (h *hourly) Skippable(_ context.Context, environment string, start time.Time) (opens, closes time.Time, err error) {
	if environment != "basel" && environment != v1.DefaultEnvironment {
		return opens, closes, &run.NoEnvironment{Name: environment, Known: []string{"basel"}}
	}
	if start.IsZero() {
		start = noon
	}
	return start, start.Add(time.Hour), nil
}

// Vacant lets any environment be deleted.
func (h *hourly) Vacant(context.Context, string) error { return nil }

const skipPath = acmeState + "/skip-window"

// TestUnskipOfUnknownEnvironment checks that an unknown environment is answered like everywhere, with
// the names of those that there are.
func TestUnskipOfUnknownEnvironment(t *testing.T) {
	t.Parallel()
	s := serve(t, &hourly{}, access.Reads, access.Starts)
	for _, start := range []string{"", "&window-start=2126-11-28T12:00:00Z"} {
		s.want("DELETE", skipPath+"?environment=nope"+start, "", http.StatusNotFound, "basel")
		s.want("DELETE", skipPath+"?environment=basel"+start, "", http.StatusPreconditionFailed, "is skipped")
	}
}

// TestSkipsAreBounded skips as many windows as there may be, and one more, which is refused until one
// of them is not skipped any more. Those that have closed do not count, nor do those of another
// environment.
func TestSkipsAreBounded(t *testing.T) {
	t.Parallel()
	h := &hourly{}
	s := serve(t, h, access.Reads, access.Starts)
	past := v1.Skips{}
	for i := range 10 {
		start := time.Now().UTC().Add(time.Duration(i-100) * time.Hour)
		past, _ = past.With(v1.SkippedWindow{Start: start, End: start.Add(time.Hour), Reason: "sale"}, time.Now())
	}
	if _, err := h.intent.PutSkips(t.Context(), "acme", "basel", past, store.Revision{}); err != nil {
		t.Fatal(err)
	}
	body := func(hour int) string {
		return fmt.Sprintf(`{"environment":"basel","reason":"sale","window-start":%q}`, noon.Add(time.Duration(hour)*time.Hour).Format(time.RFC3339))
	}
	for hour := range 50 {
		s.want("POST", skipPath, body(hour), http.StatusOK, "")
	}
	s.want("POST", skipPath, body(50), http.StatusBadRequest, "environment basel has 50 skipped windows ahead: there are too many; unskip one first, or freeze the time with a calendar")
	s.want("POST", skipPath, body(7), http.StatusOK, `"reason":"sale"`)
	s.want("POST", skipPath, `{"reason":"sale"}`, http.StatusOK, "")
	s.want("DELETE", skipPath+"?environment=basel", "", http.StatusNoContent, "")
	s.want("POST", skipPath, body(50), http.StatusOK, "")
}

// TestSkipsEndWithEnvironment declares an environment again after its deletion, and the configuration of
// the tenant, which is that of default: nothing is skipped.
func TestSkipsEndWithEnvironment(t *testing.T) {
	t.Parallel()
	h := &hourly{}
	s := serve(t, h, access.Reads, access.Starts, access.Writes)
	const path = "/v1/config/tenants/acme/os-upgrade/environments"
	const content = `{"name":"basel","match":{"hosts":["b1"]}}`
	skipped := func() int {
		kept, _, _ := h.intent.Skips(t.Context(), "acme", "basel")
		return len(kept.Windows)
	}
	skip := func() { s.want("POST", skipPath, `{"environment":"basel","reason":"sale"}`, http.StatusOK, "") }
	skip() // In time for somebody who has just deleted it.
	s.want("POST", skipPath, `{"reason":"sale"}`, http.StatusOK, "")
	s.want("POST", path, content, http.StatusCreated, "")
	if n := skipped(); n != 0 {
		t.Errorf("the new environment has %d skipped windows", n)
	}
	skip()
	s.want("PUT", path+"/basel", `{"match":{"hosts":["b2"]}}`, http.StatusNoContent, "")
	if n := skipped(); n != 1 {
		t.Errorf("after an edit it has %d skipped windows", n)
	}
	s.want("DELETE", path+"/basel?validate=true", "", http.StatusNoContent, "")
	if n := skipped(); n != 1 {
		t.Errorf("after a rehearsed deletion it has %d skipped windows", n)
	}
	s.want("DELETE", path+"/basel", "", http.StatusNoContent, "")
	s.want("POST", path, content, http.StatusCreated, "")
	if n := skipped(); n != 0 {
		t.Errorf("declared again, it has %d skipped windows", n)
	}
	ofDefault := func() int {
		kept, _, _ := h.intent.Skips(t.Context(), "acme", v1.DefaultEnvironment)
		return len(kept.Windows)
	}
	if n := ofDefault(); n != 1 {
		t.Errorf("the default one has %d skipped windows", n)
	}
	const config = "/v1/config/tenants/acme/os-upgrade"
	s.want("PUT", config, `{"worker-applications":[{"name":"app"}]}`, http.StatusCreated, "")
	if n := ofDefault(); n != 0 {
		t.Errorf("with a new configuration it has %d skipped windows", n)
	}
	s.want("POST", skipPath, `{"reason":"sale"}`, http.StatusOK, "")
	s.want("PUT", config, `{"worker-applications":[{"name":"app"},{"name":"other"}]}`, http.StatusNoContent, "")
	if n := ofDefault(); n != 1 {
		t.Errorf("after an edit of the configuration it has %d skipped windows", n)
	}
}

// TestSkipsAreAudited checks that a record of the audit log says which window of which environment was
// skipped or unskipped, also where the request did not name it.
func TestSkipsAreAudited(t *testing.T) {
	t.Parallel()
	logs := audit.Open(t.TempDir())
	t.Cleanup(func() { _ = logs.Close() })
	tokens := principal.NewTokens(&credentialtest.Memory{}, &credentialtest.Memory{})
	token, err := tokens.Add(principal.Token{Name: "test", Tenant: "acme", Allow: []string{access.Reads, access.Starts}})
	if err != nil {
		t.Fatal(err)
	}
	h := &hourly{}
	bare := New(Options{
		Site: "test", Tenants: Fixed{"acme": h}, Store: &h.memoryOf().intent, Tokens: tokens, Audit: logs,
		Healthy: func() error { return nil }, Log: slog.New(slog.DiscardHandler),
	})
	s := &served{T: t, token: token, handler: checked(t, bare), bare: bare}
	later := noon.Add(time.Hour).Format(time.RFC3339)
	s.want("POST", skipPath, `{"reason":"sale"}`, http.StatusOK, "")
	s.want("POST", skipPath, `{"environment":"basel","reason":"sale","window-start":"`+later+`"}`, http.StatusOK, "")
	s.want("DELETE", skipPath+"?environment=basel", "", http.StatusNoContent, "")
	s.want("DELETE", skipPath+"?environment=basel&window-start="+url.QueryEscape(later), "", http.StatusPreconditionFailed, "")
	s.want("DELETE", skipPath+"?environment=basel", "", http.StatusPreconditionFailed, "")
	var all uint64
	read, err := logs.Read("acme", v1.AuditFilter{After: &all})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range read.Records {
		got = append(got, fmt.Sprintf("%s %s: %s", r.Action, r.Result, r.Detail))
	}
	slices.Sort(got)
	want := []string{
		"skip done: environment basel, the window that opens at 2126-11-28T13:00:00Z",
		"skip done: environment default, the window that opens at 2126-11-28T12:00:00Z",
		"unskip done: environment basel, the window that opens at 2126-11-28T13:00:00Z",
		"unskip refused: environment basel",
		"unskip refused: environment basel, the window that opens at 2126-11-28T13:00:00Z",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the records are\n%s", strings.Join(got, "\n"))
	}
}
