package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Credentials are what a client logs in with: those of a user, or those of an approle.
type Credentials struct {
	Username, Password string
	// Tenant is that of the user; empty if no two tenants have a user of that name.
	Tenant string
	// RoleID and SecretID are those of an approle.
	RoleID, SecretID string
}

// approle reports whether they are those of an approle.
func (c Credentials) approle() bool { return c.RoleID != "" || c.SecretID != "" }

// check returns the credentials without what files have around their content. A password
// may begin or end with a blank, but not with the end of a line.
func (c Credentials) check() (Credentials, error) {
	c.Username, c.RoleID, c.SecretID = strings.TrimSpace(c.Username), strings.TrimSpace(c.RoleID), strings.TrimSpace(c.SecretID)
	c.Password = strings.TrimRight(c.Password, "\r\n")
	switch {
	case c.approle() && (c.Username != "" || c.Password != ""):
		return c, errors.New("the login is both of a user and of an approle; use one of them")
	case c.approle() && (c.RoleID == "" || c.SecretID == ""):
		return c, errors.New("the login of an approle needs a role-id and a secret-id")
	case !c.approle() && (c.Username == "" || c.Password == ""):
		return c, errors.New("the login of a user needs a username and a password")
	}
	return c, nil
}

// request is the login.
func (c Credentials) request() request {
	q := request{method: http.MethodPost, path: "/v1/login", confidential: true, login: true}
	if c.approle() {
		q.path, q.body = "/v1/approle-login", v1.ApproleLogin{RoleID: c.RoleID, SecretID: c.SecretID}
	} else {
		q.body = v1.Login{Username: c.Username, Password: c.Password, Tenant: c.Tenant}
	}
	return q
}

// proof is the secret part of the credentials.
func (c Credentials) proof() string {
	if c.approle() {
		return c.SecretID
	}
	return c.Password
}

// shortestHidden is the length of a password from which on it is hidden in what a server
// says: a shorter one may be a word of that by chance, and no site of ours has one.
const shortestHidden = 8

// logIn sends a login. What a server says to a login is not shown if it cannot be told from
// the password.
func (c *Client) logIn(ctx context.Context, login Credentials) (reply, error) {
	proof := login.proof()
	if len(proof) >= shortestHidden {
		c.secret.add(proof, hiddenProof)
	}
	a, err := c.send(ctx, login.request(), "")
	if answer, ok := errors.AsType[*Error](err); ok && len(proof) < shortestHidden {
		answer.Errors = []v1.Error{{Message: "what the server says is not shown, because the password is shorter than 8 characters and may be a part of that"}}
	}
	return a, err
}

// Login logs a user in, and returns its token. The token of the options does not matter:
// none is sent.
func Login(ctx context.Context, o Options, login v1.Login) (v1.LoggedIn, error) {
	var session v1.LoggedIn
	o.Token, o.Login = "none", nil // New wants one.
	c, err := New(o)
	if err != nil {
		return session, err
	}
	defer c.Close()
	user := Credentials{Username: login.Username, Password: login.Password, Tenant: login.Tenant}
	a, err := c.logIn(ctx, user)
	if err == nil {
		err = c.decode(user.request(), a, &session)
	}
	return session, err
}

// LoginError is a request that had no success because the client has no good token: its
// login has failed. It never is an *Error, because a 404 of a login says nothing of the
// object of the request.
type LoginError struct {
	// Approle is set for the login of an approle; the others are of users.
	Approle bool
	// Again is set if the client was logged in before, and that token is good no more.
	Again bool
	// Useless is set if the login had success, and the server does not accept the token
	// of it.
	Useless bool
	// Answer is what the server says; nil if it says nothing.
	Answer *Error
	cause  error
}

// Error names the request and the reason.
func (e *LoginError) Error() string {
	reason := "there is no answer"
	switch {
	case e.Answer != nil:
		reason = e.Answer.Error()
	case e.cause != nil:
		reason = e.cause.Error()
	}
	switch {
	case e.Useless:
		return "the token of the login is not accepted: " + reason
	case e.Again:
		return "cannot log in again, after the token of the first login has ended: " + reason
	}
	return "cannot log in: " + reason
}

// Unwrap gives the cause, if that is no answer.
func (e *LoginError) Unwrap() error {
	if e.Answer == nil {
		return e.cause
	}
	return nil
}

// final reports whether the same login would fail in the same way.
func (e *LoginError) final() bool {
	return e.Answer != nil && e.Answer.Status < http.StatusInternalServerError || e.SecondFactor()
}

// SecondFactor reports whether the server wants more of the user than a password.
func (e *LoginError) SecondFactor() bool { return errors.Is(e.cause, errSecondFactor) }

var errSecondFactor = errors.New("the server wants a second factor of the user")

// grant is what the answer to a login or a refresh gives.
type grant struct {
	token string
	// life is how long the token is good; 0 if the answer does not say.
	life time.Duration
}

// readGrant reads the answer to a login. Of its times none but the token need be there,
// and servers disagree about them: Avassa's page "Login" shows 14 days beside an end after
// one. The shortest that can be read counts, and none is compared with the
// clock of this machine.
func readGrant(body []byte) (grant, error) {
	var answer struct {
		Token     string          `json:"token"`
		ExpiresIn json.RawMessage `json:"expires-in"`
		Expires   json.RawMessage `json:"expires"`
		Created   json.RawMessage `json:"creation-time"`
		Renewed   json.RawMessage `json:"renewal-time"`
		TOTP      bool            `json:"totp-required"`
		Passkey   bool            `json:"passkey-required"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return grant{}, errors.New("the answer is not that of a login")
	}
	if answer.Token == "" && (answer.TOTP || answer.Passkey) {
		return grant{}, errSecondFactor
	}
	token, err := parseToken(answer.Token)
	if err != nil {
		return grant{}, errors.New("the answer has no token that can be used")
	}
	g := grant{token: token}
	var seconds int64
	if json.Unmarshal(answer.ExpiresIn, &seconds) == nil {
		g.shorten(time.Duration(min(seconds, int64(longestLife/time.Second))) * time.Second)
	}
	begun := timeOf(answer.Created)
	if renewed := timeOf(answer.Renewed); renewed.After(begun) {
		begun = renewed
	}
	if end := timeOf(answer.Expires); !begun.IsZero() && !end.IsZero() {
		g.shorten(min(end.Sub(begun), longestLife))
	}
	return g, nil
}

// longestLife keeps an absurd one from overflowing a duration.
const longestLife = 10 * 365 * 24 * time.Hour

// shorten sets the life to another that is said, if that is shorter.
func (g *grant) shorten(life time.Duration) {
	if life > 0 && (g.life == 0 || life < g.life) {
		g.life = life
	}
}

// timeOf reads a time; zero if there is none.
func timeOf(raw json.RawMessage) (t time.Time) {
	if err := t.UnmarshalJSON(bytes.TrimSpace(raw)); err != nil {
		t = time.Time{}
	}
	return t
}

// Unseal opens the strongbox of a sealed site with its passphrase. The token of the options
// does not matter: none is sent.
func Unseal(ctx context.Context, o Options, passphrase string) error {
	o.Token, o.Login = "none", nil // New wants one.
	c, err := New(o)
	if err != nil {
		return err
	}
	defer c.Close()
	if len(passphrase) >= shortestHidden {
		c.secret.add(passphrase, hiddenProof)
	}
	_, err = c.send(ctx, request{method: http.MethodPost, path: "/v1/state/strongbox/system/unseal", body: v1.Unseal{Passphrase: passphrase}, confidential: true, login: true}, "")
	return err
}

// ChangePassword changes the password of the user whose login the client has the token of.
func (c *Client) ChangePassword(ctx context.Context, change v1.PasswordChange) (changed v1.PasswordChanged, err error) {
	for _, password := range []string{change.Current, change.Password} {
		if len(password) >= shortestHidden {
			c.secret.add(password, hiddenProof)
		}
	}
	q := request{method: http.MethodPost, path: "/v1/state/strongbox/password", body: change, confidential: true, login: true}
	a, err := c.do(ctx, q)
	if err == nil {
		err = c.decode(q, a, &changed)
	}
	return changed, err
}
