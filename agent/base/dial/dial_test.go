package dial_test

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/dial"
)

func rule(t *testing.T, list ...string) dial.Rule {
	t.Helper()
	r, err := dial.Parse(list)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestLocalAddresses checks which addresses a rule allows.
func TestLocalAddresses(t *testing.T) {
	t.Parallel()
	none, listed, all := rule(t), rule(t, "127.0.0.1:9093", "localhost:80", "[fe80::1%eth0]:80"), rule(t, dial.Any)
	for _, row := range []struct {
		address       string
		local, listed bool
	}{
		{"192.0.2.1:443", false, true},
		{"[2001:db8::1]:443", false, true},
		{"10.11.12.13:80", false, true},
		{"127.0.0.1:9093", true, true},
		{"[::ffff:127.0.0.1]:9093", true, true},
		{"127.0.0.1:80", true, true},
		{"[::1]:80", true, true},
		{"127.0.0.1:22", true, false},
		{"127.9.9.9:9093", true, false},
		{"[::1]:9093", true, false},
		{"0.0.0.0:9093", true, false},
		{"[::]:9093", true, false},
		{"169.254.169.254:80", true, false},
		{"[::ffff:169.254.169.254]:80", true, false},
		{"[fe80::1%eth0]:80", true, true},
		{"[fe80::1%eth1]:80", true, false},
		{"[fe80::2%eth0]:80", true, false},
		{"[fd00:ec2::254]:80", true, false},
		{"[fd00:ec2::253]:80", false, true},
		{"168.63.129.16:80", true, false},
		{"[::ffff:168.63.129.16]:80", true, false},
		{"100.100.100.200:80", true, false},
		{"192.0.0.192:80", true, false},
		{"[64:ff9b::169.254.169.254]:80", true, false},
		{"[64:ff9b::a9fe:a9fe%eth0]:80", true, false},
		{"[64:ff9b::127.0.0.1]:80", true, false},
		{"[64:ff9b::100.100.100.200]:80", true, false},
		{"[64:ff9b::192.0.2.1]:80", false, true},
		{"[64:ff9b:1::127.0.0.1]:80", false, true},
	} {
		at := netip.MustParseAddrPort(row.address)
		if err := none.Check(at); (err != nil) != row.local {
			t.Errorf("without a list, %s: %v", row.address, err)
		}
		if err := listed.Check(at); (err == nil) != row.listed {
			t.Errorf("with a list, %s: %v", row.address, err)
		}
		if err := all.Check(at); err != nil {
			t.Errorf("with %s: %v", dial.Any, err)
		}
	}
}

// TestOwnAddresses checks that the addresses of this machine's interfaces are local.
func TestOwnAddresses(t *testing.T) {
	t.Parallel()
	own, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range own {
		at := netip.AddrPortFrom(netip.MustParsePrefix(a.String()).Addr(), 443)
		local, ok := errors.AsType[*dial.LocalError](rule(t).Check(at))
		if !ok || !strings.Contains(local.Error(), dial.Flag+" "+local.Address.String()) {
			t.Errorf("%s: %v", at, local)
		}
		if err := rule(t, local.Address.String()).Check(at); err != nil {
			t.Errorf("%s, listed as its error says: %v", at, err)
		}
	}
}

// TestParse checks that an entry which is no address is refused by name.
func TestParse(t *testing.T) {
	t.Parallel()
	for _, entry := range []string{"", "127.0.0.1", "site.example:80", "127.0.0.1:http", "127.0.0.1:0", "127.0.0.1:65536", "Any", "[::1]"} {
		if _, err := dial.Parse([]string{"127.0.0.1:1", entry}); err == nil || !strings.Contains(err.Error(), `"`+entry+`"`) {
			t.Errorf("%q: %v", entry, err)
		}
	}
}

// answers starts a server on loopback and returns its URL.
func answers(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	return server.URL
}

func dialing(d *net.Dialer) *http.Transport { return &http.Transport{DialContext: d.DialContext} }

// TestTransport checks that the rule judges the address to which a name leads, and that a
// refusal is the same whether or not something listens there.
func TestTransport(t *testing.T) {
	t.Parallel()
	address := answers(t)
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(address, "http://"))
	byName := "http://localhost:" + port
	get := func(r dial.Rule, url string) error {
		client := http.Client{Transport: r.Transport(dialing)}
		defer client.CloseIdleConnections()
		response, err := client.Get(url)
		if err == nil {
			_ = response.Body.Close()
		}
		return err
	}
	for _, url := range []string{address, byName, "http://127.0.0.1:1"} {
		if _, refused := errors.AsType[*dial.LocalError](get(rule(t), url)); !refused {
			t.Errorf("%s is not refused", url)
		}
	}
	for _, url := range []string{address, byName} {
		if err := get(rule(t, "127.0.0.1:"+port), url); err != nil {
			t.Errorf("%s is listed: %v", url, err)
		}
	}
}

// TestProxy checks that a proxy of the environment may be local, and that it is not asked for a
// local address. It runs in a process of its own: net/http reads the environment once.
func TestProxy(t *testing.T) {
	t.Parallel()
	if os.Getenv("DIAL_TEST_PROXY") == "" {
		self := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestProxy$", "-test.count=1")
		proxy := answers(t)
		self.Env = append(os.Environ(), "DIAL_TEST_PROXY="+proxy, "http_proxy="+proxy, "HTTP_PROXY="+proxy, "no_proxy=", "NO_PROXY=")
		if out, err := self.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	client := http.Client{Transport: rule(t).Transport(dialing)}
	response, err := client.Get("http://receiver.example/")
	if err != nil {
		t.Fatalf("through a local proxy: %v", err)
	}
	_ = response.Body.Close()
	for _, url := range []string{"http://169.254.169.254/", "http://[fe80::1]/", os.Getenv("DIAL_TEST_PROXY")} {
		response, err := client.Get(url)
		if _, refused := errors.AsType[*dial.LocalError](err); !refused {
			t.Errorf("%s is not refused: %v, %v", url, response, err)
		}
	}
}

// TestRetryAfter reads the header in its two forms.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 23, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"0": 0, "120": 2 * time.Minute, now.Add(time.Minute).Format(http.TimeFormat): time.Minute, now.Add(-time.Minute).Format(http.TimeFormat): 0,
	} {
		if got, ok := dial.RetryAfter(header, now); got != want || !ok {
			t.Errorf("%q is %s, %v; want %s", header, got, ok, want)
		}
	}
	for _, header := range []string{"", "-1", "soon", "99999999999999"} {
		if got, ok := dial.RetryAfter(header, now); got != 0 || ok {
			t.Errorf("%q is %s, %v; want nothing", header, got, ok)
		}
	}
}
