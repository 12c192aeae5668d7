package check

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/dial"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// fails returns the error of a check with one failed try.
func fails(why string) string {
	return "check it: passed 0 of 1 times in a row within 1h0m0s, in 1 try; the last failed try: " + why
}

// single has time for one try only, so that no test waits.
func single(c rollout.Check) message.Task {
	c.Name, c.Interval, c.Timeout = "it", span(2*time.Hour), span(time.Hour)
	return task(c)
}

// newSite redirects /N to /N-1, and answers 200 at /0.
func newSite(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/0", func(http.ResponseWriter, *http.Request) {})
	for from, to := range map[string]string{"/1": "/0", "/2": "/1", "/3": "/2", "/4": "/3"} {
		mux.Handle(from, http.RedirectHandler(to, http.StatusFound))
	}
	mux.Handle("/elsewhere", http.RedirectHandler("http://other.invalid/login?secret=1", http.StatusFound))
	mux.HandleFunc("/teapot", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	mux.HandleFunc("/endless", func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<10)); err != nil {
				return
			}
		}
	})
	site := httptest.NewServer(mux)
	t.Cleanup(site.Close)
	return site
}

func TestHTTP(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	for name, row := range map[string]struct {
		path   string
		status int
		want   string
	}{
		"200":                     {"/0", 0, ""},
		"200 as wanted":           {"/0", 200, ""},
		"204 wanted":              {"/0", 204, fails("status 200")},
		"404":                     {"/none", 0, fails("status 404")},
		"418 as wanted":           {"/teapot", 418, ""},
		"a redirect":              {"/1", 0, ""},
		"three redirects":         {"/3", 0, ""},
		"four redirects":          {"/4", 0, fails("it redirects more than 3 times")},
		"a redirect as wanted":    {"/1", 302, ""},
		"a redirect elsewhere":    {"/elsewhere", 0, fails("status 302, a redirect to other.invalid, which is not followed")},
		"elsewhere, as is wanted": {"/elsewhere", 302, ""},
		"a body without end":      {"/endless", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, &Runner{answer: time.Hour}, single(rollout.Check{Type: rollout.HTTP, URL: site.URL + row.path, Status: row.status}), row.want)
		})
	}
}

func TestWhatIsNoURL(t *testing.T) {
	t.Parallel()
	check(t, &Runner{answer: time.Hour}, single(rollout.Check{Type: rollout.HTTP, URL: "http://user:secret@h:port/"}), fails(`invalid port ":port" after host`))
	check(t, &Runner{answer: time.Hour}, single(rollout.Check{Type: rollout.HTTP, URL: "file:///etc/passwd"}), fails(`unsupported protocol scheme "file"`))
}

func TestTLSIsVerified(t *testing.T) {
	t.Parallel()
	site := httptest.NewUnstartedServer(http.NotFoundHandler())
	site.Config.ErrorLog = log.New(io.Discard, "", 0)
	site.StartTLS()
	t.Cleanup(site.Close)
	c := rollout.Check{Type: rollout.HTTP, URL: site.URL, Status: 404}
	check(t, &Runner{Transport: site.Client().Transport, answer: time.Hour}, single(c), "")
	if got := (&Runner{answer: time.Hour}).Run(t.Context(), single(c)); got.OK || !strings.Contains(got.Text, "failed to verify certificate") {
		t.Errorf("the outcome is %+v", got)
	}
}

func TestAHookFollowsNoRedirect(t *testing.T) {
	t.Parallel()
	site := newSite(t)
	hook := drain()
	hook.Hook.Retries, hook.Hook.Timeout = nil, span(time.Hour)
	hook.Hook.URL = site.URL + "/1"
	host := strings.TrimPrefix(site.URL, "http://")
	check(t, &Runner{answer: time.Hour}, hook, "hook drain: 1 try failed; the last try: status 302, a redirect to "+host+", which is not followed")
}

// TestAServerThatSpeaksFirst checks the error for a server that sends before it gets a
// request, such as ssh.
func TestAServerThatSpeaksFirst(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "SSH-2.0-x\r\n")
			time.Sleep(10 * time.Millisecond)
			_ = conn.Close()
		}
	}()
	for range 20 {
		got := (&Runner{answer: time.Hour}).Run(t.Context(), single(rollout.Check{Type: rollout.HTTP, URL: "http://" + listener.Addr().String()}))
		if got.OK || !strings.Contains(got.Text, "malformed HTTP response") && !strings.Contains(got.Text, "reset by peer") && !strings.Contains(got.Text, "broken pipe") {
			t.Fatalf("the outcome is %+v", got)
		}
	}
}

func TestTCP(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
	})
	check(t, &Runner{answer: time.Hour}, single(rollout.Check{Type: rollout.TCP, Address: listener.Addr().String()}), "")
	check(t, &Runner{answer: time.Hour}, single(rollout.Check{Type: rollout.TCP, Address: "127.0.0.1:1"}), fails("dial tcp 127.0.0.1:1: connect: connection refused"))
	check(t, &Runner{answer: time.Hour}, single(rollout.Check{Type: rollout.TCP, Address: "127.0.0.1"}), fails("dial tcp: address 127.0.0.1: missing port in address"))
}

// TestLocal checks that at the site checks and hooks connect to the site's own machine only if
// its administrator allows it, and that a refusal is the same whether or not something listens.
func TestLocal(t *testing.T) {
	t.Parallel()
	plain, secured := httptest.NewServer(http.NotFoundHandler()), httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	t.Cleanup(secured.Close)
	address := strings.TrimPrefix(plain.URL, "http://")
	none := &dial.Rule{}
	listed, err := dial.Parse([]string{address})
	if err != nil {
		t.Fatal(err)
	}
	const remedy = "an administrator of the site can allow it with osupgrade-agent serve --allow-local "
	for name, row := range map[string]struct {
		local   *dial.Rule
		task    message.Task
		refused bool
	}{
		"tcp":                {none, single(rollout.Check{Type: rollout.TCP, Address: address}), true},
		"tcp, nobody there":  {none, single(rollout.Check{Type: rollout.TCP, Address: "127.0.0.1:1"}), true},
		"tcp, listed":        {&listed, single(rollout.Check{Type: rollout.TCP, Address: address}), false},
		"http":               {none, single(rollout.Check{Type: rollout.HTTP, URL: plain.URL, Status: 404}), true},
		"https":              {none, single(rollout.Check{Type: rollout.HTTP, URL: secured.URL, Status: 404}), true},
		"http, nobody there": {none, single(rollout.Check{Type: rollout.HTTP, URL: "http://127.0.0.1:1", Status: 404}), true},
		"http, listed":       {&listed, single(rollout.Check{Type: rollout.HTTP, URL: plain.URL, Status: 404}), false},
		"http on a host":     {nil, single(rollout.Check{Type: rollout.HTTP, URL: plain.URL, Status: 404}), false},
		"a hook":             {none, message.Task{Kind: message.Drain, Hook: &rollout.Hook{Type: rollout.HTTP, URL: plain.URL, Timeout: span(time.Hour)}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := (&Runner{Local: row.local}).Run(t.Context(), row.task)
			if got.OK == row.refused || strings.Contains(got.Text, remedy) != row.refused || row.refused && strings.Contains(got.Text, "dial tcp") {
				t.Errorf("it comes out as %+v", got)
			}
		})
	}
}
