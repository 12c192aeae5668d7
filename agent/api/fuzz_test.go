package api

import (
	"encoding/json"
	"errors"
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
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// FuzzJSONPatch checks that whatever is sent as a JSON Patch is refused as a wrong request,
// or gives a rollout that is right and can be read back.
func FuzzJSONPatch(f *testing.F) {
	f.Add([]byte(`{"splay":"1h","stages":[{"name":"a","match":{"hosts":["h"]}},{"name":"b"}]}`), []byte(`[{"op":"remove","path":"/stages/0"},{"op":"add","path":"/paused","value":true}]`), true)
	f.Add([]byte(`{"x":{"y":[1]}}`), []byte(`[{"op":"copy","from":"/x","path":"/x/y/-"},{"op":"move","from":"/x/y","path":"/z"},{"op":"test","path":"/splay","value":"1h"}]`), true)
	f.Add([]byte(`{}`), []byte(`[{"op":"add","path":"","value":null},{"op":"replace","path":"/a~1b~0c","value":{}}]`), false)
	o := &object[v1.Rollout]{noun: "rollout", form: v1.RolloutForm}
	f.Fuzz(func(t *testing.T, first, patch []byte, keep bool) {
		now, err := v1.RolloutForm.Decode(v1.Kept[v1.Rollout]{}, "application/json", first, true)
		if err != nil {
			return
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPatch, "/", nil)
		r.Header.Set("If-Match", "*")
		next, err := o.changed(&call{Request: r}, now, patch, keep)
		if err != nil {
			s := &server{Options: Options{Log: slog.New(slog.DiscardHandler)}}
			if a := s.classify(r, err); !slices.Contains([]int{http.StatusBadRequest, http.StatusConflict}, a.status) || len(a.body.Errors) == 0 {
				t.Fatalf("%s is answered %d: %v", patch, a.status, err)
			}
			return
		}
		text, err := json.Marshal(next)
		if err != nil {
			t.Fatal(err)
		}
		var again v1.Kept[v1.Rollout]
		if err := json.Unmarshal(text, &again); err != nil || len(again.Value.Validate()) > 0 {
			t.Fatalf("%s is stored and cannot be read: %v, %v", text, err, again.Value.Validate())
		}
	})
}

// FuzzRequest sends requests whose path, query and headers are anything: a token in the URL or
// in a header, content types, preconditions, ids. Each is answered as the OpenAPI text says,
// shortly, and none succeeds without a token.
func FuzzRequest(f *testing.F) {
	tokens := principal.NewTokens(&credentialtest.Memory{}, &credentialtest.Memory{})
	token, err := tokens.Add(principal.Token{Name: "test", Tenant: "acme", Allow: access.Rights()})
	if err != nil {
		f.Fatal(err)
	}
	b := broken{err: errors.Join(run.ErrNotReady, errors.New("nothing works here"))}
	handler := New(Options{
		Site: "test", Tenants: Fixed{"acme": b}, Store: b, Tokens: tokens,
		Healthy: func() error { return b.err }, Log: slog.New(slog.DiscardHandler),
	})
	all := routes()
	f.Add(uint8(0), "acme", "fields=a/[b,c]&site=test", "Bearer x", "application/json; charset=utf-8", "*/*;q=0.1, text/yaml", `"a", W/"b"`, "1-2-3", []byte("{}"), true)
	f.Add(uint8(9), "x%2Fy", "token=osu_1&token=2", "Basic eDp5", "application/json-patch+json", "application/yaml;q=2", "*", "-", []byte(`[{"op":"test","path":""}]`), false)
	f.Add(uint8(30), "..", "from=2026-01-01T00:00:00Z&count=3;x", "bearer  ", "text/plain", ",;,", "", "", []byte("a: *b"), false)
	f.Fuzz(func(t *testing.T, which uint8, part, query, authorization, contentType, accept, match, id string, body []byte, good bool) {
		route := all[int(which)%len(all)]
		r := httptest.NewRequestWithContext(t.Context(), route.method, "/", strings.NewReader(string(body)))
		r.URL.Path = pathParameter.ReplaceAllLiteralString(route.path, part)
		r.URL.RawPath, r.URL.RawQuery = "", query
		for name, value := range map[string]string{
			"Authorization": authorization, "Content-Type": contentType, "Accept": accept, "If-Match": match, "If-None-Match": match,
			"Last-Event-ID": id, requestIDHeader: id, "Content-Encoding": id,
		} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		if good {
			r.Header.Set("Authorization", "Bearer "+token)
			r.Header.Del("Content-Encoding")
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		switch {
		case w.Code == http.StatusInternalServerError, w.Code < 200:
			t.Fatalf("%s %s?%s is answered %d: %s", r.Method, r.URL.Path, query, w.Code, w.Body)
		case w.Code < 300 && !good && !route.public && r.URL.Path == pathParameter.ReplaceAllLiteralString(route.path, "acme"):
			t.Fatalf("%s %s without a token is answered %d", r.Method, r.URL.Path, w.Code)
		case w.Code >= 400 && w.Body.Len() > 64<<10+2*len(body):
			t.Fatalf("%s %s is refused with %d bytes", r.Method, r.URL.Path, w.Body.Len())
		}
	})
}
