// Package fakeapi is a REST API for tests: the real handler (package api) on a store in
// memory, with a controller that a test moves. It fails in the ways that a test asks for.
//
// It touches a loopback port and a temporary folder, and nothing else. A run goes on only
// when the test edits it. The package answers by itself only where a test asks for a server
// that is not ours: see Server.Avassa and its neighbours in other.go.
package fakeapi

import (
	"encoding/pem"
	"io"
	"log"
	"log/slog"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/memory"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Server is an API on a loopback port. Its methods are safe for concurrent use.
type Server struct {
	// URL is the endpoint, such as "http://127.0.0.1:40123".
	URL string
	// Token is the bearer token to send.
	Token string
	// CACertPEM is the certificate to trust; empty without TLS.
	CACertPEM []byte

	closed   chan struct{}
	asked    ledger
	store    *memory.Store
	identity identity
	// configs, rollouts and calendars are what another server does with these objects.
	configs   other[v1.OSUpgrade]
	rollouts  other[v1.Rollout]
	calendars other[v1.Calendar]

	mu      sync.Mutex
	behave  behaviour
	tenants map[string]*tenant
	known   map[string]bool
	nextRun uint64
	// changed is closed and replaced when a stream ends or has sent something.
	changed chan struct{}
	streams map[*stream]bool
	cut     chan struct{}
	faults  []rule
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
	// emptyWhenAbsent is set for a server that answers 200 where there is no configuration.
	emptyWhenAbsent bool
	// latency is how long each answer takes.
	latency time.Duration
	// ahead is how much later than the clock it is for windows.
	ahead time.Duration
}

// New starts a server that ends with the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := newServer(t)
	return s.run(t, (*httptest.Server).Start)
}

// NewTLS is New with TLS and a certificate that only CACertPEM vouches for.
func NewTLS(t testing.TB) *Server {
	t.Helper()
	s := newServer(t)
	return s.run(t, func(h *httptest.Server) {
		h.StartTLS()
		s.CACertPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw})
	})
}

func newServer(t testing.TB) *Server {
	t.Helper()
	s := &Server{
		closed:   make(chan struct{}),
		store:    memory.NewStore(),
		identity: newIdentity(t),
		tenants:  map[string]*tenant{},
		nextRun:  41,
		changed:  make(chan struct{}),
		streams:  map[*stream]bool{},
		cut:      make(chan struct{}),
	}
	s.Token = s.identity.token
	return s
}

func (s *Server) run(t testing.TB, start func(h *httptest.Server)) *Server {
	handler := api.New(api.Options{
		Site: "north", Tenants: tenants{s}, TenantObjects: s.identity.tenants, Store: asSent{s.store}, Tokens: s.identity.tokens, Logins: s.identity.logins, Policies: s.identity.policies, Webhooks: webhooks{stored: s.store},
		Healthy: func() error { return nil }, Log: slog.New(slog.DiscardHandler),
	})
	h := httptest.NewUnstartedServer(s.record(s.misbehave(s.differ(s.sessions(s.streaming(handler))))))
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

// choose sets something that a test may choose.
func (s *Server) choose(set func(b *behaviour)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set(&s.behave)
}

// chosen is what a test has chosen.
func (s *Server) chosen() behaviour {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.behave
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

// tenants are those of a server.
type tenants struct{ *Server }

// Controller implements api.Tenants.
func (s tenants) Controller(name string) (api.Controller, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known != nil && !s.known[name] || !names.Valid(name) {
		return nil, false
	}
	return s.tenant(name), true
}

// All implements api.Tenants.
func (s tenants) All() map[string]api.Controller {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]api.Controller{}
	for name, t := range s.tenants {
		all[name] = t
	}
	return all
}

// tenant returns the controller of a tenant; s.mu is held.
func (s *Server) tenant(name string) *tenant {
	t, found := s.tenants[name]
	if !found {
		t = &tenant{Server: s, name: name, outputs: map[string][]v1.ActionOutput{}, plans: map[string]v1.HostPlan{}, offers: map[string]v1.HostPlan{}, installed: map[uint64]v1.Installed{}}
		s.tenants[name] = t
	}
	return t
}
