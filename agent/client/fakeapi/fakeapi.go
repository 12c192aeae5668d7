// Package fakeapi is a REST API of design.md 7 for tests: it keeps a tenant's
// configuration, rollout, calendars, hosts and runs, and who may log in, in memory, speaks ETags,
// preconditions, dry runs and server-sent events, and fails in the ways that a
// test asks for.
//
// It touches a loopback port and nothing else. It never moves by itself: a run
// goes on only when the test edits it. It never decides whether a
// configuration is right, unless the test says how (see Server.Accept).
package fakeapi

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// Token is the bearer token that every Server asks for. It is the same in all
// of them, so that a test can look for it in whatever was written.
const Token = "fakeapi-secret-5f1d0c9b7e"

// Server is a fake API on a loopback port. Its methods are safe for
// concurrent use.
type Server struct {
	// URL is the endpoint, such as "http://127.0.0.1:40123".
	URL string
	// Token is the bearer token to send; the constant of the same name.
	Token string
	// CACertPEM is the certificate to trust; empty without TLS.
	CACertPEM []byte

	closed chan struct{}
	asked  ledger

	mu        sync.Mutex
	behave    behaviour
	tenants   map[string]*tenant
	configs   *object[v1.OSUpgrade]
	rollouts  *object[v1.Rollout]
	calendars *object[v1.Calendar]
	logins    logins
	known     map[string]bool
	revision  int
	nextRun   uint64
	events    []event
	changed   chan struct{}
	streams   int
	cut       chan struct{}
	faults    []rule
}

// behaviour is what a test may choose about the whole server.
type behaviour struct {
	onStart func(tenant string, run v1.Run)
	noETags bool
	// refuseStart is why a start is refused; empty if it is not.
	refuseStart string
	// avassa is set for a server of Avassa's: see Server.Avassa.
	avassa bool
	// whole is set for a server that answers with lists as a whole.
	whole bool
	// newer is set for a newer agent: see Server.Newer.
	newer bool
	// latency is how long each answer takes.
	latency time.Duration
	// now is the time that windows are calculated from; nil is that of the
	// clock.
	now func() time.Time
}

// tenant is what the server keeps of one tenant.
type tenant struct {
	state *v1.State
	hosts []v1.Host
	// outputs are what hosts have printed in runs, by run and host.
	outputs map[string][]v1.StepOutput
	// plans are what runs change on hosts, by run and host.
	plans map[string]v1.HostPlan
	// offers are what hosts offer to change.
	offers map[string]v1.HostPlan
	runs   []v1.Run
}

// New starts a server that ends with the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := newServer()
	return s.run(t, (*httptest.Server).Start)
}

// NewTLS is New with TLS and a certificate that only CACertPEM vouches for.
func NewTLS(t testing.TB) *Server {
	t.Helper()
	s := newServer()
	return s.run(t, func(h *httptest.Server) {
		h.StartTLS()
		s.CACertPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw})
	})
}

func newServer() *Server {
	s := &Server{
		Token:   Token,
		closed:  make(chan struct{}),
		tenants: map[string]*tenant{},
		logins:  newLogins(),
		nextRun: 41,
		changed: make(chan struct{}),
		cut:     make(chan struct{}),
	}
	s.configs = newObject[v1.OSUpgrade](s, "os-upgrade configuration")
	s.configs.held = true
	s.rollouts = newObject[v1.Rollout](s, "rollout")
	s.calendars = newObject[v1.Calendar](s, "calendar")
	return s
}

func (s *Server) run(t testing.TB, start func(h *httptest.Server)) *Server {
	h := httptest.NewUnstartedServer(s.handler())
	// The faults make noise there on purpose.
	h.Config.ErrorLog = log.New(io.Discard, "", 0)
	start(h)
	s.URL = h.URL
	t.Cleanup(func() {
		close(s.closed)
		h.Close()
	})
	return s
}

func (s *Server) handler() http.Handler {
	m := http.NewServeMux()
	const config, state = "/v1/config/tenants/{tenant}/os-upgrade", "/v1/state/tenants/{tenant}/os-upgrade"
	routes := map[string]http.HandlerFunc{
		"GET " + config:                                   s.configs.get,
		"PUT " + config:                                   s.configs.put,
		"DELETE " + config:                                s.configs.remove,
		"GET " + config + "/rollout":                      s.rollouts.get,
		"PUT " + config + "/rollout":                      s.rollouts.put,
		"DELETE " + config + "/rollout":                   s.rollouts.remove,
		"GET " + config + "/calendars":                    s.getCalendars,
		"GET " + config + "/calendars/{name}":             s.calendars.get,
		"PUT " + config + "/calendars/{name}":             s.calendars.put,
		"DELETE " + config + "/calendars/{name}":          s.calendars.remove,
		"GET " + state + "/windows":                       s.getWindows,
		"GET " + state + "/windows.ics":                   s.getFeed,
		"GET " + state:                                    s.getState,
		"GET " + state + "/hosts":                         s.getHosts,
		"GET " + state + "/hosts/{host}":                  s.getHost,
		"DELETE " + state + "/hosts/{host}":               s.deleteHost,
		"POST " + state + "/start":                        s.postStart,
		"GET " + state + "/runs":                          s.getRuns,
		"GET " + state + "/runs/{id}":                     s.getRun,
		"GET " + state + "/runs/{id}/hosts/{host}/output": s.getOutput,
		"GET " + state + "/runs/{id}/hosts/{host}/plan":   s.getPlan,
		"GET " + state + "/hosts/{host}/offer":            s.getOffer,
		"GET " + state + "/events":                        s.getEvents,
	}
	for what := range acts {
		routes["POST "+state+"/"+what] = s.postAsk(what)
	}
	for pattern, serve := range routes {
		_, path, _ := strings.Cut(pattern, " ")
		m.Handle(pattern, s.guard(s.ours(path != config && path != state, serve)))
	}
	m.HandleFunc("POST /v1/login", s.postLogin)
	m.HandleFunc("POST /v1/approle-login", s.postApproleLogin)
	m.HandleFunc("POST /v1/state/strongbox/token/refresh", s.postRefresh)
	return s.record(s.misbehave(m))
}

// guard refuses a request without the token, and one for a tenant that does
// not exist.
func (s *Server) guard(serve http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("tenant")
		switch {
		case !s.lets(r):
			refuse(w, http.StatusUnauthorized, v1.Error{Message: "the bearer token is missing, wrong or expired"})
		case !s.exists(name):
			refuse(w, http.StatusNotFound, v1.Error{Message: "tenant \"" + name + "\" does not exist", Info: v1.ErrorInfo{Field: "tenant", Value: name}})
		default:
			serve.ServeHTTP(w, r)
		}
	})
}

// Avassa makes the server one of Avassa's (avassa.md): it has the configuration and the
// state of a tenant and nothing of what only osupgrade-agent has. It has and keeps members
// of the configuration that v1.OSUpgrade does not know, and refuses any that it neither
// documents nor has.
func (s *Server) Avassa() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behave.avassa = true
}

// Whole makes the server one that knows no parts of lists.
func (s *Server) Whole() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behave.whole = true
}

// Newer makes the server an osupgrade-agent of a later version: it has and keeps members of
// all objects that this version does not know.
func (s *Server) Newer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behave.newer = true
}

// ours serves what only osupgrade-agent has, unless the server is one of Avassa's.
func (s *Server) ours(only bool, serve http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		refused := only && s.behave.avassa
		s.mu.Unlock()
		if refused {
			refuse(w, http.StatusNotFound, v1.Error{Message: "not found: " + r.URL.Path})
			return
		}
		serve(w, r)
	})
}

func (s *Server) exists(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known == nil || s.known[name]
}

// OnlyTenants makes these tenants the only ones that exist. Before the first
// call every tenant does.
func (s *Server) OnlyTenants(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = map[string]bool{}
	for _, n := range names {
		s.known[n] = true
	}
}

// tenant is the record of a tenant; s.mu is held.
func (s *Server) tenant(name string) *tenant {
	t, ok := s.tenants[name]
	if !ok {
		t = &tenant{}
		s.tenants[name] = t
	}
	return t
}
