package api

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// around is what holds for every request: a bounded body, and a line in the
// log that never has the token.
func (s *server) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := time.Now()
		r.Body = http.MaxBytesReader(w, r.Body, v1.MaxBody)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
		s.Log.Debug("request", "method", r.Method, "path", r.URL.Path, "from", r.RemoteAddr, "took", time.Since(begun))
	})
}

// unmatched gives requests that fit no pattern an answer in the API's own
// form.
type unmatched struct {
	mux *http.ServeMux
	log *slog.Logger
}

// ServeHTTP implements http.Handler.
func (u *unmatched) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, pattern := u.mux.Handler(r); pattern != "" {
		u.mux.ServeHTTP(w, r)
		return
	}
	s := &server{Options: Options{Log: u.log}}
	if allowed := u.allowed(r); len(allowed) > 0 {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		s.fail(w, r, problem(http.StatusMethodNotAllowed, "", "", "%s is not possible here; use %s", r.Method, strings.Join(allowed, ", ")))
		return
	}
	s.fail(w, r, problem(http.StatusNotFound, "", "", "there is nothing at %q", r.URL.Path))
}

func (u *unmatched) allowed(r *http.Request) []string {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodPost} {
		other := &http.Request{Method: method, URL: r.URL, Host: r.Host}
		if _, pattern := u.mux.Handler(other); pattern != "" {
			allowed = append(allowed, method)
		}
	}
	return allowed
}

// readQuery parses the query. What cannot be read is an error: left out, as
// URL.Query does it, "validate=true;" would write what was only to be checked.
func (c *call) readQuery() (err error) {
	if c.query, err = url.ParseQuery(c.URL.RawQuery); err != nil {
		return problem(http.StatusBadRequest, "", c.URL.RawQuery,
			"the query %q cannot be read: %v; use NAME=VALUE joined by \"&\", each percent-encoded", c.URL.RawQuery, err)
	}
	return nil
}

// query checks that a request has no query parameters but those named.
func query(c *call, known ...string) error {
	for name, values := range c.query {
		switch {
		case !slices.Contains(known, name):
			return badRequest(name, "", fmt.Sprintf("is no query parameter here; use %s", strings.Join(known, ", ")))
		case len(values) > 1:
			return badRequest(name, values[1], "is given more than once")
		}
	}
	return nil
}

// flag reads a query parameter that is "true" or not there.
func flag(c *call, name string) (bool, error) {
	switch value := c.query.Get(name); {
	case !c.query.Has(name):
		return false, nil
	case value == "true":
		return true, nil
	default:
		return false, badRequest(name, value, `is not possible; use "true" or leave it out`)
	}
}
