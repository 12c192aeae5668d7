package site

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/jetstream"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/natsd"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/certtest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
)

// certificates makes a self-signed certificate for 127.0.0.1 and returns its files.
func certificates(t testing.TB) (certFile, keyFile string) {
	t.Helper()
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certtest.Make(t, "test", time.Now().Add(-time.Hour), time.Now().Add(time.Hour)).Write(t, certFile, keyFile)
	return certFile, keyFile
}

// TestTLS checks both listeners with a certificate: who trusts it is served,
// who does not is not, and nobody is in plain text.
func TestTLS(t *testing.T) {
	t.Parallel()
	cert, key := certificates(t)
	endpoint := Endpoint{Listen: "127.0.0.1:0", CertFile: cert, KeyFile: key}
	s, err := Open(t.Context(), Options{
		Name: "test", Zone: time.UTC, Dir: t.TempDir(), Tenants: []string{"acme"}, API: endpoint, NATS: endpoint,
		Holder: "a test", Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	checkAPI(t, s, cert)
	checkLog(t, s, cert)
}

func checkAPI(t *testing.T, s *Site, cert string) {
	t.Helper()
	token, err := s.Tokens.Add(principal.Token{Name: "test", Tenant: "acme", Allow: access.Rights()})
	if err != nil {
		t.Fatal(err)
	}
	trusted, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		options client.Options
		served  bool
	}{
		"trusted":     {client.Options{Endpoint: "https://" + s.Address(), CACertPEM: trusted}, true},
		"not trusted": {client.Options{Endpoint: "https://" + s.Address()}, false},
		"plain text":  {client.Options{Endpoint: "http://" + s.Address()}, false},
	} {
		c.options.Token, c.options.Retries = token, -1
		caller, err := client.New(c.options)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := caller.State(t.Context(), "acme", ""); (err == nil) != c.served {
			t.Errorf("%s: the API answers with %v", name, err)
		}
		caller.Close()
	}
	checkHTTP2(t, s, trusted)
}

// checkHTTP2 checks that a client gets HTTP/2 where it can, and HTTP/1.1 else.
func checkHTTP2(t *testing.T, s *Site, trusted []byte) {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(trusted)
	for _, two := range []bool{true, false} {
		protocols := &http.Protocols{}
		protocols.SetHTTP2(two)
		protocols.SetHTTP1(!two)
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, Protocols: protocols}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+s.Address()+"/healthz", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := (&http.Client{Transport: transport}).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if (response.ProtoMajor == 2) != two {
			t.Errorf("with HTTP/2 %t the answer is %s", two, response.Proto)
		}
		transport.CloseIdleConnections()
	}
}

func checkLog(t *testing.T, s *Site, cert string) {
	t.Helper()
	seed, err := s.Hosts.Add(natsd.Identity{Tenant: "acme", Host: "h01"})
	if err != nil {
		t.Fatal(err)
	}
	key, err := nkeys.FromSeed(seed)
	if err != nil {
		t.Fatal(err)
	}
	public, err := key.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	dial := func(url string, options ...nats.Option) error {
		hostLog, err := jetstream.Dial("acme", "h01", func(more ...nats.Option) (*nats.Conn, error) {
			return nats.Connect(url, append(append(options, nats.Nkey(public, key.Sign)), more...)...)
		})
		if err != nil {
			return err
		}
		defer hostLog.Close()
		return hostLog.Report(t.Context(), report.Versions.Of(message.EncodeVersions(map[string]string{"kernel": "6.1"})))
	}
	if err := dial("tls://"+s.NATSAddress(), nats.RootCAs(cert)); err != nil {
		t.Errorf("a host that trusts the certificate: %v", err)
	}
	if err := dial("tls://" + s.NATSAddress()); err == nil {
		t.Error("a host that does not trust the certificate is connected")
	}
	plain, err := net.Dial("tcp", s.NATSAddress()) //nolint:noctx // on loopback
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = plain.Close() }()
	if _, err := plain.Write([]byte("CONNECT {\"verbose\":true}\r\nPING\r\n")); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 4096)
	n, _ := plain.Read(answer) // INFO, which says that TLS is needed.
	m, _ := plain.Read(answer[n:])
	if got := string(answer[n : n+m]); len(got) > 0 && got[0] == '+' {
		t.Errorf("plain text is answered %q", got)
	}
}
