package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// OfAll is the tenant of what belongs to all tenants.
const OfAll = "*"

// identityPath is a path below a tenant, or below that of all. A name that is none is refused
// here: it would ask for something else.
func identityPath(tree, tenant, rest string) (string, error) {
	if tenant != OfAll && !names.Valid(tenant) {
		return "", &NameError{Field: "tenant", Value: tenant, Right: names.Form + ", or * for all tenants"}
	}
	return "/v1/" + tree + "/tenants/" + tenant + rest, nil
}

// NameError means that a name cannot be in the path of a request.
type NameError struct{ Field, Value, Right string }

// Error implements error.
func (e *NameError) Error() string {
	return fmt.Sprintf("%s: %.100q is not a name; %s", e.Field, e.Value, e.Right)
}

// loginName is the name of a user or an approle as a segment of a path.
func loginName(name string) (string, error) {
	if name == "" || name == "." || name == ".." {
		return "", &NameError{Field: "name", Value: name, Right: "give one"}
	}
	return url.PathEscape(name), nil
}

const (
	usersTree    = "/strongbox/authentication/userpass/"
	approlesTree = "/strongbox/authentication/approles/"
)

// UserNamed is the user of that name of a tenant, or of all tenants.
func UserNamed(name string) Object[v1.User] {
	return Object[v1.User]{at: loginAt(usersTree, name), same: v1.SameUser, canonical: v1.User.Canonical, withhold: func(u *v1.User) string {
		password := u.Password
		u.Password = ""
		return password
	}}
}

// ApproleNamed is the approle of that name of a tenant, or of all tenants.
func ApproleNamed(name string) Object[v1.Approle] {
	return Object[v1.Approle]{at: loginAt(approlesTree, name), same: v1.SameApprole, canonical: v1.Approle.Canonical}
}

// loginAt returns the path of a user or an approle of a tenant.
func loginAt(tree, name string) func(tenant string) (string, error) {
	return func(tenant string) (string, error) {
		segment, err := loginName(name)
		if err != nil {
			return "", err
		}
		return identityPath("config", tenant, tree+segment)
	}
}

// Users returns the users of a tenant, or of all, by name.
func (c *Client) Users(ctx context.Context, tenant string) (all []v1.User, err error) {
	return logins[v1.User](ctx, c, tenant, usersTree)
}

// Approles returns the approles of a tenant, or of all, by name.
func (c *Client) Approles(ctx context.Context, tenant string) (all []v1.Approle, err error) {
	return logins[v1.Approle](ctx, c, tenant, approlesTree)
}

func logins[T any](ctx context.Context, c *Client, tenant, tree string) (all []T, err error) {
	path, err := identityPath("config", tenant, strings.TrimSuffix(tree, "/"))
	if err != nil {
		return nil, err
	}
	return all, c.get(ctx, path, nil, &all)
}

// Approle returns an approle with its role-id.
func (c *Client) Approle(ctx context.Context, tenant, name string) (state v1.ApproleState, err error) {
	segment, err := loginName(name)
	if err != nil {
		return state, err
	}
	path, err := identityPath("state", tenant, approlesTree+segment)
	if err != nil {
		return state, err
	}
	return state, c.get(ctx, path, nil, &state)
}

// SetUser makes a user of a tenant, or of all, or gives one other roles and another password.
// What else it has stays.
func (c *Client) SetUser(ctx context.Context, tenant string, user v1.User) error {
	if len(user.Password) >= shortestHidden {
		c.secret.add(user.Password, hiddenProof)
	}
	return setLogin(ctx, c, tenant, usersTree, user.Name, user, func(now *v1.User) {
		now.TokenPolicies, now.Password = user.TokenPolicies, user.Password
	})
}

// SetApprole makes an approle of a tenant, or of all, or gives one other roles, and returns
// it. What else it has stays.
func (c *Client) SetApprole(ctx context.Context, tenant string, role v1.Approle) (state v1.ApproleState, err error) {
	err = setLogin(ctx, c, tenant, approlesTree, role.Name, role, func(now *v1.Approle) { now.TokenPolicies = role.TokenPolicies })
	if err != nil {
		return state, err
	}
	return c.Approle(ctx, tenant, role.Name)
}

// setLogin writes a user or an approle: fresh, if there is none that can be read, or else the
// one of now with a change.
func setLogin[T any](ctx context.Context, c *Client, tenant, tree, name string, fresh T, change func(*T)) error {
	segment, err := loginName(name)
	if err != nil {
		return err
	}
	path, err := identityPath("config", tenant, tree+segment)
	if err != nil {
		return err
	}
	q := request{method: http.MethodGet, path: path}
	a, err := c.do(ctx, q)
	write := request{method: http.MethodPut, path: path, confidential: true, body: fresh}
	switch {
	case err == nil:
		var now T
		if err := c.decode(q, a, &now); err != nil {
			return err
		}
		change(&now)
		write.body, write.when = now, Precondition{IfMatch: a.header.Get("ETag")}
	case HasStatus(err, http.StatusNotFound):
		write.when = Precondition{IfNoneMatch: "*"}
	case HasStatus(err, http.StatusInternalServerError): // Its file is damaged.
	default:
		return err
	}
	_, err = c.do(ctx, write)
	return err
}

// NewSecretID makes a secret-id of an approle. Its text is in the answer alone.
func (c *Client) NewSecretID(ctx context.Context, tenant, approle string, wanted v1.NewSecretID) (v1.SecretID, error) {
	name, err := loginName(approle)
	if err != nil {
		return v1.SecretID{}, err
	}
	return sendNew[v1.SecretID](ctx, c, tenant, approlesTree+name+"/secret-ids", wanted)
}

// sendNew sends a POST whose answer has a secret.
func sendNew[T any](ctx context.Context, c *Client, tenant, rest string, body any) (made T, err error) {
	path, err := identityPath("state", tenant, rest)
	if err != nil {
		return made, err
	}
	q := request{method: http.MethodPost, path: path, body: body, confidential: true}
	a, err := c.do(ctx, q)
	if err == nil {
		err = c.decode(q, a, &made)
	}
	return made, err
}

// MakeToken is NewToken, also for a token of all tenants.
func (c *Client) MakeToken(ctx context.Context, tenant string, wanted v1.NewToken) (v1.Token, error) {
	return sendNew[v1.Token](ctx, c, tenant, "/strongbox/tokens", wanted)
}

// RotateToken makes a token in place of another.
func (c *Client) RotateToken(ctx context.Context, tenant, id string, wanted v1.Rotation) (v1.Token, error) {
	if !isTokenID(id) {
		return v1.Token{}, fmt.Errorf("%.70q is not the id of a token", id)
	}
	return sendNew[v1.Token](ctx, c, tenant, "/strongbox/tokens/"+id+"/rotate", wanted)
}

// NewJoinToken makes a join token. Its text is in the answer alone.
func (c *Client) NewJoinToken(ctx context.Context, tenant string, wanted v1.NewJoinToken) (v1.JoinToken, error) {
	return sendNew[v1.JoinToken](ctx, c, tenant, "/os-upgrade/join-tokens", wanted)
}

// AddHostKey lets a host in with a key.
func (c *Client) AddHostKey(ctx context.Context, tenant, host string, wanted v1.NewHostKey) error {
	_, err := sendNew[v1.HostKey](ctx, c, tenant, "/os-upgrade/hosts/"+url.PathEscape(host)+"/keys", wanted)
	return err
}

// Credentials returns the tokens, users, approles and host keys of all tenants, or if the
// client is one of a tenant, of that.
func (c *Client) Credentials(ctx context.Context) (all []v1.Credential, err error) {
	return ofAllOrOwn[v1.Credential](ctx, c, "/strongbox/credentials")
}

// CredentialsOf returns the tokens, users, approles and host keys of a tenant; OfAll stands for
// all tenants.
func (c *Client) CredentialsOf(ctx context.Context, tenant string) (all []v1.Credential, err error) {
	path, err := identityPath("state", tenant, "/strongbox/credentials")
	if err != nil {
		return nil, err
	}
	return all, c.get(ctx, path, nil, &all)
}

// JoinTokens returns the join tokens of all tenants, or if the client is one of a tenant, of
// that.
func (c *Client) JoinTokens(ctx context.Context) (all []v1.JoinToken, err error) {
	return ofAllOrOwn[v1.JoinToken](ctx, c, "/os-upgrade/join-tokens")
}

// WaitingHosts returns the hosts of a tenant that wait for approval.
func (c *Client) WaitingHosts(ctx context.Context, tenant string) (all []v1.WaitingHost, err error) {
	path, err := identityPath("state", tenant, "/os-upgrade/waiting-hosts")
	if err != nil {
		return nil, err
	}
	return all, c.get(ctx, path, nil, &all)
}

// ApproveHost lets a host in that waits for approval with a key.
func (c *Client) ApproveHost(ctx context.Context, tenant, host, key string) error {
	return c.decideHost(ctx, tenant, host, "approve", key)
}

// RefuseHost ends the wait of a host that waits for approval with a key: it is not let in.
func (c *Client) RefuseHost(ctx context.Context, tenant, host, key string) error {
	return c.decideHost(ctx, tenant, host, "refuse", key)
}

func (c *Client) decideHost(ctx context.Context, tenant, host, what, key string) error {
	path, err := identityPath("state", tenant, "/os-upgrade/waiting-hosts/"+url.PathEscape(host)+"/"+what)
	if err != nil {
		return err
	}
	_, err = c.do(ctx, request{method: http.MethodPost, path: path, body: v1.HostVerdict{PublicKey: key}})
	return err
}

func ofAllOrOwn[T any](ctx context.Context, c *Client, rest string) (all []T, err error) {
	err = c.get(ctx, "/v1/state/tenants/"+OfAll+rest, nil, &all)
	if refused, ok := errors.AsType[*Error](err); ok && refused.Status == http.StatusForbidden && refused.Errors[0].Info.Field == "tenant" {
		err = c.get(ctx, "/v1/state"+rest, nil, &all)
	}
	return all, err
}

// RemoveCredential withdraws a credential by its id. The tenant is that of the credential,
// or OfAll where nobody knows it.
func (c *Client) RemoveCredential(ctx context.Context, tenant, id string) error {
	return c.remove(ctx, tenant, "/strongbox/credentials/", id)
}

// RemoveJoinToken withdraws a join token by its id.
func (c *Client) RemoveJoinToken(ctx context.Context, tenant, id string) error {
	return c.remove(ctx, tenant, "/os-upgrade/join-tokens/", id)
}

func (c *Client) remove(ctx context.Context, tenant, rest, id string) error {
	path, err := identityPath("state", tenant, rest+url.PathEscape(id))
	if err != nil {
		return err
	}
	_, err = c.do(ctx, request{method: http.MethodDelete, path: path})
	return err
}

// ServedTenants returns the names of the tenants that the site serves. A client of one tenant
// may not ask.
func (c *Client) ServedTenants(ctx context.Context) ([]string, error) {
	var all []v1.Tenant
	err := c.get(ctx, "/v1/config/tenants", nil, &all)
	served := make([]string, len(all))
	for i, t := range all {
		served[i] = t.Name
	}
	return served, err
}

// The operations below are for commands on the site's machine.
const systemPath = "/v1/state/machine"

// Strongbox returns what opens the strongbox of the site.
func (c *Client) Strongbox(ctx context.Context) (state v1.Strongbox, err error) {
	return state, c.get(ctx, systemPath+"/strongbox", nil, &state)
}

// RewrapStrongbox changes what opens the strongbox, and returns that.
func (c *Client) RewrapStrongbox(ctx context.Context, to v1.Rewrap) (v1.Strongbox, error) {
	return system[v1.Strongbox](ctx, c, "strongbox/rewrap", to)
}

// RotateStrongbox makes a new key that seals the secrets.
func (c *Client) RotateStrongbox(ctx context.Context, current v1.CurrentSecret) error {
	_, err := system[v1.Strongbox](ctx, c, "strongbox/rotate", current)
	return err
}

// ResetStrongbox gives up what the strongbox of a site that does not run seals.
func (c *Client) ResetStrongbox(ctx context.Context) (v1.StrongboxReset, error) {
	return system[v1.StrongboxReset](ctx, c, "strongbox/reset", nil)
}

// CertifySite makes a certificate for names of the site.
func (c *Client) CertifySite(ctx context.Context, wanted v1.NewSiteCertificate) (v1.SiteCertificate, error) {
	return system[v1.SiteCertificate](ctx, c, "certificate", wanted)
}

func system[T any](ctx context.Context, c *Client, operation string, body any) (came T, err error) {
	q := request{method: http.MethodPost, path: systemPath + "/" + operation, body: body, confidential: true}
	a, err := c.do(ctx, q)
	if err == nil {
		err = c.decode(q, a, &came)
	}
	return came, err
}
