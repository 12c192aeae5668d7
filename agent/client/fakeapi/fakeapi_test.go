package fakeapi

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

const (
	configPath = "/v1/config/tenants/acme/os-upgrade"
	statePath  = "/v1/state/tenants/acme/os-upgrade"
)

// ask sends a request with headers given as name, value, name, value. It
// returns the status, or 0 without an answer, the body and the ETag.
func ask(t *testing.T, s *Server, method, path, body string, headers ...string) (status int, text, etag string) {
	t.Helper()
	resp, err := send(t, s, method, path, body, headers...)
	if err != nil {
		return 0, err.Error(), ""
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error(), ""
	}
	return resp.StatusCode, strings.TrimSpace(string(b)), resp.Header.Get("ETag")
}

func send(t *testing.T, s *Server, method, path, body string, headers ...string) (*http.Response, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.Token)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return c.Do(r)
}

func wantStatus(t *testing.T, got, want int) {
	t.Helper()
	if got != want {
		t.Errorf("got status %d, want %d", got, want)
	}
}

func TestPreconditions(t *testing.T) {
	t.Parallel()
	const first, wrong = `"1"`, `"0"`
	for name, row := range map[string]struct {
		there                         bool
		header, value                 string
		get, put, validate, deleteNow int
	}{
		"none, absent":                     {false, "", "", 404, 201, 204, 404},
		"none, there":                      {true, "", "", 200, 204, 204, 204},
		"If-Match, absent":                 {false, "If-Match", first, 404, 412, 412, 412},
		"If-Match any, absent":             {false, "If-Match", "*", 404, 412, 412, 412},
		"If-Match any, there":              {true, "If-Match", "*", 200, 204, 204, 204},
		"If-Match right":                   {true, "If-Match", first, 200, 204, 204, 204},
		"If-Match right in a list":         {true, "If-Match", wrong + ", " + first, 200, 204, 204, 204},
		"If-Match wrong":                   {true, "If-Match", wrong, 200, 412, 412, 412},
		"If-Match weak":                    {true, "If-Match", "W/" + first, 200, 412, 412, 412},
		"If-None-Match any, absent":        {false, "If-None-Match", "*", 404, 201, 204, 404},
		"If-None-Match any, there":         {true, "If-None-Match", "*", 304, 412, 412, 412},
		"If-None-Match the one, there":     {true, "If-None-Match", first, 304, 412, 412, 412},
		"If-None-Match another one, there": {true, "If-None-Match", wrong, 200, 204, 204, 204},
	} {
		for method, want := range map[string]int{"GET": row.get, "PUT": row.put, "PUT ?validate=true": row.validate, "DELETE": row.deleteNow} {
			t.Run(name+" "+method, func(t *testing.T) {
				t.Parallel()
				s := New(t)
				if row.there {
					s.SetConfig("acme", v1.OSUpgrade{})
				}
				var headers []string
				if row.header != "" {
					headers = []string{row.header, row.value}
				}
				method, query, _ := strings.Cut(method, " ")
				status, _, _ := ask(t, s, method, configPath+query, "{}", headers...)
				wantStatus(t, status, want)
			})
		}
	}
}

func TestPutReads(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		body, kind string
		status     int
	}{
		"right":           {`{"worker-applications":[{"name":"a"}]}`, "application/json", 201},
		"an unknown key":  {`{"windows":[]}`, "application/json", 400},
		"no JSON":         {`a: b`, "application/json", 400},
		"two values":      {`{} {}`, "application/json", 400},
		"another type":    {`{}`, "text/plain", 400},
		"more than 1 MiB": {`{"worker-applications":[` + strings.Repeat(" ", v1.MaxBody) + `]}`, "application/json", 400},
		"nothing managed": {`{}`, "application/json", 201},
		"empty lists":     {`{"worker-applications":[],"maintenance-windows":[]}`, "application/json", 201},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := New(t)
			status, _, _ := ask(t, s, "PUT", configPath, row.body, "Content-Type", row.kind)
			wantStatus(t, status, row.status)
			if _, _, stored := s.Config("acme"); stored != (row.status == 201) {
				t.Errorf("stored: %t", stored)
			}
		})
	}
}

func TestETagFollowsTheContent(t *testing.T) {
	t.Parallel()
	s := New(t)
	_, _, first := ask(t, s, "PUT", configPath, "{}")
	_, _, shown := ask(t, s, "GET", configPath, "")
	s.EditConfig("acme", func(c *v1.OSUpgrade) { c.WorkerApplications = []v1.WorkerApplication{{Name: "a"}} })
	_, body, second := ask(t, s, "GET", configPath, "")
	if first == "" || first != shown || first == second {
		t.Errorf("ETags %s, %s, then %s", first, shown, second)
	}
	if body != `{"worker-applications":[{"name":"a"}]}` {
		t.Errorf("got %s", body)
	}
	s.RemoveConfig("acme")
	status, _, _ := ask(t, s, "GET", configPath, "")
	wantStatus(t, status, 404)
}

func TestStoredConfigIsNotShared(t *testing.T) {
	t.Parallel()
	s := New(t)
	mine := v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: "a"}}}
	s.SetConfig("acme", mine)
	mine.WorkerApplications[0].Name = "changed"
	got, _, _ := s.Config("acme")
	got.WorkerApplications[0].Name = "changed"
	if kept, _, _ := s.Config("acme"); kept.WorkerApplications[0].Name != "a" {
		t.Error("who set or got a configuration can change the stored one")
	}
}

func TestGuard(t *testing.T) {
	t.Parallel()
	s := New(t)
	s.OnlyTenants("other")
	status, _, _ := ask(t, s, "GET", configPath, "", "Authorization", "Bearer wrong")
	wantStatus(t, status, 401)
	status, body, _ := ask(t, s, "GET", configPath, "")
	wantStatus(t, status, 404)
	if want := `{"errors":[{"error-message":"tenant \"acme\" does not exist","error-info":{"field":"tenant","value":"acme"}}]}`; body != want {
		t.Errorf("got %s, want %s", body, want)
	}
}

func TestFaultsAreTakenInOrder(t *testing.T) {
	t.Parallel()
	s := New(t)
	s.Inject("GET", "/hosts", Status(500, "a"), CloseBefore())
	s.Inject("PUT", "", CloseAfter())
	for i, want := range []int{500, 0, 200} {
		status, _, _ := ask(t, s, "GET", statePath+"/hosts", "")
		if status != want {
			t.Errorf("request %d: got status %d, want %d", i, status, want)
		}
	}
	status, _, _ := ask(t, s, "PUT", configPath, "{}")
	wantStatus(t, status, 0)
	if _, _, stored := s.Config("acme"); !stored {
		t.Error("the lost answer had no effect")
	}
	if s.Count("GET", "/hosts") != 3 || s.Count("GET", "") != 3 || s.Count("PUT", "") != 1 || s.Answers(500) != 1 || s.Pending() != 0 {
		t.Errorf("counted %+v", s.Requests())
	}
	s.ForgetRequests()
	if n := len(s.Requests()); n != 0 {
		t.Errorf("%d requests are not forgotten", n)
	}
}

func TestRuns(t *testing.T) {
	t.Parallel()
	s := New(t)
	s.SetHosts("acme", v1.Host{Hostname: "h01"}, v1.Host{Hostname: "h02"})
	s.OnStart(func(tenant string, run v1.Run) {
		s.EditRun(tenant, run.ID, func(r *v1.Run) { r.Hosts[1].Status = "skipped" })
		s.FinishRun(tenant, run.ID, "completed", "all done")
	})
	status, body, _ := ask(t, s, "POST", statePath+"/start", `{"reason":"why"}`)
	wantStatus(t, status, 201)
	if !strings.Contains(body, `"id":41,"phase":"preparing"`) {
		t.Errorf("the answer is not the run as it was opened: %s", body)
	}
	run := s.Runs("acme")[0]
	if !run.Finished() || run.EndedAt == nil || run.Reason != "all done" || run.Hosts[0].Status != "upgraded" || run.Hosts[1].Status != "skipped" {
		t.Errorf("got %+v", run)
	}
	status, _, _ = ask(t, s, "GET", statePath+"/runs/41", "")
	wantStatus(t, status, 200)
	s.ForgetRun("acme", 41)
	for _, path := range []string{"/runs/41", "/runs/x"} {
		status, _, _ = ask(t, s, "GET", statePath+path, "")
		wantStatus(t, status, 404)
	}
}

// TestRetry checks that a retry is of the hosts alone that failed or were
// skipped.
func TestRetry(t *testing.T) {
	t.Parallel()
	s := New(t)
	s.SetHosts("acme", v1.Host{Hostname: "h01"}, v1.Host{Hostname: "h02"}, v1.Host{Hostname: "h03"})
	s.AddRun("acme", v1.Run{ID: 5, Phase: "finished", Hosts: []v1.RunHost{{Hostname: "h01", Status: "failed"}, {Hostname: "h02", Status: "upgraded"}, {Hostname: "h03", Status: "skipped"}}})
	status, _, _ := ask(t, s, "POST", statePath+"/start", `{"retry-of":4}`)
	wantStatus(t, status, 412)
	status, body, _ := ask(t, s, "POST", statePath+"/start", `{"retry-of":5}`)
	wantStatus(t, status, 201)
	if run := s.Runs("acme")[0]; run.RetryOf != 5 || len(run.Hosts) != 2 || run.Hosts[0].Hostname != "h01" || run.Hosts[1].Hostname != "h03" {
		t.Errorf("the retry is %s", body)
	}
}

// TestObjectsAreApart checks that a rollout is edited, removed and deleted
// beside the configuration, and during a run, which keeps the latter.
func TestObjectsAreApart(t *testing.T) {
	t.Parallel()
	s := New(t)
	s.SetConfig("acme", v1.OSUpgrade{})
	s.AddRun("acme", v1.Run{ID: 5, Phase: "upgrading"})
	s.EditRollout("acme", func(r *v1.Rollout) { r.Splay = "1h" })
	first, etag, _ := s.Rollout("acme")
	s.EditRollout("acme", func(r *v1.Rollout) { r.Paused = true })
	second, later, _ := s.Rollout("acme")
	if first.Paused || second.Splay != "1h" || !second.Paused || etag == later {
		t.Errorf("%+v with %s became %+v with %s", first, etag, second, later)
	}
	status, _, _ := ask(t, s, "DELETE", configPath, "")
	wantStatus(t, status, 412)
	status, _, _ = ask(t, s, "DELETE", configPath+"/rollout", "")
	wantStatus(t, status, 204)
	status, body, _ := ask(t, s, "DELETE", configPath+"/rollout", "")
	if wantStatus(t, status, 404); !strings.Contains(body, "has no rollout") {
		t.Errorf("a rollout that is not there is answered with %s", body)
	}
	s.SetRollout("acme", v1.Rollout{})
	s.RemoveRollout("acme")
	if _, _, there := s.Rollout("acme"); there {
		t.Error("the rollout is still there")
	}
}

func TestEditOfNoRunPanics(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("it did not panic")
		}
	}()
	New(t).EditRun("acme", 7, func(*v1.Run) {})
}

func TestEventsResume(t *testing.T) {
	t.Parallel()
	s := New(t)
	s.AddRun("acme", v1.Run{ID: 5, Phase: "a"})
	s.AddRun("other", v1.Run{ID: 6, Phase: "b"})
	s.AddRun("acme", v1.Run{ID: 7, Phase: "c"})
	for header, want := range map[string]string{"": "3", "0": "1 3", "1": "3"} {
		t.Run("after "+header, func(t *testing.T) {
			t.Parallel()
			resp, err := send(t, s, "GET", statePath+"/events", "", "Last-Event-ID", header)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			var ids []string
			for lines := bufio.NewScanner(resp.Body); len(ids) < len(strings.Fields(want)) && lines.Scan(); {
				if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
					ids = append(ids, id)
				}
			}
			if got := strings.Join(ids, " "); got != want {
				t.Errorf("got events %s, want %s", got, want)
			}
		})
	}
}

func TestBrokenBodies(t *testing.T) {
	t.Parallel()
	s := New(t)
	s.SetHosts("acme", v1.Host{Hostname: "h01"})
	_, whole, _ := ask(t, s, "GET", statePath+"/hosts", "")
	s.Inject("GET", "/hosts", Truncate(), Cut(), Huge(1000), ContentType("text/html"))
	_, half, _ := ask(t, s, "GET", statePath+"/hosts", "")
	if half != whole[:len(whole)/2] {
		t.Errorf("got %q", half)
	}
	if status, text, _ := ask(t, s, "GET", statePath+"/hosts", ""); status != 0 || !strings.Contains(text, "unexpected EOF") {
		t.Errorf("a cut body reads as %d %s", status, text)
	}
	if _, text, _ := ask(t, s, "GET", statePath+"/hosts", ""); len(text) != 1000 {
		t.Errorf("a huge body has %d bytes", len(text))
	}
	if _, text, _ := ask(t, s, "GET", statePath+"/hosts", ""); text != whole {
		t.Errorf("with another content type: %s", text)
	}
}

// TestForeignMembers: Avassa's server refuses a member that it neither documents nor has; a
// newer agent does so with one that neither we know nor it has.
func TestForeignMembers(t *testing.T) {
	t.Parallel()
	const path = "/v1/config/tenants/acme/os-upgrade"
	for name, row := range map[string]struct {
		be         func(*Server)
		there, put string
		want       int
	}{
		"documented":          {(*Server).Avassa, `{}`, `{"worker-applications":[{"name":"a"}]}`, 204},
		"its own":             {(*Server).Avassa, `{"x":1}`, `{"x":2}`, 204},
		"its own, in a list":  {(*Server).Avassa, `{"worker-applications":[{"name":"a","x":1}]}`, `{"worker-applications":[{"name":"b"},{"name":"a","x":1}]}`, 204},
		"ours":                {(*Server).Avassa, `{}`, `{"reserve":"1h"}`, 400},
		"ours, in a list":     {(*Server).Avassa, `{}`, `{"worker-applications":[{"name":"a","rollout":"x"}]}`, 400},
		"known to both":       {(*Server).Newer, `{}`, `{"worker-applications":[{"name":"a"}]}`, 204},
		"its own, newer":      {(*Server).Newer, `{"x":1}`, `{"x":2}`, 204},
		"nobody's":            {(*Server).Newer, `{}`, `{"x":2}`, 400},
		"unknown to this one": {func(*Server) {}, `{}`, `{"x":2}`, 400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := New(t)
			row.be(s)
			s.SetConfigBody("acme", row.there)
			if status, text, _ := ask(t, s, "PUT", path, row.put); status != row.want {
				t.Errorf("got %d %s, want %d", status, text, row.want)
			}
		})
	}
}
