package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/dial"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
)

// Precondition makes a write conditional (RFC 9110 13.1). The zero value
// makes it unconditional.
type Precondition struct {
	IfMatch     string
	IfNoneMatch string
}

// request is one call of the API.
type request struct {
	method string
	path   string
	query  url.Values
	body   any
	when   Precondition
	// repeatable is set for a POST that has its effect once however often it is sent.
	repeatable bool
	// accept is the content type wanted; empty is JSON.
	accept string
	// confidential is set if the answer has a secret: no error shows anything of it.
	confidential bool
	// login is set for a login, of which a refused one is not sent again: servers count them.
	login bool
}

// reply is what came back, with the body read.
type reply struct {
	status int
	header http.Header
	body   []byte
	// retried tells that an earlier try may have had an effect unseen.
	retried bool
}

// tenantPath is a path below a tenant. A name that is none is refused here, as
// "..", for one, would ask for another object.
func tenantPath(tree, tenant, rest string) (string, error) {
	if !names.Valid(tenant) {
		return "", fmt.Errorf("tenant %q is not a name; use at most %d of a-z, 0-9 and -, with no - at either end", tenant, names.MaxLength)
	}
	return "/v1/" + tree + "/tenants/" + tenant + "/os-upgrade" + rest, nil
}

// get asks for path and reads the JSON that comes into to.
func (c *Client) get(ctx context.Context, path string, query url.Values, to any) error {
	q := request{method: http.MethodGet, path: path, query: query}
	a, err := c.do(ctx, q)
	if err != nil {
		return err
	}
	return c.decode(q, a, to)
}

// do sends a request with the token of the session and returns the answer, as send does. It
// is a *LoginError if there is no good token.
func (c *Client) do(ctx context.Context, q request) (reply, error) {
	var a reply
	var err error
	problem := c.session.authorized(ctx, func(token string) int {
		a, err = c.send(ctx, q, token)
		return a.status
	})
	if problem != nil {
		a = reply{}
	}
	return a, c.session.judge(problem, err)
}

// send sends a request, again when the policy allows it, and returns the last
// answer; a status of 400 and above is an *Error beside it. An empty token is not sent.
func (c *Client) send(ctx context.Context, q request, token string) (reply, error) {
	t := &tally{method: q.method, repeatable: q.repeatable, login: q.login, once: isPatient(ctx)}
	r, err := c.newRequest(withTally(ctx, t), q, token)
	if err != nil {
		return reply{}, c.failure(q, t, err)
	}
	begin := time.Now()
	if why := c.outage.lastingAt(begin); why != nil && !t.once {
		return reply{}, c.callError(q, why, "not sent, because an earlier request had no answer: "+c.secret.clean(why.Error()))
	}
	if pause := c.limit.wait(ctx); pause > 0 {
		return reply{}, c.callError(q, context.DeadlineExceeded,
			fmt.Sprintf("not sent: the server has answered 429 Too Many Requests and wants no request for another %s, and this one may not wait so long", pause.Round(time.Millisecond)))
	}
	begin = time.Now()
	resp, err := c.calls.Do(r)
	// A request that is not sent again says little: its one try may have met a hiccup.
	if err == nil || t.harmless() {
		c.outage.note(ctx, time.Now(), time.Since(begin), cause(err))
	}
	if err != nil {
		return reply{retried: t.tries > 1}, c.failure(q, t, err)
	}
	defer func() { _ = resp.Body.Close() }() // Stops the timer of this try.
	body, err := io.ReadAll(resp.Body)       // From memory; see wholeBodies.
	if err != nil {
		return reply{}, c.failure(q, t, err)
	}
	a := reply{resp.StatusCode, resp.Header, body, t.tries > 1}
	return a, c.judge(q, a)
}

func (c *Client) newRequest(ctx context.Context, q request, token string) (*retryablehttp.Request, error) {
	var body any // An untyped nil: a nil slice would be an empty body with a length.
	if q.body != nil {
		b, err := json.Marshal(q.body)
		if err != nil {
			return nil, fmt.Errorf("cannot write the body as JSON: %w", err)
		}
		body = b
	}
	r, err := retryablehttp.NewRequestWithContext(ctx, q.method, c.endpoint.at(q.path, q.query), body)
	if err != nil {
		return nil, err
	}
	c.introduce(r.Header, cmp.Or(q.accept, "application/json"), token)
	for name, value := range map[string]string{"If-Match": q.when.IfMatch, "If-None-Match": q.when.IfNoneMatch} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	if q.body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return r, nil
}

func (c *Client) introduce(h http.Header, accept, token string) {
	if token != "" {
		h.Set("Authorization", "Bearer "+token)
	}
	h.Set("Accept", accept)
	if c.agent != "" {
		h.Set("User-Agent", c.agent)
	}
}

// judge makes an error of an answer that is none of success.
func (c *Client) judge(q request, a reply) error {
	switch {
	case a.status >= http.StatusBadRequest:
		return newError(q.method, c.endpoint.Path+q.path, a.status, a.body, c.secret)
	case a.status >= http.StatusMultipleChoices:
		return c.callError(q, nil, fmt.Sprintf("%s: the API is at %q; set the endpoint to it",
			statusText(a.status), c.secret.clean(a.header.Get("Location"))))
	}
	return nil
}

// decode reads a body that must be JSON, whatever its content type claims;
// unknown members are another server's own.
func (c *Client) decode(q request, a reply, to any) error {
	err := json.Unmarshal(a.body, to)
	if err == nil && bytes.Equal(bytes.TrimSpace(a.body), []byte("null")) {
		err = errors.New("null stands for nothing known")
	}
	if err == nil {
		return nil
	}
	if q.confidential {
		return c.callError(q, nil, fmt.Sprintf("%s: the body (content type %q) is not the JSON that belongs there",
			statusText(a.status), c.secret.clean(a.header.Get("Content-Type"))))
	}
	return c.callError(q, nil, fmt.Sprintf("%s: the body (content type %q) is not the JSON that belongs there: %s: %s",
		statusText(a.status), c.secret.clean(a.header.Get("Content-Type")), c.secret.clean(err.Error()), excerpt(a.body, c.secret)))
}

// failure describes a call without a usable answer.
func (c *Client) failure(q request, t *tally, err error) error {
	err = cause(err)
	var about strings.Builder
	if t.tries > 1 {
		fmt.Fprintf(&about, " (after %d tries", t.tries)
		if t.status != 0 {
			fmt.Fprintf(&about, ", the last answer being %s", statusText(t.status))
		}
		about.WriteString(")")
	}
	return c.callError(q, err, c.secret.clean(err.Error())+about.String())
}

// callError describes a call; reason must not contain the token.
func (c *Client) callError(q request, cause error, reason string) *CallError {
	return &CallError{Method: q.method, Path: c.endpoint.Path + q.path, Reason: reason, cause: cause}
}

// cause takes off what net/http puts around an error: the method and the
// address again.
func cause(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

// checkRetry decides whether a request is sent again, as go-retryablehttp asks for it.
func checkRetry(ctx context.Context, resp *http.Response, err error) (bool, error) {
	status := 0
	if err == nil {
		status = resp.StatusCode
	}
	if !again(tallyOf(ctx), status, err) {
		return false, nil
	}
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	// An answer now says more than "deadline exceeded" after a useless wait.
	if wait, ok := retryAfter(resp, time.Now()); ok {
		deadline, bounded := ctx.Deadline()
		return !bounded || time.Now().Add(wait).Before(deadline), nil
	}
	return true, nil
}

// again decides whether a request may be sent once more, after an answer with
// status or, when err is set, after none.
func again(t *tally, status int, err error) bool {
	harmless := t.harmless()
	switch {
	case err != nil:
		return !t.once && !hopeless(err) && (harmless || unsent(err))
	case status == http.StatusTooManyRequests && t.login:
		return false // It would be refused for longer.
	case t.sealed:
		return false // A person has to unseal the site, which takes longer than anybody waits.
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		return true // The server says that it did nothing.
	case status == http.StatusNotImplemented:
		return false // It will not be implemented a second later.
	}
	return harmless && status >= http.StatusInternalServerError
}

// hopeless is what another try will meet again.
func hopeless(err error) bool {
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	return errors.As(err, &certificate) || errors.As(err, &record) || errors.Is(err, errTooLarge)
}

// unsent reports whether nothing was sent: there was no connection to send on.
func unsent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// backoff is how long go-retryablehttp waits before try n+1, n from 0.
func backoff(waitMin, waitMax time.Duration, n int, resp *http.Response) time.Duration {
	if wait, ok := retryAfter(resp, time.Now()); ok {
		return wait
	}
	return jitter(waitMin, waitMax, n, rand.Float64())
}

// jitter spreads waits over the whole of a span that doubles with each try
// ("full jitter"), so that clients that failed together do not come back
// together. Random is in [0, 1).
func jitter(waitMin, waitMax time.Duration, n int, random float64) time.Duration {
	span := waitMin
	for ; n > 0 && span < waitMax; n-- {
		span *= 2
	}
	return time.Duration(random * float64(min(span, waitMax)))
}

// longestWait keeps an absurd Retry-After from overflowing a duration; the
// context ends the wait before that.
const longestWait = 24 * time.Hour

// retryAfter reads Retry-After of an answer that may have one.
func retryAfter(resp *http.Response, now time.Time) (time.Duration, bool) {
	if resp == nil || resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
		return 0, false
	}
	after, ok := dial.RetryAfter(resp.Header.Get("Retry-After"), now)
	return min(after, longestWait), ok
}
