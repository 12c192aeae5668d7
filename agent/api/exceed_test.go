package api

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
)

// TestRolesAreNotExceeded sends each operation over HTTP with a token of each role, and with
// none: it is refused exactly where testdata/roles.txt does not have the role, for the own
// tenant; and always for another one, with 403.
func TestRolesAreNotExceeded(t *testing.T) {
	t.Parallel()
	tokens, err := principal.OpenTokens(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := broken{err: errors.Join(run.ErrNotReady, errors.New("nothing works here"))}
	server := httptest.NewServer(New(Options{
		Site: "test", Tenants: Fixed{"acme": b, "other": b}, Store: b, Tokens: tokens,
		Healthy: func() error { return nil }, Log: slog.New(slog.DiscardHandler),
	}))
	t.Cleanup(server.Close)
	send := func(method, path, token string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		_, _ = io.Copy(io.Discard, response.Body)
		return response.StatusCode
	}
	for _, role := range append(access.Roles(), "") {
		token := ""
		if role != "" {
			if token, err = tokens.Add(principal.Token{Name: "test-" + role, Tenant: "acme", Allow: []access.Role{role}}); err != nil {
				t.Fatal(err)
			}
		}
		for _, r := range routes() {
			if r.public {
				continue
			}
			may := role != "" && slices.Contains(rolesOf(r), role) && rolesOf(r)[0] != "of all tenants:"
			for _, pattern := range r.paths() {
				own := pathParameter.ReplaceAllString(strings.Replace(pattern, "{tenant}", "acme", 1), "x")
				status := send(r.method, own, token)
				switch refused := status == http.StatusForbidden; {
				case role == "" && status != http.StatusUnauthorized:
					t.Errorf("%s %s without a token is answered %d", r.method, own, status)
				case role != "" && refused == may:
					t.Errorf("%s %s as %s is answered %d, and testdata/roles.txt says that it may: %t", r.method, own, role, status, may)
				}
				if foreign := strings.Replace(own, "/tenants/acme/", "/tenants/other/", 1); role != "" && foreign != own {
					if status := send(r.method, foreign, token); status != http.StatusForbidden {
						t.Errorf("%s %s of another tenant as %s is answered %d", r.method, foreign, role, status)
					}
				}
			}
		}
	}
}
