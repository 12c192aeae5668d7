package api

import (
	"crypto/rand"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/trace"
)

// The headers of W3C Trace Context: that of a request, and that of its answer (Level 2).
const (
	traceparentHeader   = "Traceparent"
	traceresponseHeader = "Traceresponse"
)

// untraced are the paths that machines ask all the time. Their requests are no spans.
var untraced = []string{"/healthz", "/readyz", "/metrics"}

// traced makes a span of each request. It is part of the trace that the request names, if
// it names one, and what the request causes is part of the span: the run that it opens.
func (s *server) traced(next http.Handler) http.Handler {
	if s.Traces == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if slices.Contains(untraced, r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		begun, parent := time.Now(), parentOf(r)
		here := trace.Context{Trace: parent.Trace}
		if !parent.Valid() {
			_, _ = rand.Read(here.Trace[:]) // It never fails.
		}
		_, _ = rand.Read(here.Span[:])
		here.Sampled = s.Traces.Samples(parent, here.Trace)
		w.Header().Set(traceresponseHeader, here.String())
		r = r.WithContext(trace.With(r.Context(), here))
		noted := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(noted, r)
		if here.Sampled && !strings.HasPrefix(w.Header().Get("Content-Type"), eventStream) {
			span := requestSpan(r, noted.status, w.Header().Get(requestIDHeader))
			span.Context, span.Parent, span.Remote, span.Start, span.End = here, parent.Span, parent.Valid(), begun, time.Now()
			s.Traces.Put(span)
		}
	})
}

// parentOf returns the span that a request names; none when it names several.
func parentOf(r *http.Request) trace.Context {
	if named := r.Header.Values(traceparentHeader); len(named) == 1 {
		return trace.Parse(named[0])
	}
	return trace.Context{}
}

// requestSpan makes the span of a request that was answered. It has the pattern of the
// path and not the path, in which anybody can write anything.
func requestSpan(r *http.Request, status int, id string) trace.Span {
	method, route := r.Method, routeOf(r.Pattern)
	if !slices.Contains(inOrder, method) {
		method = "_OTHER"
	}
	span := trace.Span{Name: method, Kind: trace.Server, Attributes: []trace.Attribute{
		trace.Text("http.request.method", method), trace.Number("http.response.status_code", int64(status)), trace.Text(trace.RequestIDKey, id),
	}}
	if route != "" {
		span.Name += " " + route
		span.Attributes = append(span.Attributes, trace.Text("http.route", route))
	}
	if status >= http.StatusInternalServerError {
		span.Failed, span.Status = true, http.StatusText(status)
	}
	return span
}
