package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/dial"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

const (
	// timeout is how long a source has, from the connection to the end of its answer.
	timeout = 20 * time.Second
	// maxHeader bounds the header of an answer, in bytes.
	maxHeader = 64 << 10
	// maxRedirects bounds the redirects within a host.
	maxRedirects = 5
)

// newClient returns a client for one source, which may be at a local address if the rule allows
// that. tlsConfig is nil but in tests.
func newClient(local dial.Rule, tlsConfig *tls.Config) *http.Client {
	if tlsConfig == nil {
		tlsConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return &http.Client{
		Timeout: timeout, CheckRedirect: stayOnHost,
		Transport: local.Transport(func(dialer *net.Dialer) *http.Transport {
			return &http.Transport{
				DialContext:       dialer.DialContext,
				ForceAttemptHTTP2: true, DisableKeepAlives: true, TLSHandshakeTimeout: timeout, MaxResponseHeaderBytes: maxHeader, TLSClientConfig: tlsConfig.Clone(),
			}
		}),
	}
}

// errRedirect is a redirect that is not followed.
type errRedirect struct{ why string }

func (e errRedirect) Error() string { return e.why }

// stayOnHost refuses redirects to another host: whoever declared the URL has trusted its host
// alone. The rest of an address may be a secret and is not repeated.
func stayOnHost(next *http.Request, before []*http.Request) error {
	switch first := before[0].URL; {
	case next.URL.Scheme != "https":
		return errRedirect{fmt.Sprintf("the server redirects to %s://%s, which is not https", next.URL.Scheme, next.URL.Host)}
	case !strings.EqualFold(next.URL.Host, first.Host):
		return errRedirect{fmt.Sprintf("the server redirects to another host, %s, which is not followed; use the address there", next.URL.Host)}
	case len(before) > maxRedirects:
		return errRedirect{fmt.Sprintf("the server has redirected more than %d times", maxRedirects)}
	}
	return nil
}

// ask asks a source for a calendar, and whether it has changed if there is a copy.
func ask(ctx context.Context, c *http.Client, agent string, t Target, kept *v1.CalendarCopy) Answer {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, t.Calendar.URL, nil)
	if err != nil {
		return Answer{Err: "the URL is not an address"}
	}
	r.Header.Set("Accept", "text/calendar, */*;q=0.1")
	r.Header.Set("User-Agent", agent)
	if t.current(kept) {
		setIf(r.Header, "If-None-Match", kept.ETag)
		setIf(r.Header, "If-Modified-Since", kept.LastModified)
	}
	response, err := c.Do(r)
	if err != nil {
		return Answer{Err: unanswered(err, c.Timeout)}
	}
	defer func() { _ = response.Body.Close() }()
	h := response.Header
	retryAfter, _ := dial.RetryAfter(h.Get("Retry-After"), time.Now())
	a := Answer{
		Status: response.StatusCode, ContentType: h.Get("Content-Type"), RetryAfter: retryAfter,
		ETag: bounded(h.Get("ETag")), LastModified: bounded(h.Get("Last-Modified")),
	}
	if a.Status != http.StatusOK {
		return a
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, v1.MaxCalendar+1))
	if err != nil {
		return Answer{Err: unanswered(err, c.Timeout)}
	}
	a.Body = string(body)
	return a
}

func setIf(h http.Header, name, value string) {
	if value != "" {
		h.Set(name, value)
	}
}

// maxTag bounds what is kept of a header, in bytes. Without it the calendar is sent whole.
const maxTag = 1000

func bounded(value string) string {
	if len(value) > maxTag {
		return ""
	}
	return value
}

// unanswered says why there is no answer, or no whole one. It repeats nothing of the URL, which
// may be a secret.
func unanswered(err error, within time.Duration) string {
	var timed interface{ Timeout() bool }
	if errors.As(err, &timed) && timed.Timeout() {
		return fmt.Sprintf("the server has not answered within %s", within)
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	if redirect, ok := errors.AsType[errRedirect](err); ok {
		return redirect.Error()
	}
	return dial.Explain(err)
}
