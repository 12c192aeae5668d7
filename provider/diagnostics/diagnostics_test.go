package diagnostics

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

func answer(status int, problems ...v1.Error) error {
	return fmt.Errorf("wrapped: %w", &client.Error{Method: "PUT", Path: "/v1/x", Status: status, Errors: problems})
}

func TestFailure_saysWhatWasAskedAndWhatToDo(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		err  error
		says []string
	}{
		"wrong":     {answer(400, v1.Error{Message: "no good"}), []string{"Tenant: acme", "Request: PUT /v1/x", "Status: 400 Bad Request", "The server says: no good", "Correct"}},
		"no token":  {answer(401, v1.Error{Message: "expired"}), []string{"401 Unauthorized", "OSUPGRADE_TOKEN"}},
		"forbidden": {answer(403, v1.Error{Message: "no"}), []string{"does not permit"}},
		"missing":   {answer(404, v1.Error{Message: "no"}), []string{"name of the tenant"}},
		"missing run": {
			&client.Error{Method: "GET", Path: "/v1/x", Status: 404, Errors: []v1.Error{{Message: `tenant "acme" has no run 41`}}},
			[]string{"The tenant exists, but not what was asked for"},
		},
		"missing tenant, read": {
			&client.Error{Method: "GET", Path: "/v1/x", Status: 404, Errors: []v1.Error{{Message: "no", Info: v1.ErrorInfo{Field: "tenant"}}}},
			[]string{"name of the tenant"},
		},
		"interrupted":      {fmt.Errorf("cannot GET: %w", context.Canceled), []string{"was interrupted"}},
		"changed":          {answer(412, v1.Error{Message: "no"}), []string{"Plan again"}},
		"too many":         {answer(429, v1.Error{Message: "no"}), []string{"limits the rate"}},
		"not ready":        {answer(503, v1.Error{Message: "the log is damaged"}), []string{"the log is damaged", "Try again later"}},
		"sealed":           {answer(503, v1.Error{Message: "strongbox sealed"}), []string{"strongbox sealed", "Unseal it with osupgrade-agent unseal"}},
		"broken":           {answer(500, v1.Error{Message: "no"}), []string{"log has the reason"}},
		"a status unheard": {answer(599, v1.Error{Message: "no"}), []string{"Status: 599\n"}},
		"several at once":  {answer(400, v1.Error{Message: "one"}, v1.Error{Message: "two"}), []string{"says: one\n", "says: two\n"}},
		"no answer":        {errors.New("connection refused"), []string{"Tenant: acme", "Cause: connection refused", "endpoint"}},
		"no time":          {fmt.Errorf("cannot GET: %w", context.DeadlineExceeded), []string{"timeouts"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var diags diag.Diagnostics
			Failure{Operation: "Unable to test", Tenant: "acme", Err: row.err}.Add(&diags, Field)
			if len(diags) != 1 || diags[0].Summary() != "Unable to test" {
				t.Fatalf("got %v, want one error", diags)
			}
			for _, want := range row.says {
				if !strings.Contains(diags[0].Detail(), want) {
					t.Errorf("got %q, want one with %q", diags[0].Detail(), want)
				}
			}
		})
	}
}

// TestFailure_ofALogin: what to do about a login that fails goes by whose it is and what the
// server says, and names no object of the request.
func TestFailure_ofALogin(t *testing.T) {
	t.Parallel()
	said := func(status int) *client.Error {
		return &client.Error{Method: "POST", Path: "/v1/login", Status: status, Errors: []v1.Error{{Message: "the login is wrong"}}}
	}
	for name, row := range map[string]struct {
		err  client.LoginError
		says string
	}{
		"wrong password":        {client.LoginError{Answer: said(401)}, "OSUPGRADE_PASSWORD"},
		"wrong secret-id":       {client.LoginError{Answer: said(401), Approle: true}, "takes one use"},
		"secret-id is used up":  {client.LoginError{Answer: said(401), Approle: true, Again: true}, "more uses"},
		"password was changed":  {client.LoginError{Answer: said(401), Again: true}, "the password was changed"},
		"too many":              {client.LoginError{Answer: said(429)}, "Wait until the server hears"},
		"no users":              {client.LoginError{Answer: said(404)}, "needs a token"},
		"not from here":         {client.LoginError{Answer: said(403), Approle: true}, "not from this address"},
		"sealed":                {client.LoginError{Answer: &client.Error{Status: 503, Errors: []v1.Error{{Message: "strongbox sealed"}}}}, "osupgrade-agent unseal"},
		"not ready":             {client.LoginError{Answer: said(503)}, "too many logins to check"},
		"broken":                {client.LoginError{Answer: said(500)}, "log has the reason"},
		"wrong form":            {client.LoginError{Answer: said(400)}, "Correct what the server names"},
		"the token is not good": {client.LoginError{Answer: said(401), Useless: true}, "header Authorization"},
		"no answer":             {client.LoginError{}, "Check the provider's endpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var diags diag.Diagnostics
			Failure{Operation: "Unable to test", Tenant: "acme", Err: fmt.Errorf("wrapped: %w", &row.err), NotFound: "gone"}.Add(&diags, Field)
			if len(diags) != 1 || !strings.Contains(diags[0].Detail(), row.says) || !strings.Contains(diags[0].Detail(), "Tenant: acme\nCause: ") {
				t.Errorf("got %v, want one error with %q", diags, row.says)
			}
		})
	}
}

func TestFailure_standsAtItsAttribute(t *testing.T) {
	t.Parallel()
	var diags diag.Diagnostics
	err := answer(400,
		v1.Error{Message: "bad time", Info: v1.ErrorInfo{Field: "maintenance-windows[1].start-time"}},
		v1.Error{Message: "bad at all"})
	Failure{Operation: "Unable to test", Tenant: "acme", Err: err}.Add(&diags, Field)
	if len(diags) != 2 {
		t.Fatalf("got %v, want two errors", diags)
	}
	located, ok := diags[0].(diag.DiagnosticWithPath)
	if !ok || located.Path().String() != "maintenance_windows[1].start_time" {
		t.Errorf("got %v, want one at maintenance_windows[1].start_time", diags[0])
	}
	if strings.Contains(diags[0].Detail(), "bad at all") || strings.Contains(diags[1].Detail(), "bad time") {
		t.Errorf("each problem belongs into its own error: %v", diags)
	}
}

func TestFailure_warns(t *testing.T) {
	t.Parallel()
	var diags diag.Diagnostics
	Failure{Operation: "Unable to test", Tenant: "acme", Err: answer(500, v1.Error{Message: "broken"})}.Warn(&diags, "Going on.")
	if diags.HasError() || len(diags) != 1 || !strings.HasPrefix(diags[0].Detail(), "Going on.\n") || !strings.Contains(diags[0].Detail(), "broken") {
		t.Errorf("got %v, want one warning", diags)
	}
}

func TestField(t *testing.T) {
	t.Parallel()
	for field, want := range map[string]string{
		"reason":                             "reason",
		"override-window":                    "override_window",
		"maintenance-windows[0].start-time":  "maintenance_windows[0].start_time",
		"maintenance-windows[12]":            "maintenance_windows[12]",
		"a[1][2].b":                          "a[1][2].b",
		"":                                   "",
		".":                                  "",
		"a.":                                 "",
		"a[":                                 "",
		"a[]":                                "",
		"a[-1]":                              "",
		"a[1]b":                              "",
		"a[99999999999999999999]":            "",
		"Not a field":                        "",
		"maintenance-windows[0].start-time ": "",
	} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			got, ok := Field(field)
			if ok != (want != "") || ok && got.String() != want {
				t.Errorf("got %s, %v, want %q", got, ok, want)
			}
		})
	}
}

func FuzzField(f *testing.F) {
	f.Add("maintenance-windows[0].start-time")
	f.Add("a[1][2].b")
	f.Add("a[")
	f.Fuzz(func(t *testing.T, field string) {
		at, ok := Field(field)
		if !ok {
			if !at.Equal(path.Empty()) {
				t.Errorf("%q is no field, but has the path %s", field, at)
			}
			return
		}
		back := strings.ReplaceAll(at.String(), "_", "-")
		if again, ok := Field(back); !ok || !again.Equal(at) {
			t.Errorf("%q became %s, which became %s", field, at, again)
		}
	})
}

func TestFailure_notFound(t *testing.T) {
	t.Parallel()
	for status, own := range map[int]bool{404: true, 500: false} {
		var diags diag.Diagnostics
		Failure{Operation: "Unable to test", Tenant: "acme", Err: answer(status, v1.Error{Message: "no"}), NotFound: "Ask another."}.Add(&diags, nil)
		if got := strings.HasSuffix(diags[0].Detail(), "\n\nAsk another."); got != own {
			t.Errorf("status %d: got %q", status, diags[0].Detail())
		}
	}
}
