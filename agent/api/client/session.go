package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// session is the token of a client: one that it was given, or that of its login.
//
// It logs in once, when the first request needs a token, for all requests that wait then. A
// secret-id may be good for one login, so the token is refreshed well before its end for as
// long as the client is there. If the server does not accept it any more all the same, there
// is one more login for all requests: none follows a login that was refused, none one whose
// token was never accepted, and none one of which a request has met the third end. So a session never logs in in a loop.
type session struct {
	client *Client
	// fixed is the token that the client was given; it has no credentials then.
	fixed string
	// certificate is that of the client; nil if it has none. Without a token and credentials it
	// is the only proof.
	certificate *clientCertificate
	// proven tells that the transport says who sends the requests.
	proven      bool
	credentials Credentials
	// closed ends with the client, and what the session does by itself with it.
	closed context.Context
	close  context.CancelFunc

	mu sync.Mutex
	// token is that of the last login; nil if there is none that may be good.
	token *token
	// under is the login under way.
	under *attempt
	// failed is why there will be no further login.
	failed error
	// before tells that there was a login.
	before bool
	// renewal is the timer of the next refresh. refreshing is open while one is under way.
	renewal    *time.Timer
	refreshing chan struct{}
}

// token is that of a login. The mutex of the session guards it, but for its text.
type token struct {
	text string
	// end is when it is good no more; zero if that is not known.
	end time.Time
	// accepted is set once the server has accepted it, refused once no login is to follow it.
	accepted, refused bool
}

// attempt is a login, of which err is set when ended is closed.
type attempt struct {
	ended chan struct{}
	err   error
}

func newSession(c *Client, fixed string, login *Credentials) *session {
	s := &session{client: c, fixed: fixed}
	if login != nil {
		s.credentials = *login
	}
	s.closed, s.close = context.WithCancel(context.Background())
	context.AfterFunc(s.closed, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stopRenewal()
	})
	return s
}

// errUseless means that the server does not accept the token of a login.
var errUseless = errors.New("the server does not accept the token of its login")

// mostTokens bounds the tokens that a request is sent with: one that the server refuses with
// each token, while it accepts other requests, ends.
const mostTokens = 3

// authorized calls send with the token, and again with that of a new login if one has ended.
// send returns the status of the answer, 0 if there is none.
func (s *session) authorized(ctx context.Context, send func(token string) (status int)) error {
	if s.fixed != "" {
		send(s.fixed)
		return nil
	}
	if s.proven {
		send("")
		return nil
	}
	if s.certificate != nil && s.credentials == (Credentials{}) {
		if status := send(""); status == http.StatusUnauthorized && !s.certificate.asked.Load() {
			return errNotAsked
		}
		return nil
	}
	for sent := 1; ; sent++ {
		current, err := s.current(ctx)
		if err != nil {
			return err
		}
		status := send(current.text)
		if status != http.StatusUnauthorized {
			s.accepted(current, status)
			return nil
		}
		s.refreshed(ctx)
		if !s.discard(current, sent == mostTokens) {
			return errUseless
		}
	}
}

// TokenID returns the id of the token that the client sends, by which the server lists it;
// empty if the client sends none.
func (c *Client) TokenID() string {
	text := c.session.fixed
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	if c.session.token != nil {
		text = c.session.token.text
	}
	if text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// CertifiedUser returns the tenant and the name of the user of the client certificate; empty if
// something else says who sends the requests.
func (c *Client) CertifiedUser() (tenant, name string) {
	s := c.session
	if s.fixed != "" || s.proven || s.certificate == nil || s.credentials != (Credentials{}) {
		return "", ""
	}
	subject := s.certificate.certificate.Leaf.Subject
	return strings.Join(subject.Organization, ","), subject.CommonName
}

// judge returns the error of a call: problem is that of authorized, err that of what was
// sent.
func (s *session) judge(problem, err error) error {
	switch {
	case problem == nil:
		return err
	case !errors.Is(problem, errUseless):
		return problem
	}
	useless := &LoginError{Approle: s.credentials.approle(), Useless: true, cause: err}
	useless.Answer, _ = errors.AsType[*Error](err)
	return useless
}

// current returns the token, for which it logs in if there is none.
func (s *session) current(ctx context.Context) (*token, error) {
	for {
		s.mu.Lock()
		if s.failed != nil || s.token != nil {
			defer s.mu.Unlock()
			return s.token, s.failed
		}
		if s.under == nil {
			s.under = &attempt{ended: make(chan struct{})}
			// Others wait for it as well: it does not end with the first who does.
			go s.logIn(context.WithoutCancel(ctx), s.under)
		}
		under := s.under
		s.mu.Unlock()
		select {
		case <-under.ended:
			if under.err != nil {
				return nil, under.err
			}
		case <-ctx.Done():
			return nil, &LoginError{Approle: s.credentials.approle(), cause: ctx.Err()}
		}
	}
}

// accepted remembers that the server has accepted a token, if it has answered.
func (s *session) accepted(t *token, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.accepted = t.accepted || status != 0
}

// refreshed waits for the end of the refresh under way: with it the token of before may be
// good no more.
func (s *session) refreshed(ctx context.Context) {
	s.mu.Lock()
	refreshing := s.refreshing
	s.mu.Unlock()
	if refreshing == nil {
		return
	}
	select {
	case <-refreshing:
	case <-ctx.Done():
	}
}

// discard gives up a token that the server has refused, and reports whether its request may
// be sent with another one; last tells that it was sent often enough. No login follows a
// token that was refused before it was accepted, or that was the last one of a request.
func (s *session) discard(t *token, last bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.refused = t.refused || last || !t.accepted
	switch {
	case last:
		return false
	case s.token != t:
		return true // It was given up before.
	case t.refused:
		return false
	}
	s.token = nil
	s.stopRenewal()
	return true
}

// logIn makes a login and tells its attempt how it has ended.
func (s *session) logIn(ctx context.Context, a *attempt) {
	defer close(a.ended)
	limited, cancel := context.WithTimeout(ctx, s.client.pace.login)
	defer cancel()
	sent := time.Now()
	given, err := s.give(limited)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.under = nil
	if err != nil {
		failure := &LoginError{Approle: s.credentials.approle(), Again: s.before, cause: err}
		failure.Answer, _ = errors.AsType[*Error](err)
		a.err = failure
		if failure.final() {
			s.failed = failure
		}
		return
	}
	s.before = true
	s.token = &token{text: given.token}
	s.prolong(ctx, s.token, sent, given.life)
}

// give sends the login and reads what it gives.
func (s *session) give(ctx context.Context) (grant, error) {
	a, err := s.client.logIn(ctx, s.credentials)
	if err != nil {
		return grant{}, err
	}
	return s.read(s.credentials.request(), a)
}

// read reads the answer to a login or a refresh, and hides its token from then on.
func (s *session) read(q request, a reply) (grant, error) {
	given, err := readGrant(a.body)
	if err != nil {
		return grant{}, s.client.callError(q, err, fmt.Sprintf("%s: %s", statusText(a.status), err))
	}
	s.client.secret.add(given.token, hidden)
	return given, nil
}

// prolong sets the end of a token, and when it is refreshed: after three quarters of its
// life, as Avassa's clients do. s.mu is held.
func (s *session) prolong(ctx context.Context, t *token, sent time.Time, life time.Duration) {
	if life == 0 || s.closed.Err() != nil {
		return
	}
	t.end = sent.Add(life)
	s.renewIn(ctx, t, life/4*3)
}

// renewIn has a token refreshed after a while. s.mu is held.
func (s *session) renewIn(ctx context.Context, t *token, wait time.Duration) {
	s.stopRenewal()
	s.renewal = time.AfterFunc(wait, func() { s.refresh(ctx, t) })
}

// stopRenewal stops the timer of the next refresh. s.mu is held.
func (s *session) stopRenewal() {
	if s.renewal != nil {
		s.renewal.Stop()
	}
}

// refresh extends the life of a token. If that fails for a reason that passes, it tries
// again before the end; otherwise the end of the token is left to come.
func (s *session) refresh(ctx context.Context, t *token) {
	q := request{method: http.MethodPost, path: "/v1/state/strongbox/token/refresh", confidential: true, repeatable: true}
	limited, cancel := context.WithTimeout(ctx, s.client.pace.login)
	defer cancel()
	defer context.AfterFunc(s.closed, cancel)()
	ended := make(chan struct{})
	defer close(ended)
	s.mu.Lock()
	s.refreshing = ended
	s.mu.Unlock()
	sent := time.Now()
	a, err := s.client.send(limited, q, t.text)
	var given grant
	if err == nil {
		given, err = s.read(q, a)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token != t || s.closed.Err() != nil {
		return // It was given up meanwhile, or the client is closed.
	}
	left := time.Until(t.end)
	if err != nil {
		answer, answered := errors.AsType[*Error](err)
		if passes := !answered || answer.Status == http.StatusTooManyRequests || answer.Status >= http.StatusInternalServerError; passes && left > 0 {
			s.renewIn(ctx, t, max(left/4, time.Second))
		}
		return
	}
	if given.token != t.text {
		s.token = &token{text: given.token, accepted: true}
		s.prolong(ctx, s.token, sent, given.life)
		return
	}
	// A token has a last end, beyond which none is extended.
	if given.life > left+time.Second {
		s.prolong(ctx, t, sent, given.life)
	}
}
