package check

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/dial"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// maxRedirects is how many redirects a check follows.
const maxRedirects = 3

// get tries an http check.
func (r *Runner) get(ctx context.Context, c rollout.Check) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL, nil)
	if err != nil {
		return plain(err)
	}
	return r.send(request, c.Status, follow(c.Status))
}

// call tries an http hook. A redirect is a failure: following it would turn most
// methods into GET (RFC 9110 15.4), which does not drain a host.
func (r *Runner) call(ctx context.Context, t message.Task, h rollout.Hook) error {
	method := h.Method
	if method == "" {
		method = http.MethodPost
	}
	body, err := json.Marshal(hookBody{t.Host, t.Run, t.Kind, t.Stage})
	if err != nil {
		return err
	}
	address := strings.ReplaceAll(h.URL, "{host}", url.PathEscape(t.Host))
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return plain(err)
	}
	request.Header.Set("Content-Type", "application/json")
	return r.send(request, 0, func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse })
}

// hookBody is the body of a hook's request.
type hookBody struct {
	Host string           `json:"host"`
	Run  uint64           `json:"run"`
	Kind message.TaskKind `json:"kind"`
	// Stage is that of a step.
	Stage string `json:"stage,omitempty"`
}

// send sends a request on a new connection, so that each try tests whether a
// connection is possible. Only the status of the answer counts; the body may be
// endless.
func (r *Runner) send(request *http.Request, want int, redirect func(*http.Request, []*http.Request) error) error {
	request.Close = true
	request.Header.Set("User-Agent", "osupgrade-agent")
	client := http.Client{Transport: r.transport(), CheckRedirect: redirect}
	response, err := client.Do(request)
	if err != nil && request.Context().Err() != nil {
		return errNoAnswer
	}
	if err != nil {
		return plain(err)
	}
	response.Body.Close()
	return judge(response, want)
}

// follow follows redirects to the same host: another host may be healthy while the
// checked host is not. A redirect whose status is the wanted one is not followed.
func follow(want int) func(*http.Request, []*http.Request) error {
	return func(next *http.Request, via []*http.Request) error {
		switch {
		case next.Response != nil && next.Response.StatusCode == want:
			return http.ErrUseLastResponse
		case next.URL.Hostname() != via[0].URL.Hostname():
			return http.ErrUseLastResponse
		case len(via) > maxRedirects:
			return fmt.Errorf("it redirects more than %d times", maxRedirects)
		default:
			return nil
		}
	}
}

// judge checks the status of an answer against the wanted one, or 200 to 299 if that
// is 0.
func judge(response *http.Response, want int) error {
	status := response.StatusCode
	if status == want || want == 0 && status >= 200 && status <= 299 {
		return nil
	}
	// The path of the redirect is not shown, because it may contain a secret.
	if to, err := response.Location(); err == nil {
		return fmt.Errorf("status %d, a redirect to %s, which is not followed", status, to.Host)
	}
	return fmt.Errorf("status %d", status)
}

// plain removes the URL from an error, because the check's name contains it. Of an address
// that is not allowed only that is told.
func plain(err error) error {
	if local, refused := errors.AsType[*dial.LocalError](err); refused {
		return local
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// transport returns the transport of requests.
func (r *Runner) transport() http.RoundTripper {
	switch {
	case r.Transport != nil:
		return r.Transport
	case r.Local != nil:
		return r.Local.Transport(newTransport)
	}
	t := newTransport(&net.Dialer{})
	t.Proxy = http.ProxyFromEnvironment
	return t
}

// newTransport returns a transport of net/http, except for servers that send before they
// get a request, such as ssh. net/http prints their data to standard error and
// returns a misleading error. Here nothing is read before the request is written.
func newTransport(dialer *net.Dialer) *http.Transport {
	return &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return newWriteFirst(dialer.DialContext(ctx, network, address))
		},
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return newWriteFirst((&tls.Dialer{NetDialer: dialer}).DialContext(ctx, network, address))
		},
	}
}

// writeFirst is a connection whose Read blocks until the first Write.
type writeFirst struct {
	net.Conn
	written chan struct{}
	unblock func()
}

func newWriteFirst(conn net.Conn, err error) (net.Conn, error) {
	if err != nil {
		return nil, err
	}
	written := make(chan struct{})
	return &writeFirst{Conn: conn, written: written, unblock: sync.OnceFunc(func() { close(written) })}, nil
}

// Read implements net.Conn.
func (c *writeFirst) Read(b []byte) (int, error) {
	<-c.written
	return c.Conn.Read(b)
}

// Write implements net.Conn.
func (c *writeFirst) Write(b []byte) (int, error) {
	c.unblock()
	return c.Conn.Write(b)
}

// Close implements net.Conn.
func (c *writeFirst) Close() error {
	c.unblock()
	return c.Conn.Close()
}
