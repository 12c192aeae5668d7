package api

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// admit determines the principal and the tenant of a request, and asks package access
// whether that principal may send it.
func (s *server) admit(c *call) error {
	proof, err := s.proof(c)
	if err != nil {
		return err
	}
	if s.Logins != nil {
		s.Logins.Sources().Add(source(c.RemoteAddr))
	}
	who, path := proof.who, c.URL.EscapedPath()
	if who.Policies, err = s.policiesOf(who.Tenant, who.Roles); err != nil {
		return err
	}
	c.who, c.tenant = who, access.Tenant(path, who.Tenant)
	c.auditBy(proof)
	if err := access.Decide(who, c.Method, path); err != nil {
		if foreign, ok := errors.AsType[*access.ForeignError](err); ok && foreign.Tenant != "" {
			return problem(http.StatusForbidden, "tenant", foreign.Tenant, "%s; it is valid for %q", err, who.Tenant)
		}
		return refusal(err)
	}
	if c.tenant == "" || c.tenant == access.AnyTenant {
		return nil // It belongs to the site, or to all tenants; access lets no other through.
	}
	if !names.Valid(c.tenant) {
		return badRequest("tenant", c.tenant, "is not the name of a tenant; "+names.Form)
	}
	controller, known := s.Tenants.Controller(c.tenant)
	if !known && c.route.unserved && c.onMachine() {
		return nil // Somebody prepares a tenant that is served later.
	}
	if !known {
		return problem(http.StatusNotFound, "tenant", c.tenant, "tenant %q does not exist", c.tenant)
	}
	if controller == nil && !c.route.unserved {
		return ErrStopped
	}
	c.controller = controller
	return nil
}

// ErrStopped means that an operation needs a site that runs.
var ErrStopped = problem(http.StatusServiceUnavailable, "", "", "the site does not run; start it with osupgrade-agent serve")

// policiesOf returns the rules of those of the roles that are policies of a tenant.
func (s *server) policiesOf(tenant string, roles []access.Role) (map[access.Role][]access.Rule, error) {
	if s.Policies == nil {
		return nil, nil
	}
	return s.Policies.Of(tenant, roles)
}

// refusal returns the answer to a request that access refuses.
func refusal(err error) error {
	var foreign *access.ForeignError
	var refused *access.RefusedError
	var exceeds *access.ExceedsError
	var complicated *access.ComplexError
	switch {
	case errors.As(err, &foreign):
		return problem(http.StatusForbidden, "tenant", foreign.Tenant, "%s", err)
	case errors.As(err, &refused), errors.As(err, &exceeds), errors.As(err, &complicated):
		return problem(http.StatusForbidden, "", "", "%s", err)
	case errors.Is(err, access.TenantError{}):
		return badRequest("tenant", "", err.Error())
	}
	return err
}

// urlToken is the query parameter with a token of the calendar feed: a calendar program
// sends no header.
const urlToken = "token"

// proof is who sends a request, and by what that was proved: a token or a client
// certificate.
type proof struct {
	who access.Principal
	// as is what the name is that of, in audit records.
	as string
	// token is the text of the token, certificate what tells one from another.
	token, certificate string
}

// proofOf returns the proof by a token.
func proofOf(token principal.Token, text string) proof {
	p := proof{who: token.Principal(), as: v1.AuditToken, token: text}
	if token.Login != nil {
		p.as = token.Login.Of
	}
	return p
}

// proof returns who sends a request. A token in it decides, also one that is not good;
// without one, its connection does: by a client certificate, or because it is on the
// site's machine.
func (s *server) proof(c *call) (proof, error) {
	text, only, err := c.token()
	if err != nil {
		if p, local := machineProof(c.Request); local {
			return p, nil
		}
		if p, certified, err := s.certified(c.Request); certified {
			return p, err
		}
		if s.ClientCertificates != nil {
			err = errNoProof
		}
		return proof{}, unauthorized(err)
	}
	token, err := s.Tokens.Find(text, time.Now())
	if err != nil {
		return proof{}, unauthorized(err)
	}
	if token, err = s.Logins.Current(token); err != nil {
		return proof{}, unauthorized(err)
	}
	switch {
	case only == access.Calendar && !token.IsOnly(only):
		return proof{}, unauthorized(errStrongURL)
	case only == access.FleetLock && !token.IsOnly(only):
		return proof{}, unauthorized(errStrongPassword)
	}
	return proofOf(token, text), nil
}

// token returns the text of the token of a request: that of its header (RFC 6750 2.1), or
// of its URL, or the password of a request of the FleetLock protocol. In the last two cases the token
// may have one role alone.
func (c *call) token() (text string, only access.Role, err error) {
	if text, err = bearer(c.Request); err == nil {
		return text, "", nil
	}
	if _, password, basic := c.BasicAuth(); basic && c.route.isFleetLock() {
		return password, access.FleetLock, nil
	}
	if text = c.URL.Query().Get(urlToken); text == "" || c.Header.Get("Authorization") != "" {
		return "", "", err
	}
	return text, access.Calendar, nil
}

var errStrongURL = errors.New("a token in a URL may have the role calendar alone, as programs and proxies log URLs; send Authorization: Bearer TOKEN, and withdraw this token if the URL was logged")

var errStrongPassword = errors.New("a token that is the password of a URL may have the role fleetlock alone, as hosts keep it in their configuration; send Authorization: Bearer TOKEN")

// bearer returns the text of the token in the header of a request.
func bearer(r *http.Request) (string, error) {
	scheme, text, found := strings.Cut(r.Header.Get("Authorization"), " ")
	if !found || !strings.EqualFold(scheme, "Bearer") {
		return "", principal.ErrNoToken
	}
	return strings.TrimSpace(text), nil
}

// unauthorized returns the answer to a proof that is not good; other errors stay.
func unauthorized(err error) error {
	for _, cause := range []error{
		principal.ErrNoToken, principal.ErrUnknownToken, principal.ErrDamagedToken, principal.ErrExpiredToken, principal.ErrEndedLogin, errStrongURL, errStrongPassword, errNoProof,
	} {
		if errors.Is(err, cause) {
			return problem(http.StatusUnauthorized, "", "", "%s", cause)
		}
	}
	return err
}
