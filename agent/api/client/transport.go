package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/hashicorp/go-cleanhttp"
)

const (
	maxBody      = 16 << 20
	maxErrorBody = 64 << 10
)

// idlePerHost is above Terraform's usual parallelism of 10, so that a refresh
// does not open a connection for each request.
const idlePerHost = 16

func newTransport(c *tls.Config) *http.Transport {
	t := cleanhttp.DefaultPooledTransport()
	t.TLSClientConfig = c
	t.MaxIdleConnsPerHost = idlePerHost
	return t
}

// wholeBodies reads each answer to its end before it hands it on. An answer
// that breaks off in its body is then a failed try like any other, and the
// last of several answers still has its body to show.
type wholeBodies struct {
	base   http.RoundTripper
	client *Client
}

// RoundTrip makes one try.
func (t *wholeBodies) RoundTrip(r *http.Request) (*http.Response, error) {
	try := noteTry(r.Context())
	begin := time.Now()
	resp, err := t.base.RoundTrip(r)
	if err == nil {
		err = readWhole(resp)
	}
	t.client.tell(r, resp, err, try, time.Since(begin))
	if err != nil {
		return nil, err
	}
	seen := tallyOf(r.Context())
	seen.status, seen.sealed = resp.StatusCode, resp.StatusCode == http.StatusServiceUnavailable && sealedAnswer(resp, t.client.secret)
	if !seen.login { // A server that wants no logins may want other requests.
		after, _ := retryAfter(resp, time.Now())
		t.client.limit.note(begin, time.Now(), resp.StatusCode, after)
	}
	return resp, nil
}

// CloseIdleConnections hands on what http.Client asks for.
func (t *wholeBodies) CloseIdleConnections() {
	(&http.Client{Transport: t.base}).CloseIdleConnections()
}

// readWhole replaces the body by what it holds. Of an error's body only the
// beginning counts, and nothing that is wrong with it may hide the status.
func readWhole(resp *http.Response) error {
	defer func() { _ = resp.Body.Close() }() // Nothing was written that could be lost.
	limit := maxBody
	if resp.StatusCode >= http.StatusBadRequest {
		limit = maxErrorBody
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(limit)+1))
	if resp.StatusCode < http.StatusBadRequest {
		switch {
		case err != nil:
			return &bodyError{resp.StatusCode, fmt.Errorf("the body was cut after %d bytes: %w", len(body), err)}
		case len(body) > limit:
			return &bodyError{resp.StatusCode, errTooLarge}
		}
	}
	resp.Body = io.NopCloser(bytes.NewReader(body[:min(len(body), limit)]))
	return nil
}

var errTooLarge = errors.New("the body is larger than 16 MiB")

// bodyError is a good status with a body that could not be read.
type bodyError struct {
	status int
	cause  error
}

// Error names the status, so that it is seen that the server did answer.
func (e *bodyError) Error() string { return statusText(e.status) + ": " + e.cause.Error() }

// Unwrap gives the cause.
func (e *bodyError) Unwrap() error { return e.cause }

// tell describes one try to whoever debugs.
func (c *Client) tell(r *http.Request, resp *http.Response, err error, try int, took time.Duration) {
	fields := map[string]any{
		"method": r.Method, "path": c.secret.clean(r.URL.RequestURI()), "try": try, "duration_ms": took.Milliseconds(),
	}
	if err != nil {
		fields["error"] = c.secret.clean(err.Error())
		c.debug(r.Context(), "request failed", fields)
		return
	}
	fields["status"] = resp.StatusCode
	if id := resp.Header.Get("X-Request-Id"); id != "" {
		fields["request_id"] = c.secret.clean(id)
	}
	c.debug(r.Context(), "request answered", fields)
}

// tally is what one call has seen over its tries. It travels in the context,
// as the retry policy is shown nothing else when a try had no answer.
type tally struct {
	method     string
	repeatable bool
	login      bool
	// once is set if the request is not sent again after no answer; see Patient.
	once  bool
	tries int
	// status is that of the last answer; 0 when there was none. sealed tells that the answer
	// was that the site is sealed.
	status int
	sealed bool
}

// harmless reports whether it does no harm to send the request twice.
func (t *tally) harmless() bool {
	return t.repeatable || t.method != http.MethodPost && t.method != http.MethodPatch
}

type tallyKey struct{}

func withTally(ctx context.Context, t *tally) context.Context {
	return context.WithValue(ctx, tallyKey{}, t)
}

func tallyOf(ctx context.Context) *tally {
	if t, ok := ctx.Value(tallyKey{}).(*tally); ok {
		return t
	}
	return &tally{}
}

func noteTry(ctx context.Context) int {
	t := tallyOf(ctx)
	t.tries++
	return t.tries
}
