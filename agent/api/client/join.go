package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// ErrOtherSite means that a site does not have the authority of a fingerprint: it is
// another site, or somebody between here and there.
var ErrOtherSite = errors.New("the site has another authority than the join token says: it is not the site that made the token, or somebody else answers in its place; do not go on before you know which")

// Authority returns the certificates to trust for the site at an endpoint, which nothing
// but their fingerprint proves to be the site's. It sends no token: it does not know
// yet who answers.
func Authority(ctx context.Context, address, fingerprint string, o Options) ([]byte, error) {
	at, err := parseEndpoint(address)
	if err != nil {
		return nil, err
	}
	if at.Scheme != "https" {
		return nil, fmt.Errorf("endpoint %q is not https, and the site of this token has a certificate; use https://%s", address, at.Host)
	}
	unproven, err := tlsConfig(nil, true)
	if err != nil {
		return nil, err
	}
	transport := newTransport(unproven)
	if o.Dial != nil {
		transport.DialContext = o.Dial
	}
	defer transport.CloseIdleConnections()
	const path = "/v1/join/ca"
	ctx, cancel := context.WithTimeout(ctx, defaultTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.at(path, nil), nil)
	if err != nil {
		return nil, err
	}
	response, err := (&http.Client{Transport: transport, CheckRedirect: stayHere}).Do(r)
	if err != nil {
		return nil, fmt.Errorf("cannot reach the site: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, v1.MaxBody))
	if err != nil {
		return nil, fmt.Errorf("cannot reach the site: %w", err)
	}
	var answer v1.Authority
	if response.StatusCode != http.StatusOK || json.Unmarshal(body, &answer) != nil {
		return nil, fmt.Errorf("%s does not answer as a site where hosts can join: GET %s is answered with status %d", address, path, response.StatusCode)
	}
	if got, err := v1.Fingerprint([]byte(answer.CA)); err != nil || got != fingerprint {
		return nil, ErrOtherSite
	}
	return []byte(answer.CA), nil
}

// Join lets a host join with the join token that the client has. It can be repeated
// with the same key: the answer is the same.
func (c *Client) Join(ctx context.Context, join v1.Join) (v1.Joined, error) {
	var joined v1.Joined
	q := request{method: http.MethodPost, path: "/v1/join", body: join}
	a, err := c.do(ctx, q)
	if err == nil {
		err = c.decode(q, a, &joined)
	}
	return joined, err
}
