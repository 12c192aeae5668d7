package api

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/credentialtest"
)

// forgetter is a controller with an absent host, h01, and an online host, h02.
type forgetter struct {
	broken
	forgotten []string
}

func (f *forgetter) Forget(_ context.Context, host string, d run.Deletion) error {
	switch host {
	case "h01":
		f.forgotten = append(f.forgotten, strings.TrimSpace(host+" by "+d.By+" "+d.Why))
		return nil
	case "h02":
		return &run.Refused{Message: "host h02 is online"}
	}
	return fmt.Errorf("host %s: %w", host, run.ErrNoHost)
}

// TestDeleteHost checks who may delete which host, and what is answered.
func TestDeleteHost(t *testing.T) {
	t.Parallel()
	tokens := principal.NewTokens(&credentialtest.Memory{}, &credentialtest.Memory{})
	token := func(allow ...access.Role) string {
		text, err := tokens.Add(principal.Token{Name: "test", Tenant: "acme", Allow: allow})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	f := &forgetter{}
	handler := New(Options{
		Site: "test", Tenants: Fixed{"acme": f}, Store: f, Tokens: tokens,
		Healthy: func() error { return nil }, Log: slog.New(slog.DiscardHandler),
	})
	writer, starter := token(access.Writes), token(access.Reads, access.Starts)
	for _, c := range []struct {
		token, path string
		status      int
		part        string
	}{
		{starter, "/v1/state/os-upgrade/hosts/h01", http.StatusForbidden, "does not have the right"},
		{writer, "/v1/state/os-upgrade/hosts/h02", http.StatusPreconditionFailed, "host h02 is online"},
		{writer, "/v1/state/os-upgrade/hosts/h77", http.StatusNotFound, `host \"h77\" is not known`},
		{writer, "/v1/state/os-upgrade/hosts/h01?site=mars", http.StatusNotFound, "mars"},
		{writer, "/v1/state/os-upgrade/hosts/h01?force=true", http.StatusBadRequest, "force"},
		{writer, "/v1/state/os-upgrade/hosts/h01?reason=", http.StatusBadRequest, "it is stored with the run"},
		{writer, "/v1/state/os-upgrade/hosts/h01?reason=a%0Ab", http.StatusBadRequest, "reason"},
		{writer, "/v1/state/os-upgrade/hosts/h01?reason=scrapped+today", http.StatusNoContent, ""},
		{writer, "/v1/state/tenants/acme/os-upgrade/hosts/h01?site=test", http.StatusNoContent, ""},
		{writer, "/v1/state/os-upgrade/hosts", http.StatusMethodNotAllowed, "use GET"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodDelete, c.path, nil)
		r.Header.Set("Authorization", "Bearer "+c.token)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.part) {
			t.Errorf("DELETE %s is answered %d %s; want %d with %s", c.path, w.Code, w.Body, c.status, c.part)
		}
	}
	if want := []string{"h01 by test scrapped today", "h01 by test"}; !slices.Equal(f.forgotten, want) {
		t.Errorf("forgotten is %q", f.forgotten)
	}
}
