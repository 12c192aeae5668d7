package fakeapi

import (
	"io"
	"net/http"
	"strings"
	"testing"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

const (
	configPath = "/v1/config/tenants/acme/os-upgrade"
	statePath  = "/v1/state/tenants/acme/os-upgrade"
)

// ask sends a request with headers given as name, value, name, value. It
// returns the status, or 0 without an answer, and the body.
func ask(t *testing.T, s *Server, method, path, body string, headers ...string) (status int, text string) {
	t.Helper()
	resp, err := send(t, s, method, path, body, headers...)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, strings.TrimSpace(string(b))
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

func TestGuard(t *testing.T) {
	t.Parallel()
	s := New(t)
	s.OnlyTenants("other")
	status, _ := ask(t, s, "GET", configPath, "", "Authorization", "Bearer wrong")
	wantStatus(t, status, 401)
	status, body := ask(t, s, "GET", configPath, "")
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
		status, _ := ask(t, s, "GET", statePath+"/hosts", "")
		if status != want {
			t.Errorf("request %d: got status %d, want %d", i, status, want)
		}
	}
	status, _ := ask(t, s, "PUT", configPath, "{}")
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
	status, body := ask(t, s, "POST", statePath+"/start", `{"reason":"why"}`)
	wantStatus(t, status, 200)
	if !strings.Contains(body, `"id":41,"phase":"preparing"`) {
		t.Errorf("the answer is not the run as it was opened: %s", body)
	}
	run := s.Runs("acme")[0]
	if !run.Finished() || run.EndedAt == nil || run.Reason != "all done" || run.Hosts[0].Status != "upgraded" || run.Hosts[1].Status != "skipped" {
		t.Errorf("got %+v", run)
	}
	status, _ = ask(t, s, "GET", statePath+"/runs/41", "")
	wantStatus(t, status, 200)
	s.ForgetRun("acme", 41)
	status, _ = ask(t, s, "GET", statePath+"/runs/41", "")
	wantStatus(t, status, 404)
}

// TestRetry checks that a retry is of the hosts alone that failed or were
// skipped.
func TestRetry(t *testing.T) {
	t.Parallel()
	s := New(t)
	s.SetHosts("acme", v1.Host{Hostname: "h01"}, v1.Host{Hostname: "h02"}, v1.Host{Hostname: "h03"})
	s.AddRun("acme", v1.Run{ID: 5, Phase: "finished", Hosts: []v1.RunHost{{Hostname: "h01", Status: "failed"}, {Hostname: "h02", Status: "upgraded"}, {Hostname: "h03", Status: "skipped"}}})
	status, _ := ask(t, s, "POST", statePath+"/start", `{"retry-of":4}`)
	wantStatus(t, status, 412)
	status, body := ask(t, s, "POST", statePath+"/start", `{"retry-of":5}`)
	wantStatus(t, status, 200)
	if run := s.Runs("acme")[0]; run.RetryOf != 5 || len(run.Hosts) != 2 || run.Hosts[0].Hostname != "h01" || run.Hosts[1].Hostname != "h03" {
		t.Errorf("the retry is %s", body)
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

func TestBrokenBodies(t *testing.T) {
	t.Parallel()
	s := New(t)
	s.SetHosts("acme", v1.Host{Hostname: "h01"})
	_, whole := ask(t, s, "GET", statePath+"/hosts", "")
	s.Inject("GET", "/hosts", Truncate(), Cut(), Huge(1000), ContentType("text/html"))
	_, half := ask(t, s, "GET", statePath+"/hosts", "")
	if half != whole[:len(whole)/2] {
		t.Errorf("got %q", half)
	}
	if status, text := ask(t, s, "GET", statePath+"/hosts", ""); status != 0 || !strings.Contains(text, "unexpected EOF") {
		t.Errorf("a cut body reads as %d %s", status, text)
	}
	if _, text := ask(t, s, "GET", statePath+"/hosts", ""); len(text) != 1000 {
		t.Errorf("a huge body has %d bytes", len(text))
	}
	if _, text := ask(t, s, "GET", statePath+"/hosts", ""); text != whole {
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
			if status, text := ask(t, s, "PUT", path, row.put); status != row.want {
				t.Errorf("got %d %s, want %d", status, text, row.want)
			}
		})
	}
}
