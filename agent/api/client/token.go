package client

import (
	"context"
	"fmt"
	"net/http"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// tokensPath is where the tokens of a tenant are.
func tokensPath(tenant string) (string, error) {
	if !names.Valid(tenant) {
		return "", fmt.Errorf("tenant %q is not a name", tenant)
	}
	return "/v1/state/tenants/" + tenant + "/strongbox/tokens", nil
}

// NewToken makes a token of a tenant. Its text is in the answer alone. A request without an
// answer may have made a token that nobody knows; it is good until its end.
func (c *Client) NewToken(ctx context.Context, tenant string, wanted v1.NewToken) (v1.Token, error) {
	path, err := tokensPath(tenant)
	if err != nil {
		return v1.Token{}, err
	}
	q := request{method: http.MethodPost, path: path, body: wanted, confidential: true}
	a, err := c.do(ctx, q)
	if err != nil {
		return v1.Token{}, err
	}
	var made v1.Token
	if err := c.decode(q, a, &made); err != nil {
		return v1.Token{}, err
	}
	if made.Token == "" || !isTokenID(made.ID) {
		return v1.Token{}, c.callError(q, nil, "the answer has no token or no id of it")
	}
	return made, nil
}

// WithdrawToken withdraws a token of a tenant. One that is not there any more is no error.
func (c *Client) WithdrawToken(ctx context.Context, tenant, id string) error {
	path, err := tokensPath(tenant)
	if err != nil {
		return err
	}
	if !isTokenID(id) {
		return fmt.Errorf("%.70q is not the id of a token", id)
	}
	_, err = c.do(ctx, request{method: http.MethodDelete, path: path + "/" + id})
	if HasStatus(err, http.StatusNotFound) {
		return nil
	}
	return err
}

// isTokenID reports whether a text is a SHA-256 in hexadecimal digits.
func isTokenID(id string) bool {
	for _, r := range id {
		if (r < '0' || r > '9') && (r < 'a' || r > 'f') {
			return false
		}
	}
	return len(id) == 64
}
