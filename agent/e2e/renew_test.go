package e2e

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/certtest"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestRenewedCertificates renews the certificate of a site that runs: both listeners
// present the new one without a restart, with and without SIGHUP, and a worker that
// has to connect again takes the new file of certificates to trust.
func TestRenewedCertificates(t *testing.T) {
	t.Parallel()
	f := newProgram(t)
	cert, key, ca := f.path("site.pem"), f.path("site.key"), f.path("ca.pem")
	renew := func(name string, days int) certtest.Pair {
		pair := certtest.Make(t, name, time.Now().Add(-time.Hour), time.Now().Add(time.Duration(days)*24*time.Hour+time.Hour))
		pair.Write(t, cert, key)
		return pair
	}
	first := renew("first", 5)
	if err := os.WriteFile(ca, first.Cert, 0o600); err != nil {
		t.Fatal(err)
	}
	site, line := f.launch("serve", "serve", "--data", f.dir+"/site", "--tenants", "acme", "--listen", "127.0.0.1:0", "--nats-listen", "127.0.0.1:0",
		"--tls-cert", cert, "--tls-key", key, "--nats-tls-cert", cert, "--nats-tls-key", key)
	found := addresses.FindStringSubmatch(line)
	if found == nil {
		t.Fatalf("serve says %q", line)
	}
	f.api = found[1]
	between := newRelay(t, found[2])
	f.token = f.command("credentials", "token", "--data", f.dir+"/site", "--tenant", "acme", "--name", "test")
	f.record()
	f.writeHost("h01")
	f.command("credentials", "host", "--data", f.dir+"/site", "--tenant", "acme", "--host", "h01", "--out", f.path("h01", "key"))
	f.launch("worker-h01", "worker", "--tenant", "acme", "--host", "h01", "--application", "appliance", "--state", f.path("h01", "state"),
		"--nats-url", "tls://"+between.address(), "--nats-ca-file", ca, "--key-file", f.path("h01", "key"), "--scripts", f.path("h01", "scripts"))

	f.awaitLog("serve", `level=ERROR msg="the certificate expires soon`)
	f.shows(first, "api 5", "nats 5")
	f.advises(ca, "renew the certificate of the REST API, which expires on")
	second := renew("second", 20)
	f.presents(found[1], "second")
	f.presents(found[2], "second")
	f.shows(second, "api 20", "nats 20")
	third := renew("third", 90)
	f.signal(site, syscall.SIGHUP)
	f.awaitLog("serve", "certificates=2")
	f.presents(found[2], "third")

	// The worker is connected as before; once cut, it trusts the site only after its
	// own file is renewed too.
	between.cut()
	f.awaitLog("worker-h01", "certificate signed by unknown authority")
	if err := os.WriteFile(ca, third.Cert, 0o600); err != nil {
		t.Fatal(err)
	}
	f.awaitLog("worker-h01", "connected again")
}

// TestExpiredCertificate: a site does not start with an expired certificate, and
// names its end. A worker that trusts nothing valid says so and waits.
func TestExpiredCertificate(t *testing.T) {
	t.Parallel()
	f := newProgram(t)
	cert, key := f.path("site.pem"), f.path("site.key")
	end := time.Now().Add(-48 * time.Hour)
	certtest.Make(t, "old", end.Add(-time.Hour), end).Write(t, cert, key)
	want := "site.pem expired on " + end.UTC().Format("2006-01-02")
	for _, prefix := range []string{"--", "--nats-"} {
		args := []string{"serve", "--data", f.path("site"), "--tenants", "acme", "--listen", "127.0.0.1:0", "--nats-listen", "127.0.0.1:0", prefix + "tls-cert", cert, prefix + "tls-key", key}
		out, err := exec.CommandContext(t.Context(), f.bin, args...).CombinedOutput() //nolint:gosec // our own binary
		if err == nil || !strings.Contains(string(out), want) || !strings.Contains(string(out), prefix[2:]+"tls-cert") {
			t.Errorf("it ends with %v: %s", err, out)
		}
	}
	f.record()
	f.startSite()
	f.writeHost("h01")
	f.command("credentials", "host", "--data", f.dir+"/site", "--tenant", "acme", "--host", "h01", "--out", f.path("h01", "key"))
	t.Run("worker", func(t *testing.T) {
		worker := exec.CommandContext(t.Context(), f.bin, "worker", "--tenant", "acme", "--host", "h01", "--application", "appliance", //nolint:gosec // our own binary
			"--state", f.path("h01", "state"), "--nats-url", "nats://"+f.nats, "--key-file", f.path("h01", "key"), "--scripts", f.path("h01", "scripts"), "--nats-ca-file", cert)
		log, err := os.Create(f.path("worker-old.log"))
		if err != nil {
			t.Fatal(err)
		}
		worker.Stderr = log
		if err := worker.Start(); err != nil {
			t.Fatal(err)
		}
		f.awaitLog("worker-old", "site.pem holds no certificate that is valid now; the last one expired on "+end.UTC().Format("2006-01-02"))
		_ = worker.Process.Kill()
		_ = worker.Wait()
		_ = log.Close()
	})
}

// advises checks that status tells a person to do something.
func (f *fleet) advises(ca, want string) {
	f.t.Helper()
	status := exec.CommandContext(f.t.Context(), f.bin, "status") //nolint:gosec // our own binary
	status.Env = append(os.Environ(), "OSUPGRADE_ENDPOINT=https://"+f.api, "OSUPGRADE_TOKEN="+f.token, "OSUPGRADE_TENANT=acme", "OSUPGRADE_CA_CERT_FILE="+ca)
	if out, err := status.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
		f.t.Errorf("status ends with %v and says\n%s", err, out)
	}
}

// shows checks the days left that the API shows to whoever trusts a certificate.
func (f *fleet) shows(trusted certtest.Pair, want ...string) {
	f.t.Helper()
	state, err := f.secure(trusted).State(f.t.Context(), "acme", "")
	if err != nil {
		f.t.Fatal(err)
	}
	if got := spell(state.Certificates); strings.Join(got, ", ") != strings.Join(want, ", ") {
		f.t.Errorf("the API shows %q, want %q", got, want)
	}
}

func spell(certificates []v1.Certificate) (all []string) {
	for _, c := range certificates {
		all = append(all, fmt.Sprint(c.Listener, " ", c.DaysLeft))
	}
	return all
}

// secure is a client that trusts a certificate.
func (f *fleet) secure(trusted certtest.Pair) *client.Client {
	f.t.Helper()
	api, err := client.New(client.Options{Endpoint: "https://" + f.api, Token: f.token, CACertPEM: trusted.Cert})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(api.Close)
	return api
}

// presents waits until a listener presents the certificate of a name.
func (f *fleet) presents(address, want string) {
	f.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		got := f.presented(address)
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("%s presents %s, want %s", address, got, want)
		}
	}
}

// presented is the name in the certificate of a listener. NATS begins in plain
// text, with a line of its own.
func (f *fleet) presented(address string) string {
	f.t.Helper()
	conn, err := net.Dial("tcp", address) //nolint:noctx // on loopback
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if address != f.api {
		for one := make([]byte, 1); one[0] != '\n'; {
			if _, err := conn.Read(one); err != nil {
				f.t.Fatal(err)
			}
		}
	}
	secured := tls.Client(conn, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // its name is all that is asked
	if err := secured.HandshakeContext(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	return secured.ConnectionState().PeerCertificates[0].Subject.CommonName
}

// relay passes connections on, until it cuts them.
type relay struct {
	listener net.Listener
	to       string
	mu       sync.Mutex
	open     []net.Conn
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // ends with the test
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: listener, to: to}
	go r.run()
	t.Cleanup(func() {
		_ = listener.Close()
		r.cut()
	})
	return r
}

func (r *relay) address() string { return r.listener.Addr().String() }

func (r *relay) run() {
	for {
		in, err := r.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", r.to) //nolint:noctx // on loopback
		if err != nil {
			_ = in.Close()
			continue
		}
		r.mu.Lock()
		r.open = append(r.open, in, out)
		r.mu.Unlock()
		for _, pair := range [][2]net.Conn{{in, out}, {out, in}} {
			go func() {
				_, _ = io.Copy(pair[0], pair[1])
				_ = pair[0].Close()
			}()
		}
	}
}

// cut ends all connections.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.open {
		_ = c.Close()
	}
	r.open = nil
}
