package site

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestManyTenants checks that a site has room for many tenants, and that it
// opens again with fewer: the logs of the others stay.
func TestManyTenants(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var tenants []string
	for i := range 40 {
		tenants = append(tenants, fmt.Sprintf("tenant-%d", i))
	}
	for _, served := range [][]string{tenants, tenants[:2], tenants} {
		s, err := Open(t.Context(), Options{
			Name: "test", Zone: time.UTC, Dir: dir, Tenants: served, API: Endpoint{Listen: "127.0.0.1:0"},
			Holder: "a test", Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatalf("with %d tenants: %v", len(served), err)
		}
		for _, tenant := range served {
			if err := s.Controller(tenant).Seen(t.Context(), 0); err != nil {
				t.Errorf("the controller of %s: %v", tenant, err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestListen checks that an address is refused that says less than where to
// listen: an empty one would be a port of chance, reachable from everywhere.
func TestListen(t *testing.T) {
	t.Parallel()
	right := Endpoint{Listen: "127.0.0.1:0"}
	for name, c := range map[string]struct {
		api, nats Endpoint
		want      string
	}{
		"no API":                       {Endpoint{}, right, `listen "" is not host:port`},
		"API without a port":           {Endpoint{Listen: "127.0.0.1"}, right, `listen "127.0.0.1" is not host:port`},
		"API with a name of a port":    {Endpoint{Listen: "127.0.0.1:http"}, right, "a port from 0 to 65535"},
		"API with too high a port":     {Endpoint{Listen: "127.0.0.1:65536"}, right, "a port from 0 to 65535"},
		"API beyond loopback":          {Endpoint{Listen: ":0"}, right, "set tls-cert and tls-key"},
		"log without a port":           {right, Endpoint{Listen: "foo"}, `nats-listen "foo" is not host:port`},
		"log of a certificate alone":   {right, Endpoint{CertFile: "c", KeyFile: "k"}, `nats-listen "" is not host:port`},
		"log beyond loopback":          {right, Endpoint{Listen: "0.0.0.0:0"}, "set nats-tls-cert and nats-tls-key"},
		"log with half of certificate": {right, Endpoint{Listen: "127.0.0.1:0", CertFile: "c"}, "nats-tls-cert and nats-tls-key belong together"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Open(t.Context(), Options{
				Name: "test", Zone: time.UTC, Dir: t.TempDir(), API: c.api, NATS: c.nats, Holder: "a test", Log: slog.New(slog.DiscardHandler),
			})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v and does not say %q", err, c.want)
			}
		})
	}
}

// TestSecondSite checks that a second site on a folder says who holds it,
// though its ports are taken too.
func TestSecondSite(t *testing.T) {
	t.Parallel()
	o := Options{
		Name: "test", Zone: time.UTC, Dir: t.TempDir(), API: Endpoint{Listen: "127.0.0.1:0"}, NATS: Endpoint{Listen: "127.0.0.1:0"},
		Holder: "the first", Log: slog.New(slog.DiscardHandler),
	}
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	o.API.Listen, o.NATS.Listen, o.Holder = s.Address(), s.NATSAddress(), "the second"
	if _, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "is in use by") || !strings.Contains(err.Error(), "the first") {
		t.Errorf("a second site on the folder fails with: %v", err)
	}
}

// TestReady checks that an agent that does not reach its own log is not ready,
// however well the server is.
func TestReady(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), Options{
		Name: "test", Zone: time.UTC, Dir: t.TempDir(), Tenants: []string{"acme"}, API: Endpoint{Listen: "127.0.0.1:0"},
		Holder: "a test", Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if err := s.reaches(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.nats.Close()
	s.reach.at = time.Time{}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Address()+"/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(body), "does not reach its own log") {
		t.Errorf("readyz answers %d: %s, %v", response.StatusCode, body, err)
	}
}
