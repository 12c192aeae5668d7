package provider_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest/realagent"
)

// front is a server that can be down: it closes connections, as the socket of a process that
// is restarted does.
type front struct {
	URL  string
	down atomic.Bool
	// asked counts the connections that were closed.
	asked atomic.Int64
	// written is called for each request that changes something, before it is passed on.
	written func()
}

func inFrontOf(t *testing.T, endpoint string) *front {
	t.Helper()
	to, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &front{URL: "http://" + listener.Addr().String(), written: func() {}}
	proxy := httputil.NewSingleHostReverseProxy(to)
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && r.URL.Query().Get("validate") == "" {
			f.written()
		}
		if f.down.Load() {
			f.asked.Add(1)
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

const eighty = acctest.Requirement + `
resource "osupgrade_calendar" "many" {
  count  = 80
  name   = "c${count.index}"
  kind   = "allow"
  events = [{ start = "2099-01-01T00:00", duration = "1h" }]
}
`

// TestApply_throughARestart: the server does not answer for 6 s in the middle of an apply.
// All is created, and the silent server is asked once a second, not by each resource.
func TestApply_throughARestart(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	f := inFrontOf(t, server.Endpoint)
	var writes atomic.Int64
	f.written = func() {
		if writes.Add(1) == 20 {
			f.down.Store(true)
			time.AfterFunc(6*time.Second, func() { f.down.Store(false) })
		}
	}
	server.Endpoint = f.URL
	w := acctest.NewWorkspace(t, server.Env()...)
	w.Write(t, "main.tf", eighty)
	w.Run(t, 0, "apply", "-auto-approve", "-input=false", "-no-color")
	for i := range 80 {
		if _, _, ok := api.Calendar(acctest.Tenant, fmt.Sprintf("c%d", i)); !ok {
			t.Errorf("calendar c%d is missing", i)
		}
	}
	// Each of ten may have asked before it was known, and looked once.
	if n := f.asked.Load(); n > 10+10+7 {
		t.Errorf("the silent server was asked %d times", n)
	}
	w.Run(t, 0, "plan", "-detailed-exitcode", "-input=false", "-no-color")
}

// TestInterrupt_whileAWriteIsUnderWay: Ctrl-C stops no write that was sent. Its outcome is in
// the state, and the next plan is empty.
func TestInterrupt_whileAWriteIsUnderWay(t *testing.T) {
	t.Parallel()
	for name, configurations := range objects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api, server := acctest.Fake(t)
			w := acctest.NewWorkspace(t, server.Env()...)
			w.Write(t, "main.tf", acctest.Requirement+configurations[0])
			arrived, goOn := make(chan struct{}), make(chan struct{})
			if name != "maintenance window" {
				nothing := fakeapi.First(func() {}) // Each of two plans asks for a validation.
				api.Inject(http.MethodPut, "", nothing, nothing)
			}
			api.Inject(http.MethodPut, "", fakeapi.First(func() {
				close(arrived)
				<-goOn
			}))
			p := w.Start(t, "apply", "-auto-approve", "-input=false", "-no-color")
			p.Await(t, func() { <-arrived })
			p.Interrupt(t)
			time.AfterFunc(2*time.Second, func() { close(goOn) })
			_, out := p.Wait(t)
			if strings.Contains(out, "Unable to create") {
				t.Errorf("the apply gave up: %s", out)
			}
			w.Run(t, 0, "plan", "-detailed-exitcode", "-input=false", "-no-color")
		})
	}
}

// TestApply_whoseAnswerIsLost: the connection is cut after the write. The apply finds out what
// became of it.
func TestApply_whoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	for name, configurations := range objects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api, server := acctest.Fake(t)
			w := acctest.NewWorkspace(t, server.Env()...)
			for i, configuration := range configurations {
				w.Write(t, "main.tf", acctest.Requirement+configuration)
				w.Run(t, 0, "plan", "-out=saved", "-input=false", "-no-color")
				if name != "maintenance window" && i == 0 { // The apply plans a creation again.
					api.Inject(http.MethodPut, "", fakeapi.First(func() {}))
				}
				api.Inject(http.MethodPut, "", fakeapi.CloseAfter())
				w.Run(t, 0, "apply", "-input=false", "-no-color", "saved")
				if api.Pending() != 0 {
					t.Errorf("%d answers were not lost", api.Pending())
				}
				w.Run(t, 0, "plan", "-detailed-exitcode", "-input=false", "-no-color")
			}
		})
	}
}

// TestApply_ofWhatIsLeft: what a provider has written that was killed before it could answer
// is not in the state. The next apply adopts it, and says so.
func TestApply_ofWhatIsLeft(t *testing.T) {
	t.Parallel()
	for name, configurations := range objects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api, server := acctest.Fake(t)
			w := acctest.NewWorkspace(t, server.Env()...)
			w.Write(t, "main.tf", acctest.Requirement+configurations[0])
			w.Run(t, 0, "apply", "-auto-approve", "-input=false", "-no-color")
			w.Run(t, 0, "state", "rm", "-no-color", strings.Trim(strings.Fields(configurations[0])[1], `"`)+".a")
			api.ForgetRequests()
			if out := w.Run(t, 0, "apply", "-auto-approve", "-input=false", "-no-color"); !strings.Contains(out, "What exists is managed from now on") {
				t.Errorf("the apply does not say that it adopts what exists: %s", out)
			}
			if n := api.Count(http.MethodPut, ""); n != 0 {
				t.Errorf("it wrote %d times what was there", n)
			}
			w.Run(t, 0, "plan", "-detailed-exitcode", "-input=false", "-no-color")
		})
	}
}

// TestApply_throughARestartOfTheAgent: windows of the real agent move up while it is not
// there for 3 s in the middle of the apply.
func TestApply_throughARestartOfTheAgent(t *testing.T) {
	t.Parallel()
	site := realagent.StartSite(t, acctest.Tenant)
	f := inFrontOf(t, site.Endpoint)
	site.Endpoint = f.URL
	w := acctest.NewWorkspace(t, site.Env()...)
	windows := func(from int) string {
		return acctest.Requirement + fmt.Sprintf(`
resource "osupgrade_maintenance_window" "w" {
  count        = 8
  days_of_week = [%q]
  start_time   = format("%%02d:00", count.index + %d)
  duration     = "30m"
}
`, oneDay, from)
	}
	w.Write(t, "main.tf", windows(0))
	w.Run(t, 0, "apply", "-auto-approve", "-input=false", "-no-color")
	var once atomic.Bool
	f.written = func() {
		if once.CompareAndSwap(false, true) {
			f.down.Store(true)
			time.AfterFunc(3*time.Second, func() { f.down.Store(false) })
		}
	}
	w.Write(t, "main.tf", windows(1))
	w.Run(t, 0, "apply", "-auto-approve", "-input=false", "-no-color")
	w.Run(t, 0, "plan", "-detailed-exitcode", "-input=false", "-no-color")
}
