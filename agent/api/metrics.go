package api

import (
	"net/http"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
)

// Metrics are what the site measures of itself.
type Metrics interface {
	// Requested notes a request that was answered; route is the path of the pattern
	// that it matched, empty for none.
	Requested(method, route string, status int, took time.Duration)
	// Streaming notes an event stream that begins, and what it returns its end.
	Streaming() (ended func())
	// Handler answers with the metrics of the site and of the tenants that are allowed.
	Handler(allowed func(tenant string) bool) http.Handler
}

// getMetrics answers with the metrics of the site and of the tenants whose state the
// token may read, in the format of Prometheus.
func (s *server) getMetrics(c *call) error {
	if s.Metrics == nil {
		return problem(http.StatusNotFound, "", "", "this site measures nothing")
	}
	s.Metrics.Handler(func(tenant string) bool { return c.who.Tenant == access.AnyTenant || c.who.Tenant == tenant }).ServeHTTP(c.w, c.Request)
	return nil
}

// measured notes each request once it is answered.
func (s *server) measured(next http.Handler) http.Handler {
	if s.Metrics == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun, noted := time.Now(), &statusWriter{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(noted, r)
		if strings.HasPrefix(w.Header().Get("Content-Type"), eventStream) {
			return // It took as long as somebody watched.
		}
		s.Metrics.Requested(r.Method, routeOf(r.Pattern), noted.status, time.Since(begun))
	})
}

// routeOf returns the path of a pattern; empty for the pattern of all that is not there.
func routeOf(pattern string) string {
	if _, path, found := strings.Cut(pattern, " "); found {
		return path
	}
	return strings.TrimSuffix(pattern, "/")
}

// statusWriter notes the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
