package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/dial"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

const (
	// tryTimeout is how long a receiver has for a try, from the connection to the end of
	// its answer.
	tryTimeout = 10 * time.Second
	// maxAnswer is how much of an answer is read: nothing depends on it, but the connection
	// can be used again when all of it was read.
	maxAnswer = 16 << 10
	// maxAnswerHeader bounds the header of an answer.
	maxAnswerHeader = 64 << 10
)

// newClient returns a client for one receiver, which may be at a local address if the rule
// allows that. It follows no redirect: news would go where nobody has declared.
func newClient(local dial.Rule) *http.Client { return clientOf(local.Transport(newTransport)) }

func clientOf(transport http.RoundTripper) *http.Client {
	return &http.Client{
		Timeout:       tryTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     transport,
	}
}

func newTransport(dialer *net.Dialer) *http.Transport {
	return &http.Transport{
		DialContext:       dialer.DialContext,
		ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: tryTimeout,
		MaxResponseHeaderBytes: maxAnswerHeader, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
}

// post sends news once.
func post(ctx context.Context, c *http.Client, agent, address string, key []byte, n v1.News, now time.Time) Outcome {
	body, err := json.Marshal(n)
	if err != nil {
		return Outcome{Err: err.Error()}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return Outcome{Err: "the address is not one"}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", agent)
	r.Header.Set(HeaderID, n.ID)
	r.Header.Set(HeaderTimestamp, strconv.FormatInt(now.Unix(), 10))
	r.Header.Set(HeaderSignature, Sign(key, n.ID, now, body))
	response, err := c.Do(r)
	if err != nil {
		return Outcome{Err: unanswered(err)}
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.CopyN(io.Discard, response.Body, maxAnswer)
	after, _ := dial.RetryAfter(response.Header.Get("Retry-After"), now)
	o := Outcome{Status: response.StatusCode, After: after}
	if response.StatusCode >= 300 && response.StatusCode < 400 {
		o.Err = fmt.Sprintf("the receiver redirects (%d), which is not followed; use the address to which it redirects", response.StatusCode)
	}
	return o
}

// unanswered says why there is no answer.
func unanswered(err error) string {
	wrapped, ok := errors.AsType[*url.Error](err)
	if ok && wrapped.Timeout() {
		return fmt.Sprintf("the receiver has not answered within %s", tryTimeout)
	}
	if ok {
		err = wrapped.Err // It repeats the address.
	}
	return dial.Explain(err)
}
