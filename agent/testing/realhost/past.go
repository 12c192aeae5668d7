package realhost

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Past is a mirror with dates in its paths: it has repositories as they were at some times,
// each at /TIME/HOST/.
type Past struct {
	t      testing.TB
	server *httptest.Server

	mu    sync.Mutex
	times map[string]*Repository
}

// NewPast starts a mirror that has no repository yet.
func NewPast(t testing.TB) *Past {
	t.Helper()
	p := &Past{t: t, times: map[string]*Repository{}}
	p.server = httptest.NewServer(p)
	t.Cleanup(func() {
		p.server.CloseClientConnections()
		p.server.Close()
	})
	return p
}

// Address is where it listens, HOST:PORT of this machine.
func (p *Past) Address() string { return p.server.Listener.Addr().String() }

// Keep has the mirror serve what a repository had at a time.
func (p *Past) Keep(at, host string, about Release, debs ...Deb) {
	p.t.Helper()
	r := NewRepository(p.t)
	r.Describe(about)
	r.Publish(debs...)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.times["/"+at+"/"+host] = r
}

// Break makes all repositories faulty that it has; None repairs them.
func (p *Past) Break(fault Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.times {
		r.Break(fault)
	}
}

// ServeHTTP implements http.Handler.
func (p *Past) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	parts := strings.SplitN(request.URL.Path, "/", 4)
	if len(parts) < 4 {
		http.NotFound(w, request)
		return
	}
	at := "/" + parts[1] + "/" + parts[2]
	p.mu.Lock()
	repository := p.times[at]
	p.mu.Unlock()
	if repository == nil {
		http.NotFound(w, request)
		return
	}
	http.StripPrefix(at, repository).ServeHTTP(w, request)
}
