package client

import (
	"context"
	"net/http"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// shortestHidden is the length of a password from which on it is hidden in what a server
// says: a shorter one may be a word of that by chance, and no site has one.
const shortestHidden = 8

// Login logs a user in, and returns its token. The token of the options does not matter:
// none is sent.
func Login(ctx context.Context, o Options, login v1.Login) (v1.LoggedIn, error) {
	var session v1.LoggedIn
	o.Token = "none" // New wants one.
	c, err := New(o)
	if err != nil {
		return session, err
	}
	defer c.Close()
	c.anonymous = true
	if len(login.Password) >= shortestHidden {
		c.secret = newSecret(login.Password)
	}
	q := request{method: http.MethodPost, path: "/v1/login", body: login, confidential: true}
	a, err := c.do(ctx, q)
	if err == nil {
		err = c.decode(q, a, &session)
	}
	return session, err
}
