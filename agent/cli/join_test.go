//go:build !worker

package cli

import (
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestJoinByAnotherName checks that a host which calls its site by an address that is not in its
// certificate is told the command that makes one for it, with the names there are.
func TestJoinByAnotherName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if code, stdout, stderr := call(t, "init", "--data", dir, "--name", "site.example", "--name", "192.0.2.10"); code != exitOK {
		t.Fatalf("init: exit code %d:\n%s%s", code, stdout, stderr)
	}
	s, err := site.Open(t.Context(), site.Options{
		Name: "here", Zone: time.UTC, Dir: dir, Tenants: []string{"acme"}, API: site.Endpoint{Listen: "0.0.0.0:0"}, NATS: site.Endpoint{Listen: "127.0.0.1:0"}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	code, token, stderr := call(t, "credentials", "join-token", "create", "--data", dir, "--tenant", "acme", "--host", "h01", "--application", "app")
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	_, port, err := net.SplitHostPort(s.Address())
	if err != nil {
		t.Fatal(err)
	}
	host := t.TempDir()
	file := writeIn(t, host)("token", token)
	code, stdout, stderr := call(t, "worker", "join", "--site", "https://127.0.0.2:"+port, "--token-file", file, "--host", "h01", "--config", filepath.Join(host, "worker.yaml"))
	if code != exitFailed || !strings.Contains(stderr, "on the site: osupgrade-agent init --name site.example --name 192.0.2.10 --name 127.0.0.2 (POST /v1/join)") {
		t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
	}
}

// TestJoinNamesItsFlag checks that the advice about a wrong address names the flag of worker join,
// which has no --endpoint.
func TestJoinNamesItsFlag(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	for endpoint, want := range map[string]string{
		strings.Replace(plain.URL, "http:", "https:", 1): "the site speaks HTTP there: give --site http://… (POST /v1/join)",
		"http://127.0.0.1:1":                             "nothing listens there: start the agent of the site, or give its address with --site (POST /v1/join)",
	} {
		api, err := client.New(client.Options{Endpoint: endpoint, Token: "osuj_x"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = api.Join(t.Context(), v1.Join{Host: "h01"})
		api.Close()
		if got := explain(err); !strings.Contains(got, want) || strings.Contains(got, "endpoint") {
			t.Errorf("%q lacks %q", got, want)
		}
	}
}
