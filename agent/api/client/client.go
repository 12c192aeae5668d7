// Package client speaks the REST API, Avassa's or our agent's.
// The provider and the command line use it.
//
// It decides when a request is sent and when again, what an answer means, and when it logs
// in. It never
// caches, never writes without being told to, never sends the token to another
// host than the endpoint's, and never shows it in an error or a debug message.
package client

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// Options say how to reach the API.
type Options struct {
	// Endpoint is the base address, such as "http://127.0.0.1:4646". With http
	// to a host that is not this one the token travels in clear; see
	// Client.Plaintext.
	Endpoint string
	// Token is the bearer token; blanks around it are dropped.
	Token string
	// Login, when set, stands in the place of the token: the client logs in when its first
	// request needs a token, keeps that good, and logs in again once it has ended.
	Login *Credentials
	// ClientCertPEM is the certificate of the client with those between it and its authority,
	// ClientKeyPEM its private key; both or neither. Without a token and a login it alone says
	// who sends the requests. A token decides, for the server.
	ClientCertPEM, ClientKeyPEM []byte
	// UserAgent is sent with each request.
	UserAgent string
	// CACertPEM holds the certificates to trust instead of the system's.
	CACertPEM []byte
	// Insecure turns the check of the server's certificate off.
	Insecure bool
	// Timeout bounds one try; 0 means 30 s.
	Timeout time.Duration
	// Retries is how often a failed request is tried again; negative means
	// never, 0 means 4.
	Retries int
	// Outage is for how long no further request is sent after one that had no answer
	// in all its tries: it fails at once instead. 0 means that each is sent.
	Outage time.Duration
	// Dial, when set, makes the connections in place of the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Transport, when set, sends the requests in place of the network, and says itself who
	// sends them: no token is needed.
	Transport http.RoundTripper
	// Debug, when set, is told of each try in words, never of a secret.
	Debug func(ctx context.Context, message string, fields map[string]any)
}

const (
	defaultTimeout = 30 * time.Second
	defaultRetries = 4
)

// Client is safe for concurrent use.
type Client struct {
	endpoint endpoint
	// secret is a pointer, so that printing a Client shows an address.
	secret  *secret
	session *session
	agent   string
	pace    pace
	debug   func(ctx context.Context, message string, fields map[string]any)
	calls   *retryablehttp.Client
	streams *http.Client
	outage  outage
	limit   limit
}

// pace is how long the client waits; tests set their own.
type pace struct {
	// waitMin and waitMax bound the wait before another try.
	waitMin, waitMax time.Duration
	// idle is how long an event stream may say nothing. The server sends a
	// comment every 3 s.
	idle time.Duration
	// brisk is how long it may say nothing before it begins, and once its comments come
	// less than shortly apart; zero for idle.
	brisk time.Duration
	// login bounds a login, and a refresh of its token, with all tries.
	login time.Duration
}

var usualPace = pace{waitMin: 500 * time.Millisecond, waitMax: 30 * time.Second, idle: 45 * time.Second, login: 2 * time.Minute}

// New checks the options and makes a client; it does not connect. All that is
// wrong is told at once.
func New(o Options) (*Client, error) {
	s, err := o.check()
	if err != nil {
		return nil, err
	}
	if o.Transport != nil {
		return build(s, o.Transport, usualPace), nil
	}
	transport := newTransport(s.tls)
	if o.Dial != nil {
		transport.DialContext = o.Dial
	}
	return build(s, transport, usualPace), nil
}

func build(s settings, base http.RoundTripper, p pace) *Client {
	c := &Client{endpoint: s.endpoint, secret: s.secret, agent: s.UserAgent, pace: p, debug: s.Debug, outage: outage{lasts: s.Outage}}
	c.session = newSession(c, s.token, s.Login)
	c.session.certificate, c.session.proven = s.certificate, s.Transport != nil
	if c.debug == nil {
		c.debug = func(context.Context, string, map[string]any) {}
	}
	c.calls = &retryablehttp.Client{
		HTTPClient: &http.Client{
			Transport: &wholeBodies{base: base, client: c}, Timeout: s.Timeout, CheckRedirect: stayHere,
		},
		RetryWaitMin: p.waitMin,
		RetryWaitMax: p.waitMax,
		RetryMax:     s.Retries,
		CheckRetry:   checkRetry,
		Backoff:      backoff,
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
		// It is called before each try and outside of its timeout. Before the first one,
		// Client.do has waited.
		RequestLogHook: func(_ retryablehttp.Logger, r *http.Request, again int) {
			if again > 0 {
				c.limit.wait(r.Context())
			}
		},
	}
	c.streams = &http.Client{Transport: base, CheckRedirect: stayHere}
	return c
}

// stayHere follows no redirect: it would send the token elsewhere, or turn a
// PUT into a GET (RFC 9110 15.4) whose success looks like that of the PUT.
func stayHere(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Plaintext reports whether the token travels in clear to another machine, so
// that the user can be warned.
func (c *Client) Plaintext() bool {
	return c.endpoint.Scheme == "http" && !loopback(c.endpoint.Hostname())
}

// Close drops idle connections and refreshes the token of a login no more. A closed client
// can still be used.
func (c *Client) Close() {
	c.session.close()
	c.streams.CloseIdleConnections()
}
