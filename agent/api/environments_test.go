package api

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

const environmentsPath = "/v1/config/tenants/acme/os-upgrade/environments"

// TestEnvironmentObject walks through the life of an environment.
func TestEnvironmentObject(t *testing.T) {
	t.Parallel()
	m := &memory{}
	s := serve(t, m, access.Reads, access.Writes)
	const basel = environmentsPath + "/basel"
	s.want("GET", environmentsPath, "", 200, "[]")
	s.want("GET", basel, "", 404, `tenant \"acme\" has no environment basel; create it with PUT`)
	s.want("DELETE", basel, "", 404, `"tenant \"acme\" has no environment basel"`)
	s.want("PUT", basel, `{}`, 400, "match: it is missing; say which hosts belong to the environment")
	s.want("PUT", basel, `{"match":{"labels":{"a shop":"basel"}}}`, 400, "is not the key of a label")
	s.want("PUT", basel, `{"match":{"roles":["edge"]},"windows":[]}`, 400, "windows: unknown key; use after, calendars, description, follow, maintenance-windows, match, releases, rollout")
	s.want("PUT", basel, `{"match":{"roles":["edge"]},"maintenance-windows":[{"days-of-week":"Someday","start-time":"02:00","duration":"2h"}]}`, 400, "maintenance-windows[0].days-of-week")
	s.want("PUT", basel, `{"match":{"roles":["edge"]},"calendars":["a","a"]}`, 400, "calendars[1]: \\\"a\\\" is there twice")
	s.want("PUT", basel, `{"match":{"roles":["edge"]},"description":"a\nb"}`, 400, "description: ")
	s.want("PUT", environmentsPath+"/default", `{"match":{"roles":["edge"]}}`, 400, `name: \"default\" cannot be declared: it is the environment of all hosts that no other matches`)
	s.want("PUT", environmentsPath+"/Basel", `{"match":{"roles":["edge"]}}`, 400, "is not the name of an environment")
	s.want("PUT", basel+"?validate=true", `{"match":{"labels":{"shop":"basel"}}}`, 204, "")
	s.want("GET", basel, "", 404, "")
	first := s.want("PUT", basel, `{"match":{"labels":{"shop":"basel"}},"maintenance-windows":[{"days-of-week":"monday","start-time":"02:00","duration":"120m"}]}`, 201, "").Get("ETag")
	s.want("GET", basel, "", 200, `{"match":{"labels":{"shop":"basel"}},"maintenance-windows":[{"days-of-week":"Monday","start-time":"02:00","timezone":"site-local","duration":"2h"}]}`)
	s.want("PATCH", basel, `{"maintenance-windows":null,"calendars":[],"rollout":{"splay":"90m"},"description":"Basel"}`, 204, "", "If-Match", first)
	s.want("PATCH", basel, `{"description":"x"}`, 412, "", "If-Match", first)
	s.want("GET", environmentsPath+"?content=true", "", 200, `[{"name":"basel","description":"Basel","etag":"\"1-2\"","environment":{"description":"Basel","match":{"labels":{"shop":"basel"}},"calendars":[],"rollout":{"splay":"1h30m"}}}]`)
	if got := s.want("POST", environmentsPath, `{"name":"lugano","match":{"labels":{"shop":"lugano"}}}`, 201, "").Get("Location"); got != environmentsPath+"/lugano" {
		t.Errorf("it is created at %s", got)
	}
	s.want("POST", environmentsPath, `{"name":"lugano","match":{"labels":{"shop":"lugano"}}}`, 409, "has the environment lugano already; replace it with PUT "+environmentsPath+"/lugano")
	s.want("POST", environmentsPath, `{"name":"default","match":{"labels":{"shop":"lugano"}}}`, 400, `\"default\" cannot be declared`)
	s.want("DELETE", basel, "", 412, "", "If-Match", first)
	s.want("DELETE", basel, "", 204, "")
	s.want("GET", basel, "", 404, "")
	if !slices.Equal(m.seen[:3], []uint64{1, 2, 3}) || len(m.seen) != 4 {
		t.Errorf("the controller was waited for to see %v", m.seen)
	}
}

// TestOrderOfEnvironments checks that environments which come after each other in a circle are
// refused, and that the deletion of one that others come after warns of that.
func TestOrderOfEnvironments(t *testing.T) {
	t.Parallel()
	s := serve(t, &memory{}, access.Reads, access.Writes)
	put := func(name, after string, status int, answer string) {
		t.Helper()
		s.want("PUT", environmentsPath+"/"+name, `{"match":{"labels":{"ring":"`+name+`"}},"after":{"environments":[`+after+`],"soak":"24h"}}`, status, answer)
	}
	s.want("PUT", environmentsPath+"/canary", `{"match":{"labels":{"ring":"canary"}}}`, 201, "")
	put("early", `"canary"`, 201, "")
	put("late", `"early","default"`, 201, "")
	s.want("GET", environmentsPath+"/late", "", 200, `{"match":{"labels":{"ring":"late"}},"after":{"environments":["default","early"],"soak":"1d"}}`)
	put("early", `"early"`, 400, `after.environments: \"early\" makes a cycle: early comes after early; remove one of them`)
	put("canary", `"late"`, 400, `after.environments: \"late\" makes a cycle: canary comes after late comes after early comes after canary`)
	s.want("PATCH", environmentsPath+"/canary", `{"after":{"environments":["late"]}}`, 400, "makes a cycle")
	s.want("POST", environmentsPath, `{"name":"self","match":{"roles":["x"]},"after":{"environments":["self"]}}`, 400, "makes a cycle")
	put("early", "", 400, "after.environments: it is missing")
	header := s.want("DELETE", environmentsPath+"/canary?force=true", "", 204, "")
	if got := header.Values(v1.WarningHeader); len(got) != 1 || !strings.Contains(got[0], "environment canary is deleted, so environment early opens no run") {
		t.Errorf("the deletion warns %q", got)
	}
	if got := s.want("DELETE", environmentsPath+"/late?force=true", "", 204, "").Values(v1.WarningHeader); got != nil {
		t.Errorf("the deletion of an environment that nothing comes after warns %q", got)
	}
}

// TestOrderIsWrittenAlone checks that two writes at one time make no cycle, that an edit which leaves
// the order as it is passes, and that no write reads all environments.
func TestOrderIsWrittenAlone(t *testing.T) {
	t.Parallel()
	m := &memory{}
	s := serve(t, m, access.Reads, access.Writes)
	put := func(name, rest string) {
		s.want("PUT", environmentsPath+"/"+name, `{"match":{"labels":{"ring":"`+name+`"}}`+rest+`}`, 201, "")
	}
	put("ra", "")
	put("rb", "")
	put("rc", `,"after":{"environments":["ra"]}`)
	arrived := make(chan struct{})
	m.intent.writing = func() { // Two writes meet here, if they can.
		select {
		case arrived <- struct{}{}:
		case <-arrived:
		case <-time.After(200 * time.Millisecond):
		}
	}
	var refused atomic.Int32
	var group sync.WaitGroup
	for name, after := range map[string]string{"ra": "rb", "rb": "ra"} {
		group.Go(func() {
			r := httptest.NewRequestWithContext(t.Context(), "PATCH", environmentsPath+"/"+name, strings.NewReader(`{"after":{"environments":["`+after+`"]}}`))
			r.Header.Set("Authorization", "Bearer "+s.token)
			w := httptest.NewRecorder()
			if s.handler.ServeHTTP(w, r); w.Code == http.StatusBadRequest {
				refused.Add(1)
			}
		})
	}
	group.Wait()
	if n := refused.Load(); n != 1 {
		t.Errorf("of two writes that make a cycle %d are refused", n)
	}
	m.intent.writing = nil
	s.want("PATCH", environmentsPath+"/rc", `{"description":"c"}`, 204, "")
	if n := m.intent.listed.Load(); n != 0 {
		t.Errorf("all environments were read %d times", n)
	}
}

// mover is a controller in which a host can be moved, and whose environments have hosts.
type mover struct{ memory }

func (*mover) Move(_ context.Context, host, environment string) (v1.HostEnvironment, error) {
	switch {
	case host != "h01":
		return v1.HostEnvironment{}, fmt.Errorf("host %s: %w", host, run.ErrNoHost)
	case environment == "bern":
		return v1.HostEnvironment{}, &run.NoEnvironment{Name: "bern", Known: []string{"basel", "default"}}
	}
	return v1.HostEnvironment{Hostname: host, Environment: "basel", Assigned: environment != "", Run: 41, RunEnvironment: "lugano"}, nil
}

func (*mover) Vacant(_ context.Context, environment string) error {
	return &run.Refused{Message: "environment " + environment + " is in use"}
}

// TestMoveHost checks where a host can be moved to, and who may move it.
func TestMoveHost(t *testing.T) {
	t.Parallel()
	s := serve(t, &mover{}, access.Writes)
	const hosts = "/v1/state/tenants/acme/os-upgrade/hosts/"
	s.want("PUT", hosts+"h01/environment", `{"environment":"basel"}`, 200, `{"hostname":"h01","environment":"basel","assigned":true,"run":41,"run-environment":"lugano"}`)
	s.want("PUT", hosts+"h01/environment", `{"environment":""}`, 200, `{"hostname":"h01","environment":"basel","run":41,"run-environment":"lugano"}`)
	s.want("PUT", hosts+"h02/environment", `{"environment":"basel"}`, 404, `host \"h02\" is not known`)
	s.want("PUT", hosts+"h01/environment", `{"environment":"bern"}`, 404, "there is no environment bern; there are: basel, default")
	s.want("PUT", hosts+"h01/environment", `{}`, 400, "environment: it is missing")
	s.want("PUT", hosts+"h01/environment", `{"environment":"Basel"}`, 400, "is not the name of an environment")
	s.want("PUT", hosts+"h01/environment", `{"to":"basel"}`, 400, "to: unknown key")
	serve(t, &mover{}, access.Operator).want("PUT", hosts+"h01/environment", `{"environment":"basel"}`, 403, "")
}

// TestEnvironmentInUse checks that an environment that has hosts is deleted only by force.
func TestEnvironmentInUse(t *testing.T) {
	t.Parallel()
	s := serve(t, &mover{}, access.Reads, access.Writes)
	const basel = environmentsPath + "/basel"
	s.want("DELETE", basel, "", 404, "")
	s.want("PUT", basel, `{"match":{"roles":["edge"]}}`, 201, "")
	s.want("DELETE", basel+"?validate=true", "", 412, "environment basel is in use")
	s.want("DELETE", basel, "", 412, "environment basel is in use")
	s.want("GET", basel, "", 200, "")
	s.want("DELETE", basel+"?force=true", "", 204, "")
	s.want("GET", basel, "", 404, "")
}

// TestEnvironmentWarnings checks that a write is answered with what of an environment no host has.
func TestEnvironmentWarnings(t *testing.T) {
	t.Parallel()
	s := serve(t, &knowing{}, access.Writes)
	for body, want := range map[string][]string{
		`{"match":{"roles":["egde"]}}`: {`299 - "match.roles[0]: no known host has role \"egde\"; did you mean edge?"`},
		`{"match":{"roles":["edge"]},"rollout":{"stages":[{"name":"a","match":{"hosts":["h02"]}}]}}`: {`299 - "rollout.stages[0].match.hosts[0]: no host of the environment is named \"h02\""`},
		`{"match":{"roles":["edge"]},"calendars":[]}`:                                                nil,
	} {
		if got := s.want("PUT", environmentsPath+"/basel?validate=true", body, 204, "").Values("Warning"); !slices.Equal(got, want) {
			t.Errorf("%s: the warnings are %q, not %q", body, got, want)
		}
	}
}

// Vacant lets any environment be deleted.
func (*memory) Vacant(context.Context, string) error { return nil }

// Frozen lets everything be changed.
func (*memory) Frozen(context.Context, run.Change) error { return nil }
