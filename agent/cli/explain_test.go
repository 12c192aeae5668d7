package cli

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site/dev"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestErrorsSpeakTheCommandLine checks what a person at a terminal reads whose
// command a real agent refuses: flags, and the request only at the end.
func TestErrorsSpeakTheCommandLine(t *testing.T) {
	t.Parallel()
	d, err := dev.Start(t.Context(), dev.Options{Dir: t.TempDir(), Hosts: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	configure(t, d.Endpoint, d.Token)
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	secure.URL = strings.Replace(secure.URL, "https:", "http:", 1)
	const path = "/v1/state/tenants/demo/os-upgrade"
	for name, c := range map[string]struct {
		endpoint string
		args     []string
		code     int
		want     string
	}{
		"no window is open":         {d.Endpoint, []string{"start"}, exitFailed, "no maintenance window is configured; to start now: osupgrade-agent start --override-window --reason … (POST " + path + "/start: 412 Precondition Failed)"},
		"override without a reason": {d.Endpoint, []string{"start", "--override-window"}, exitUsage, "--override-window needs a --reason"},
		"duration in a window":      {d.Endpoint, []string{"start", "--duration", "1h"}, exitUsage, "--duration is for runs outside of the windows; add --override-window"},
		"unknown run":               {d.Endpoint, []string{"watch", "77"}, exitFailed, "run 77: there is no such run (GET " + path + "/runs/77: 404 Not Found)"},
		"forget a host that is up":  {d.Endpoint, []string{"forget", "h01", "--reason", "x"}, exitFailed, "host h01 is online"},
		"forget an unknown host":    {d.Endpoint, []string{"forget", "h77", "--reason", "x"}, exitFailed, `host "h77" is not known; osupgrade-agent hosts lists those that are (DELETE ` + path + "/hosts/h77: 404 Not Found)"},
		"nobody answers":            {"http://127.0.0.1:1", []string{"status"}, exitFailed, "cannot reach the REST API: dial tcp 127.0.0.1:1: connect: connection refused (after 2 tries); nothing listens there: start the agent, or give its address with --endpoint or the variable OSUPGRADE_ENDPOINT (GET " + path + ")"},
		"HTTPS to an agent of HTTP": {strings.Replace(d.Endpoint, "http:", "https:", 1), []string{"status"}, exitFailed, "http: server gave HTTP response to HTTPS client (after 2 tries); the agent speaks HTTP there: give --endpoint http://… (GET " + path + ")"},
		"HTTP to an agent of HTTPS": {secure.URL, []string{"status"}, exitFailed, "the agent speaks HTTPS there; give --endpoint https://… (GET " + path + ": 400 Bad Request)"},
		"no reason at all":          {d.Endpoint, []string{"start", "--override-window", "--reason", " "}, exitUsage, "--override-window needs a --reason"},
		"duration of nothing":       {d.Endpoint, []string{"start", "--override-window", "--reason", "x", "--duration", "long"}, exitUsage, `--duration: "long" is not a duration`},
		"duration without end":      {d.Endpoint, []string{"start", "--override-window", "--reason", "x", "--duration", "200000d"}, exitUsage, `--duration: "200000d" is too long; use 1m to 7d`},
		"not a URL":                 {"127.0.0.1", []string{"status"}, exitUsage, `endpoint "127.0.0.1" is not an absolute http or https URL`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := call(t, as(t, c.endpoint, d.Token, d.Tenant, c.args...)...)
			if code != c.code || !strings.HasPrefix(stderr, "osupgrade-agent: "+c.want) {
				t.Errorf("exit code %d, and no word of %q:\n%s%s", code, c.want, stdout, stderr)
			}
		})
	}
}

// configure lets the simulated hosts be upgraded.
func configure(t *testing.T, endpoint, token string) {
	t.Helper()
	api, err := client.New(client.Options{Endpoint: endpoint, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(api.Close)
	config := v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: dev.Application}}}
	if _, err := api.PutConfig(t.Context(), dev.Tenant, config, client.Precondition{}); err != nil {
		t.Fatal(err)
	}
}

// TestDevEndsWithItsHosts checks that dev does not go on with a host fewer, and
// says which host it was.
func TestDevEndsWithItsHosts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	reader, writer := io.Pipe()
	var stderr bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- Run(t.Context(), "1.2.3", []string{"dev", "--data", dir, "--hosts", "1", "--listen", "127.0.0.1:0", "--action-time", "0s"}, strings.NewReader(""), writer, &stderr)
		_ = writer.Close()
	}()
	lines := bufio.NewScanner(reader)
	for _, want := range []string{
		" with 1 simulated host of application ", "In another terminal", dir + "/dev.env", "apply -f " + dir + "/example.yaml", "start --override-window",
	} {
		if !lines.Scan() {
			t.Fatalf("dev ended with exit code %d:\n%s", <-ended, stderr.String())
		}
		if !strings.Contains(lines.Text(), want) {
			t.Errorf("dev says %q, without %q", lines.Text(), want)
		}
	}
	endpoint, token := readEnv(t, filepath.Join(dir, "dev.env"))
	configure(t, endpoint, token)
	// A file where the journal's folder was: the host cannot go on.
	state := filepath.Join(dir, "hosts", "h01", "worker")
	if err := os.Rename(state, state+".gone"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(state, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// Its next action is the last one, if it has not found out by itself.
	_, _, _ = call(t, as(t, endpoint, token, dev.Tenant, "start", "--override-window", "--reason", "a test")...)
	if code := <-ended; code != exitFailed || !strings.Contains(stderr.String(), "\nosupgrade-agent: host h01: ") {
		t.Errorf("exit code %d:\n%s", code, stderr.String())
	}
}

// readEnv reads what dev wrote for a shell.
func readEnv(t *testing.T, path string) (endpoint, token string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch name {
		case "export OSUPGRADE_ENDPOINT":
			endpoint = value
		case "export OSUPGRADE_TOKEN":
			token = value
		}
	}
	return endpoint, token
}

// TestWhatIsNotTheAPI checks what a person reads whose endpoint answers, but is
// not the API, and that the program names itself and its version to it.
func TestWhatIsNotTheAPI(t *testing.T) {
	t.Parallel()
	const path = "/v1/state/tenants/acme/os-upgrade"
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"a redirect": {
			func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "https://there/", http.StatusFound) },
			`302 Found: the API is at "https://there/"; set the endpoint to it (GET ` + path + ")",
		},
		"no JSON": {
			func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") },
			"200 OK: the body (content type \"text/plain; charset=utf-8\") is not the JSON that belongs there: invalid character 'h' looking for beginning of value: hello (GET " + path + ")",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var agent atomic.Value
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				agent.Store(r.UserAgent())
				c.answer(w, r)
			}))
			t.Cleanup(s.Close)
			code, stdout, stderr := call(t, as(t, s.URL, "secret", "acme", "status")...)
			if code != exitFailed || stderr != "osupgrade-agent: "+c.want+"\n" {
				t.Errorf("exit code %d:\n%s%s\nwant\n%s", code, stdout, stderr, c.want)
			}
			if agent.Load() != "osupgrade-agent/1.2.3" {
				t.Errorf("the program calls itself %v", agent.Load())
			}
		})
	}
}

// TestSealedSaysWhatToDo checks what is told when a site is sealed: ours says what opens it,
// and of Avassa's we say it. It is told at once, and the request is sent once.
func TestSealedSaysWhatToDo(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"strongbox sealed: its key file is gone; osupgrade-agent seal reset": "osupgrade-agent: strongbox sealed: its key file is gone; osupgrade-agent seal reset (GET",
		"strongbox sealed": "osupgrade-agent: strongbox sealed; unseal the site with osupgrade-agent unseal, and try again (GET",
	} {
		var asked atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			w.Header().Set("Retry-After", "10")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"errors":[{"error-message":"`+said+`","error-info":{}}]}`)
		}))
		t.Cleanup(server.Close)
		token := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(token, []byte("0123456789"), 0o600); err != nil {
			t.Fatal(err)
		}
		var stderr bytes.Buffer
		code := Run(t.Context(), "test", []string{"hosts", "--endpoint", server.URL, "--tenant", "acme", "--token-file", token}, nil, io.Discard, &stderr)
		if code != exitFailed || !strings.HasPrefix(stderr.String(), want) || asked.Load() != 1 {
			t.Errorf("it says %s (%d, asked %d times)", stderr.String(), code, asked.Load())
		}
	}
}
