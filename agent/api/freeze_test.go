package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
)

// freezer is a controller whose run freezes changes while frozen is set.
type freezer struct {
	memory
	frozen  bool
	failure error
	changes []run.Change
}

func (f *freezer) Frozen(_ context.Context, change run.Change) error {
	f.changes = append(f.changes, change)
	if f.failure != nil {
		return f.failure
	}
	if f.frozen && !change.Holds {
		return &run.Refused{Run: 41, Frozen: true, Message: "run 41 freezes changes"}
	}
	return nil
}

// frozenObjects are the objects that a run freezes, by the kind in their audit records: bodies that
// create one, replace it, and change it.
var frozenObjects = map[string]struct{ path, create, replace, merge string }{
	"config":      {"", `{"worker-applications":[{"name":"a"}]}`, `{"worker-applications":[]}`, `{"worker-applications":[{"name":"b"}]}`},
	"rollout":     {"/rollout", `{"splay":"1m"}`, `{"splay":"2m"}`, `{"splay":"2m"}`},
	"calendar":    {"/calendars/x", `{"kind":"allow"}`, `{"kind":"freeze"}`, `{"description":"x"}`},
	"environment": {"/environments/x", `{"match":{"roles":["a"]}}`, `{"match":{"roles":["b"]}}`, `{"description":"x"}`},
	"budget":      {"/budgets/x", `{"max-unavailable":"1"}`, `{"max-unavailable":"2"}`, `{"max-unavailable":"2"}`},
}

// notFrozen are the kinds of all other objects that requests change, and why no run freezes them.
var notFrozen = map[string]string{
	"release": "only a withdrawal changes it, which holds runs", "webhook": "who is told of a run changes nothing of it", "user": "access", "approle": "access", "policy": "access", "token": "access",
	"secret-id": "access", "credential": "access", "join-token": "access", "strongbox": "the site's", "site": "the site's", "tenant": "the site's, and has force",
	"run": "what is asked of runs", "window": "a skip holds runs", "host": "what is so for a host; the members of a run stay", "hosts": "they only look", "health": "it only looks",
}

// TestFreeze_routes walks over all operations that change something. While a run freezes changes, each
// that writes the tenant's configuration is refused, with the run, but validated as ever; each other
// has its reason above.
func TestFreeze_routes(t *testing.T) {
	t.Parallel()
	walked := 0
	for _, r := range routes() {
		kind, _, _ := strings.Cut(r.object, "/")
		object, freezes := frozenObjects[kind]
		switch {
		case r.method == http.MethodGet:
			continue
		case freezes && strings.HasPrefix(r.path, configPath):
		case freezes && kind == "calendar" && strings.HasSuffix(r.path, "/refresh"):
			continue // It fetches what is declared already.
		case notFrozen[kind] == "":
			t.Errorf("%s %s: decide whether a run that freezes changes refuses it", r.method, r.path)
			continue
		default:
			continue
		}
		walked++
		t.Run(r.method+" "+r.path, func(t *testing.T) {
			t.Parallel()
			f := &freezer{}
			s := serve(t, f, access.Reads, access.Writes)
			path := strings.Replace(configPath, "{tenant}", "acme", 1) + object.path
			if r.method == http.MethodPost {
				path = strings.TrimSuffix(path, "/x")
			} else {
				s.want(http.MethodPut, path, object.create, http.StatusCreated, "")
			}
			body := map[string]string{
				http.MethodPost: strings.Replace(object.create, "{", `{"name":"x",`, 1), http.MethodPut: object.replace, http.MethodPatch: object.merge,
			}[r.method]
			ask := func(query string) *httptest.ResponseRecorder {
				q := httptest.NewRequestWithContext(t.Context(), r.method, path+query, strings.NewReader(body))
				q.Header.Set("Authorization", "Bearer "+s.token)
				w := httptest.NewRecorder()
				s.handler.ServeHTTP(w, q)
				return w
			}
			query := ""
			for _, p := range r.query {
				if p.name == "force" {
					query = "&force=true"
				}
			}
			f.frozen = true
			if w := ask("?" + strings.TrimPrefix(query, "&")); w.Code != http.StatusPreconditionFailed || !strings.Contains(w.Body.String(), `"error-info":{"run":41,"frozen":true}`) {
				t.Errorf("it is answered %d %s", w.Code, w.Body)
			}
			if w := ask("?validate=true" + query); w.Code != http.StatusNoContent {
				t.Errorf("its validation is answered %d %s", w.Code, w.Body)
			}
			f.frozen = false
			if w := ask("?" + strings.TrimPrefix(query, "&")); w.Code >= 300 {
				t.Errorf("after the run it is answered %d %s", w.Code, w.Body)
			}
		})
	}
	if walked != 3*5+3 { // PUT, PATCH and DELETE of each, and POST of those with a name.
		t.Errorf("%d operations were walked over", walked)
	}
}

// TestFreeze_holds: what can only hold runs is possible, and only the own run freezes an environment.
func TestFreeze_holds(t *testing.T) {
	t.Parallel()
	const config = "/v1/config/tenants/acme/os-upgrade"
	const basel = environmentsPath + "/basel"
	f := &freezer{}
	s := serve(t, f, access.Reads, access.Writes)
	s.want("PUT", rolloutPath, `{"freeze-changes":true}`, 201, "")
	s.want("PUT", basel, `{"match":{"roles":["a"]},"rollout":{"freeze-changes":true}}`, 201, "")
	f.frozen, f.changes = true, nil
	s.want("PATCH", rolloutPath, `{"paused":true}`, 204, "")
	s.want("PATCH", rolloutPath, `{"paused":false,"splay":"1m"}`, 412, "run 41 freezes changes")
	s.want("PATCH", rolloutPath, `{"freeze-changes":false}`, 412, "run 41 freezes changes")
	s.want("PATCH", basel, `{"rollout":{"paused":true}}`, 204, "")
	s.want("PATCH", basel, `{"rollout":{"paused":true},"match":{"roles":["b"]}}`, 412, "run 41")
	s.want("PUT", config+"/calendars/stop", `{"kind":"freeze","events":[{"start":"2126-01-01","all-day":true}]}`, 201, "")
	s.want("PUT", config+"/calendars/stop", `{"kind":"freeze","events":[{"start":"2126-01-01","all-day":true},{"start":"2126-01-02","all-day":true}]}`, 204, "")
	s.want("PUT", config+"/calendars/stop", `{"kind":"freeze","events":[{"start":"2126-01-02","all-day":true}]}`, 412, "run 41")
	s.want("DELETE", config+"/calendars/stop", "", 412, "run 41")
	s.want("PUT", config+"/calendars/go", `{"kind":"allow"}`, 412, "run 41")
	if change := f.changes[3]; change != (run.Change{Environment: "basel", Holds: true}) {
		t.Errorf("the controller was asked about %+v", change)
	}
}

// TestFreeze_unanswered: while the controller does not answer, writes wait where a rollout freezes
// changes, and nowhere else.
func TestFreeze_unanswered(t *testing.T) {
	t.Parallel()
	f := &freezer{}
	s := serve(t, f, access.Reads, access.Writes)
	f.failure = run.ErrNotReady
	s.want("PUT", rolloutPath, `{}`, 201, "")
	s.want("PUT", rolloutPath, `{"freeze-changes":true}`, 204, "")
	s.want("PUT", rolloutPath, `{}`, http.StatusServiceUnavailable, "")
	f.failure = nil
	s.want("PUT", rolloutPath, `{}`, 204, "")
	s.want("PUT", environmentsPath+"/basel", `{"match":{"roles":["a"]},"rollout":{"freeze-changes":true}}`, 201, "")
	f.failure = run.ErrNotReady
	s.want("PUT", rolloutPath, `{"splay":"1m"}`, http.StatusServiceUnavailable, "")
}
