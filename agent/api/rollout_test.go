package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/credentialtest"
	memstore "github.com/osupgrade/terraform-provider-osupgrade/agent/testing/memory"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// memory is a store and a controller with a run under way. All other methods of the
// controller are those of broken.
type memory struct {
	broken

	intent racing
	// seen are the revisions passed to Seen.
	seen []uint64
	// asked are the operators' requests, and filter the last filter of Runs.
	asked  []string
	filter v1.RunFilter
	refuse error
	// calendars fetches calendars; nil when nobody does.
	calendars Calendars
}

// racing is a store in which somebody else may write.
type racing struct {
	*memstore.Store
	// between is called once between a read of the rollout and the write that follows it.
	between func()
	// writing is called before an environment is written; nil is nothing.
	writing func()
	// listed counts how often all environments are read.
	listed atomic.Int32
}

func (r *racing) Environments(ctx context.Context, tenant string) ([]store.Named[v1.Environment], error) {
	r.listed.Add(1)
	return r.Store.Environments(ctx, tenant)
}

func (r *racing) PutEnvironment(ctx context.Context, tenant, name string, e v1.Kept[v1.Environment], base store.Revision) (store.Revision, error) {
	if r.writing != nil {
		r.writing()
	}
	return r.Store.PutEnvironment(ctx, tenant, name, e, base)
}

func (r *racing) Rollout(ctx context.Context, tenant string) (v1.Kept[v1.Rollout], store.Revision, error) {
	value, revision, err := r.Store.Rollout(ctx, tenant)
	if between := r.between; between != nil {
		r.between = nil
		between()
	}
	return value, revision, err
}

// put writes the rollout, whatever there is, and returns its revision.
func (r *racing) put(t *testing.T, value v1.Rollout) store.Revision {
	t.Helper()
	_, base, _ := r.Store.Rollout(t.Context(), "acme")
	revision, err := r.PutRollout(t.Context(), "acme", v1.Kept[v1.Rollout]{Value: value}, base)
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

func (m *memory) Seen(_ context.Context, number uint64) error {
	m.seen = append(m.seen, number)
	return nil
}

func (m *memory) Current(context.Context) (uint64, error) { return 41, nil }

func (m *memory) Runs(_ context.Context, filter v1.RunFilter) ([]v1.Run, error) {
	m.filter = filter
	return []v1.Run{{ID: 41, Phase: "upgrading", Hosts: []v1.RunHost{}}}, nil
}

func (m *memory) Ask(_ context.Context, by string, ask run.Ask, body v1.Ask) (v1.Run, error) {
	if m.refuse != nil {
		return v1.Run{}, m.refuse
	}
	m.asked = append(m.asked, strings.Join([]string{by, string(ask), body.Reason, body.Stage, body.Host}, "|"))
	return v1.Run{ID: 41, Phase: "upgrading", Hosts: []v1.RunHost{}}, nil
}

const (
	rolloutPath = "/v1/config/tenants/acme/os-upgrade/rollout"
	acmeState   = "/v1/state/tenants/acme/os-upgrade"
)

// served calls the API of a memory.
type served struct {
	*testing.T
	// handler has each exchange checked, bare has not.
	handler, bare http.Handler
	token         string
}

// fake is a controller with a store.
type fake interface {
	Controller
	memoryOf() *memory
}

// memoryOf returns the memory, which has a store.
func (m *memory) memoryOf() *memory {
	if m.intent.Store == nil {
		m.intent.Store = memstore.NewStore()
	}
	return m
}

func serve(t *testing.T, f fake, rights ...access.Role) *served {
	t.Helper()
	tokens := principal.NewTokens(&credentialtest.Memory{}, &credentialtest.Memory{})
	token, err := tokens.Add(principal.Token{Name: "test", Tenant: "acme", Allow: rights})
	if err != nil {
		t.Fatal(err)
	}
	m := f.memoryOf()
	m.err = errors.New("this is not to be asked for")
	bare := New(Options{
		Site: "test", Tenants: Fixed{"acme": f}, Store: &m.intent, Calendars: m.calendars, Tokens: tokens,
		Healthy: func() error { return nil }, Log: slog.New(slog.DiscardHandler),
	})
	return &served{T: t, token: token, handler: checked(t, bare), bare: bare}
}

// want sends a request, and checks the answer's status and part of its body;
// headers are pairs of name and value.
func (s *served) want(method, path, body string, status int, part string, headers ...string) http.Header {
	s.Helper()
	r := httptest.NewRequestWithContext(s.Context(), method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+s.token)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	if w.Code != status || !strings.Contains(w.Body.String(), part) {
		s.Errorf("%s %s answered %d %s; want %d with %s", method, path, w.Code, w.Body, status, part)
	}
	return w.Header()
}

// TestRolloutObject walks through the life of a rollout, during a run at that.
func TestRolloutObject(t *testing.T) {
	t.Parallel()
	m := &memory{}
	s := serve(t, m, access.Reads, access.Writes)
	const body = `{"stages":[{"name":"canary","match":{"labels":{"ring":"0"}},"soak":"90m"},{"name":"rest"}],"splay":"60s"}`
	const canonical = `{"stages":[{"name":"canary","match":{"labels":{"ring":"0"}},"soak":"1h30m"},{"name":"rest"}],"splay":"1m"}`
	s.want("GET", rolloutPath, "", 404, `tenant \"acme\" has no rollout; create it with PUT","error-info":{"missing":"rollout"}`)
	s.want("PATCH", rolloutPath, `{}`, 404, "create it with PUT")
	s.want("PATCH", rolloutPath, `{"splya":"1h"}`, 400, "splya: unknown key")
	s.want("DELETE", rolloutPath, "", 404, "has no rollout")
	s.want("PUT", rolloutPath+"?validate=true", body, 204, "")
	s.want("GET", rolloutPath, "", 404, "")
	created := s.want("PUT", rolloutPath, body, 201, "", "If-None-Match", "*")
	first := created.Get("ETag")
	if first == "" || created.Get("Location") != rolloutPath {
		t.Errorf("created with ETag %q at %q", first, created.Get("Location"))
	}
	if got := s.want("GET", rolloutPath, "", 200, canonical).Get("ETag"); got != first {
		t.Errorf("GET has ETag %q, PUT had %q", got, first)
	}
	s.want("GET", "/v1/config/os-upgrade/rollout", "", 200, canonical)
	s.want("GET", rolloutPath, "", 200, `soak: "1h30m"`, "Accept", "application/yaml")
	s.want("GET", rolloutPath+"?fields=splay,stages/[name,match/labels]", "", 200, `{"stages":[{"name":"canary","match":{"labels":{"ring":"0"}}},{"name":"rest"}],"splay":"1m"}`)
	s.want("GET", rolloutPath+"?fields=stages/soka", "", 400, "soka")
	s.want("GET", rolloutPath, "", 304, "", "If-None-Match", first)
	s.want("PUT", rolloutPath, body, 412, "the rollout of tenant", "If-None-Match", "*")
	s.want("PUT", rolloutPath, body, 412, "", "If-Match", `"other"`)
	second := s.want("PATCH", rolloutPath, `{"paused":true,"splay":"2h"}`, 204, "", "If-Match", first).Get("ETag")
	s.want("GET", rolloutPath, "", 200, strings.Replace(canonical, `"splay":"1m"`, `"splay":"2h","paused":true`, 1))
	s.want("PATCH", rolloutPath, "paused: false\nstages: []\n", 204, "", "Content-Type", "application/yaml")
	s.want("GET", rolloutPath, "", 200, `{"stages":[],"splay":"2h"}`)
	s.want("DELETE", rolloutPath, "", 412, "", "If-Match", second)
	s.want("DELETE", rolloutPath+"?force=true", "", 400, "force")
	s.want("DELETE", rolloutPath+"?validate=true", "", 204, "")
	s.want("GET", rolloutPath, "", 200, "")
	s.want("DELETE", rolloutPath, "", 204, "")
	s.want("GET", rolloutPath, "", 404, "")
	s.want("PUT", rolloutPath, body, 412, "so If-Match cannot match", "If-Match", "*")
	if want := []uint64{1, 2, 3, 4}; len(m.seen) != 4 || m.seen[0] != 1 || m.seen[3] != 4 {
		t.Errorf("the controller was waited for to see %v; want %v", m.seen, want)
	}
}

func TestWrongRolloutIsNotStored(t *testing.T) {
	t.Parallel()
	m := &memory{}
	s := serve(t, m, access.Writes)
	s.want("PUT", rolloutPath, `{"stages":[{"name":"a","max-unavailable":"0"},{"name":"b"}],"on-failure":"stp"}`, 400, `"field":"stages[0].max-unavailable","value":"0"`)
	s.want("PUT", rolloutPath, `{"on-failure":"stp"}`, 400, "did you mean stop?")
	s.want("PUT", rolloutPath, ``, 400, "the document is empty")
	s.want("GET", rolloutPath, "", 403, "does not have the right")
	if kept, _, err := m.intent.Rollout(t.Context(), "acme"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("stored %+v, %v", kept, err)
	}
}

// TestPatchIsBasedOnWhatItMerges checks that a PATCH does not undo what
// somebody else writes meanwhile.
func TestPatchIsBasedOnWhatItMerges(t *testing.T) {
	t.Parallel()
	m := &memory{}
	s := serve(t, m, access.Writes)
	m.intent.put(t, v1.Rollout{Splay: "1h"})
	meanwhile := func() { m.intent.put(t, v1.Rollout{Splay: "1h", Reserve: "5m"}) }
	m.intent.between = meanwhile
	s.want("PATCH", rolloutPath, `{"splay":"2h"}`, 204, "")
	merged, revision, err := m.intent.Rollout(t.Context(), "acme")
	if err != nil || merged.Value.Splay != "2h" || merged.Value.Reserve != "5m" {
		t.Errorf("merged into %+v, %v", merged, err)
	}
	m.intent.between = meanwhile
	s.want("PATCH", rolloutPath, `{"splay":"3h"}`, 412, "changed in the meantime", "If-Match", revision.ETag())
	if kept, _, err := m.intent.Rollout(t.Context(), "acme"); err != nil || kept.Value.Splay == "3h" {
		t.Errorf("written on a revision that the request did not name: %+v, %v", kept, err)
	}
}

func TestAsks(t *testing.T) {
	t.Parallel()
	m := &memory{}
	s := serve(t, m, access.Starts)
	for ask, body := range map[string]string{
		"pause": `{"reason":"r"}`, "resume": `{"reason":"r"}`, "abort": `{"reason":"r"}`,
		"approve": `{"reason":"r","stage":"canary"}`, "release": `{"reason":"r","host":"H1.example"}`,
	} {
		s.want("POST", acmeState+"/"+ask, `{}`, 400, `"field":"reason"`)
		m.asked = nil
		s.want("POST", acmeState+"/"+ask, body, 200, `"id":41`)
		s.want("POST", "/v1/state/os-upgrade/"+ask+"?site=test", body, 200, `"id":41`)
		want := "test|" + ask + "|r||"
		switch ask {
		case "approve":
			want = "test|approve|r|canary|"
		case "release":
			want = "test|release|r||H1.example"
		}
		if len(m.asked) != 2 || m.asked[0] != want || m.asked[1] != want {
			t.Errorf("the controller was asked %q; want %q twice", m.asked, want)
		}
	}
	m.asked = nil
	s.want("POST", acmeState+"/pause", "reason: YAML\n", 200, "", "Content-Type", "application/yaml")
	s.want("POST", acmeState+"/pause?site=mars", `{"reason":"r"}`, 404, "mars")
	s.want("POST", acmeState+"/pause", `{"reason":"r","host":"h"}`, 400, "does not apply to this operation")
	s.want("GET", acmeState+"/pause", "", 405, "use POST")
	if len(m.asked) != 1 {
		t.Errorf("the controller was asked %q", m.asked)
	}
	m.refuse = &run.Refused{Run: 41, Message: "run 41 is paused already"}
	s.want("POST", acmeState+"/pause", `{"reason":"r"}`, 412, `"run":41`)
	m.refuse = run.ErrNoRun
	s.want("POST", acmeState+"/pause", `{"reason":"r"}`, 404, "no such run")
}

func TestAskNeedsTheRightToStart(t *testing.T) {
	t.Parallel()
	m := &memory{}
	s := serve(t, m, access.Reads, access.Writes)
	s.want("POST", acmeState+"/abort", `{"reason":"r"}`, 403, "does not have the right")
	if m.asked != nil {
		t.Errorf("the controller was asked %q", m.asked)
	}
}

func TestRunsFilter(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC)
	for query, want := range map[string]v1.RunFilter{
		"":                          {Limit: 100},
		"?result=timed-out":         {Result: "timed-out", Limit: 100},
		"?host=h01.example&limit=7": {Selector: v1.Selector{Hosts: []string{"h01.example"}}, Limit: 7},
		"?host=h01&host=h02&label=shop=basel,bern&label=zone=&role=till": {
			Selector: v1.Selector{Hosts: []string{"h01", "h02"}, Labels: map[string]string{"shop": "basel,bern", "zone": ""}, Roles: []string{"till"}}, Limit: 100,
		},
		"?since=2026-11-21T01:00:00Z&until=2026-11-21T02:00:00%2B00:00": {Since: at, Until: at.Add(time.Hour), Limit: 100},
	} {
		t.Run("right: "+query, func(t *testing.T) {
			t.Parallel()
			m := &memory{}
			serve(t, m, access.Reads).want("GET", acmeState+"/runs"+query, "", 200, `"id":41`)
			got := m.filter
			if !got.Since.Equal(want.Since) || !got.Until.Equal(want.Until) || got.Result != want.Result || !reflect.DeepEqual(got.Selector, want.Selector) || got.Limit != want.Limit {
				t.Errorf("asked for %+v, want %+v", got, want)
			}
		})
	}
	for query, part := range map[string]string{
		"?result=fail":     "did you mean failed?",
		"?result=":         "result: it is empty",
		"?host=":           "host: it is empty",
		"?host=a%20b":      "is not the name of a host",
		"?label=shop":      "use KEY=VALUE",
		"?role=":           "role: it is empty",
		"?since=yesterday": "is not a time; use RFC 3339",
		"?until=":          "until: is not a time",
		"?limit=0":         "use 1 to 1000",
		"?limit=1001":      "use 1 to 1000",
		"?limit=many":      "use 1 to 1000",
		"?limits=1":        "is not a query parameter here",
		"?since=2026-11-21T01:00:00Z&until=2026-11-21T01:00:00Z": "is not after since",
	} {
		t.Run("wrong: "+query, func(t *testing.T) {
			t.Parallel()
			m := &memory{}
			serve(t, m, access.Reads).want("GET", acmeState+"/runs"+query, "", 400, part)
			if !reflect.DeepEqual(m.filter, v1.RunFilter{}) {
				t.Errorf("asked for %+v", m.filter)
			}
		})
	}
}
