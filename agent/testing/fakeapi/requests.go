package fakeapi

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Request is one request that the server got.
type Request struct {
	Method string
	Path   string
	Query  url.Values
	Header http.Header
	// Status is that of the answer; 0 when the connection was closed without
	// one.
	Status int
}

// DryRun reports whether the request asked for validation only.
func (r Request) DryRun() bool { return r.Query.Get("validate") == "true" }

// ledger is what was asked. It has a lock of its own, as answers are written
// under the server's.
type ledger struct {
	mu       sync.Mutex
	requests []*Request
}

func (l *ledger) add(r *Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = append(l.requests, r)
}

// Requests lists what was asked, in the order of arrival.
func (s *Server) Requests() []Request {
	s.asked.mu.Lock()
	defer s.asked.mu.Unlock()
	var list []Request
	for _, r := range s.asked.requests {
		list = append(list, *r)
	}
	return list
}

// Count is how many requests with this method came for a path that ends in
// suffix (all paths when empty). Dry runs do not count; see DryRuns.
func (s *Server) Count(method, suffix string) int {
	return s.count(func(r Request) bool {
		return r.Method == method && strings.HasSuffix(r.Path, suffix) && !r.DryRun()
	})
}

// DryRuns is how many requests asked for validation only.
func (s *Server) DryRuns() int { return s.count(Request.DryRun) }

// Answers is how many requests were answered with this status.
func (s *Server) Answers(status int) int {
	return s.count(func(r Request) bool { return r.Status == status })
}

// ForgetRequests sets all counters back to zero.
func (s *Server) ForgetRequests() {
	s.asked.mu.Lock()
	defer s.asked.mu.Unlock()
	s.asked.requests = nil
}

func (s *Server) count(counts func(Request) bool) int {
	n := 0
	for _, r := range s.Requests() {
		if counts(r) {
			n++
		}
	}
	return n
}

// record notes each request when it arrives, and its status before it is
// sent: a client that has its answer finds it counted.
func (s *Server) record(serve http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		note := &Request{Method: r.Method, Path: r.URL.Path, Query: r.URL.Query(), Header: r.Header.Clone()}
		s.asked.add(note)
		serve.ServeHTTP(&statusWriter{w, &s.asked, note}, r)
	})
}

// statusWriter notes the status that is written.
type statusWriter struct {
	http.ResponseWriter
	asked *ledger
	note  *Request
}

// WriteHeader notes and sends the status.
func (w *statusWriter) WriteHeader(status int) {
	w.asked.answered(w.note, status)
	w.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the body.
func (w *statusWriter) Write(b []byte) (int, error) {
	w.asked.answered(w.note, http.StatusOK)
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController flush.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// answered notes a request's status unless it has one.
func (l *ledger) answered(note *Request, status int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if note.Status == 0 {
		note.Status = status
	}
}

// answer writes body as JSON.
func answer(w http.ResponseWriter, status int, body any) {
	b, err := json.Marshal(body)
	if err != nil {
		panic("fakeapi: cannot write an answer as JSON: " + err.Error())
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b) // A client that has gone is the client's matter.
}

// refuse writes an error body of Avassa's shape.
func refuse(w http.ResponseWriter, status int, problems ...v1.Error) {
	answer(w, status, v1.ErrorBody{Errors: problems})
}
