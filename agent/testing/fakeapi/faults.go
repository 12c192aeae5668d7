package fakeapi

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Fault makes one request go wrong: it wraps what would have served it.
type Fault func(serve http.Handler) http.Handler

// rule is a fault that waits for its request.
type rule struct {
	method, suffix string
	fault          Fault
}

// Inject queues faults for the next requests with this method (any when
// empty) and a path that ends in suffix (any when empty), one fault for each.
func (s *Server) Inject(method, suffix string, faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range faults {
		s.faults = append(s.faults, rule{method, suffix, f})
	}
}

// Pending is how many faults still wait for a request.
func (s *Server) Pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.faults)
}

// Latency makes each answer take so long, as over a network.
func (s *Server) Latency(latency time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behave.latency = latency
}

func (s *Server) misbehave(serve http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		latency := s.behave.latency
		s.mu.Unlock()
		time.Sleep(latency)
		if f := s.takeFault(r); f != nil {
			f(serve).ServeHTTP(w, r)
			return
		}
		serve.ServeHTTP(w, r)
	})
}

func (s *Server) takeFault(r *http.Request) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, f := range s.faults {
		if (f.method == "" || f.method == r.Method) && strings.HasSuffix(r.URL.Path, f.suffix) {
			s.faults = slices.Delete(s.faults, i, i+1)
			return f.fault
		}
	}
	return nil
}

// Status answers with a status and an error body of Avassa's shape; nothing
// is done.
func Status(status int, message string) Fault {
	return func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, status, v1.Error{Message: message})
		})
	}
}

// RetryAfter is Status with a Retry-After header, such as "1" for a second.
func RetryAfter(status int, after string) Fault {
	return func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", after)
			refuse(w, status, v1.Error{Message: "not now; try again later"})
		})
	}
}

// Raw answers with these bytes, whatever they are; nothing is done.
func Raw(status int, contentType, body string) Fault {
	return func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		})
	}
}

// Huge answers 200 with a JSON string of size bytes.
func Huge(size int) Fault {
	return Raw(http.StatusOK, "application/json", `"`+strings.Repeat("x", size-2)+`"`)
}

// CloseBefore closes the connection without an answer; nothing is done.
func CloseBefore() Fault {
	return func(http.Handler) http.Handler {
		return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	}
}

// CloseAfter does what was asked and closes the connection without an answer: a client
// that sends a change again then meets its own.
func CloseAfter() Fault {
	return mangle(func(http.ResponseWriter, *httptest.ResponseRecorder) { panic(http.ErrAbortHandler) })
}

// StatusAfter does what was asked, but answers with an error status.
func StatusAfter(status int, message string) Fault {
	return mangle(func(w http.ResponseWriter, _ *httptest.ResponseRecorder) {
		refuse(w, status, v1.Error{Message: message})
	})
}

// Truncate does what was asked and answers with the first half of the body,
// as if it were the whole.
func Truncate() Fault {
	return mangle(func(w http.ResponseWriter, done *httptest.ResponseRecorder) {
		w.WriteHeader(done.Code)
		_, _ = w.Write(done.Body.Bytes()[:done.Body.Len()/2])
	})
}

// Cut does what was asked and closes the connection in the middle of the
// body.
func Cut() Fault {
	return mangle(func(w http.ResponseWriter, done *httptest.ResponseRecorder) {
		w.Header().Set("Content-Length", strconv.Itoa(done.Body.Len()))
		w.WriteHeader(done.Code)
		_, _ = w.Write(done.Body.Bytes()[:done.Body.Len()/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
}

// ContentType does what was asked and gives the answer another content type.
func ContentType(kind string) Fault {
	return mangle(func(w http.ResponseWriter, done *httptest.ResponseRecorder) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(done.Code)
		_, _ = bytes.NewReader(done.Body.Bytes()).WriteTo(w)
	})
}

// Hang never answers: it waits until the client goes away or the test ends.
func (s *Server) Hang() Fault {
	return func(http.Handler) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-s.closed:
			}
			panic(http.ErrAbortHandler)
		})
	}
}

// First calls do and then serves the request as usual: the place to change
// something behind the client's back between two of its requests.
func First(do func()) Fault {
	return func(serve http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			do()
			serve.ServeHTTP(w, r)
		})
	}
}

// mangle does what was asked and lets spoil write the answer.
func mangle(spoil func(w http.ResponseWriter, done *httptest.ResponseRecorder)) Fault {
	return func(serve http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			done := httptest.NewRecorder()
			serve.ServeHTTP(done, r)
			for name, values := range done.Header() {
				w.Header()[name] = values
			}
			spoil(w, done)
		})
	}
}
