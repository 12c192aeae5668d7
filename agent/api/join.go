package api

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/join"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Joining is what a host needs that joins the site.
type Joining struct {
	Tokens *join.Tokens
	// Join lets a host in with the secret of a token, or keeps it waiting for approval. from is
	// the address of the host.
	Join func(secret string, r v1.Join, from string, now time.Time) (join.Joined, error)
	// Decide lets a host in that waits for approval, or refuses it.
	Decide func(v join.Verdict, now time.Time) (join.Waiting, error)
	// CA returns the certificates to trust for the site, PEM; empty means those of the
	// system.
	CA func() ([]byte, error)
	// NATSURL returns where a host reaches the log that reached the API by the name
	// apiHost.
	NATSURL func(apiHost string) (string, error)
}

// errNoJoining is the answer where no host may join.
var errNoJoining = problem(http.StatusNotFound, "", "", "this site lets no host join")

// joining returns the handler of an operation of a site that lets hosts join.
func joining(f func(*server, *call) error) func(*server, *call) error {
	return func(s *server, c *call) error {
		if s.Joining == nil {
			return errNoJoining
		}
		return f(s, c)
	}
}

// getAuthority returns the certificates to trust for the site. They are no secret,
// and who asks does not trust the answer unless it has the fingerprint in its token.
func (s *server) getAuthority(c *call) error {
	ca, err := s.Joining.CA()
	if err != nil {
		return err
	}
	if len(ca) == 0 {
		return problem(http.StatusNotFound, "", "", "the site has no authority of its own: trust its certificate as any other")
	}
	s.send(c.w, c.Request, http.StatusOK, v1.Authority{CA: string(ca)})
	return nil
}

// postJoin lets a host join, or keeps it waiting for approval.
func (s *server) postJoin(c *call) error {
	from := source(c.RemoteAddr)
	var answer v1.Joined
	err := s.joins.try(c.Context(), from, func() (failed bool, err error) {
		// A host that begins to wait has not failed: the places of the token limit how many may.
		if answer, err = s.join(c); err == nil {
			return false, nil
		}
		err = joinProblem(err)
		a := s.classify(c.Request, err)
		if a.status >= http.StatusInternalServerError {
			return false, err
		}
		s.Log.Warn("join refused", "from", from, "error", a.body.Errors[0].Message)
		return true, err
	})
	if err != nil {
		return err
	}
	c.audit.By, c.audit.As, c.audit.Tenant, c.audit.Object = answer.Host, v1.AuditHost, s.logOf(answer.Tenant), "host/"+answer.Host
	status, what := http.StatusOK, "host joined"
	if answer.Waiting {
		status, what = http.StatusAccepted, "host waits for approval"
	}
	s.Log.Info(what, "tenant", answer.Tenant, "host", answer.Host, "from", from)
	s.send(c.w, c.Request, status, answer)
	return nil
}

// join returns the answer to a host that joins.
func (s *server) join(c *call) (answer v1.Joined, err error) {
	secret, r, err := readJoin(c)
	if err != nil {
		return answer, err
	}
	// Whatever can fail by itself goes first: it must not use up the token.
	address, _, err := net.SplitHostPort(c.Host)
	if err != nil {
		address = strings.Trim(c.Host, "[]")
	}
	if !validAddress(address) {
		return answer, badRequest("Host", c.Host, "is not the name of a site")
	}
	url, err := s.Joining.NATSURL(address)
	if err != nil {
		return answer, problem(http.StatusConflict, "", "", "%s", err)
	}
	ca, err := s.Joining.CA()
	if err != nil {
		return answer, err
	}
	from, _, err := net.SplitHostPort(c.RemoteAddr)
	if err != nil {
		from = c.RemoteAddr
	}
	joined, err := s.Joining.Join(secret, r, from, time.Now())
	if err != nil {
		return answer, err
	}
	c.audit.Detail = fmt.Sprintf("key %s, for application %s, with join token %s made by %s", r.PublicKey, joined.Application, shortID(joined.ID), joined.By)
	if joined.Waiting {
		c.audit.Detail += "; it waits for approval"
	}
	return v1.Joined{Tenant: joined.Tenant, Host: r.Host, Application: joined.Application, NATSURL: url, CA: string(ca), Waiting: joined.Waiting}, nil
}

// readJoin reads the secret of a join token and the body of a request to join.
func readJoin(c *call) (secret string, r v1.Join, err error) {
	scheme, text, found := strings.Cut(c.Header.Get("Authorization"), " ")
	if !found || !strings.EqualFold(scheme, "Bearer") {
		return "", r, problem(http.StatusUnauthorized, "", "", "the request has no join token; send Authorization: Bearer TOKEN")
	}
	if secret, _, err = join.Parse(text); err != nil {
		return "", r, problem(http.StatusUnauthorized, "", "", "%s", err)
	}
	body, err := c.body()
	if err != nil {
		return "", r, err
	}
	r, err = v1.DecodeJoin(c.Header.Get("Content-Type"), body)
	return secret, r, err
}

// ErrRefusedKey means that the site refuses the key of a host that joins.
var ErrRefusedKey = errors.New("the key is refused")

// RefusedKeyError is ErrRefusedKey with the reason and no other word.
type RefusedKeyError struct{ Why error }

// Error implements error.
func (e RefusedKeyError) Error() string { return e.Why.Error() }

// Is implements the interface of errors.Is.
func (e RefusedKeyError) Is(target error) bool { return target == ErrRefusedKey } //nolint:errorlint // it is what errors.Is asks

// joinProblem returns the answer to a host that is not let join.
func joinProblem(err error) error {
	for cause, status := range map[error]int{
		join.ErrUnknown: http.StatusUnauthorized, join.ErrExpired: http.StatusUnauthorized, join.ErrDamaged: http.StatusUnauthorized,
		join.ErrUsed: http.StatusForbidden, join.ErrName: http.StatusForbidden, join.ErrKey: http.StatusForbidden, join.ErrFull: http.StatusForbidden, join.ErrRefused: http.StatusForbidden, join.ErrWithdrawn: http.StatusForbidden, join.ErrHost: http.StatusForbidden,
		ErrRefusedKey: http.StatusConflict, join.ErrNotWaiting: http.StatusNotFound, join.ErrApproved: http.StatusConflict,
	} {
		if errors.Is(err, cause) {
			return problem(status, "", "", "%s", err)
		}
	}
	return err
}

func joinToken(k join.Kept, now time.Time) v1.JoinToken {
	if k.Damage != nil {
		return v1.JoinToken{ID: k.ID, Damage: k.Damage.Error()}
	}
	token := v1.JoinToken{
		ID: k.ID, Tenant: k.Tenant, Host: k.Host, Application: k.Application, MaxHosts: k.MaxHosts, Labels: k.Labels, Approve: k.Approve,
		Expires: k.Expires, Replace: k.Replace, By: k.By, State: k.State(now),
	}
	for _, u := range k.Uses {
		token.UsedBy = append(token.UsedBy, v1.JoinUse{Host: u.Host, PublicKey: u.Key, At: u.At, From: u.From, Status: u.Status(k.Token), By: cmp.Or(u.Refused, u.Approved)})
	}
	return token
}

// getJoinTokens lists the join tokens of a tenant, or of all, without their secrets.
func (s *server) getJoinTokens(c *call) error {
	all, err := s.Joining.Tokens.List()
	if err != nil {
		return err
	}
	listed := []v1.JoinToken{}
	for _, k := range all {
		if k.Damage == nil && k.Tenant == c.tenant || c.tenant == access.AnyTenant {
			listed = append(listed, joinToken(k, time.Now()))
		}
	}
	return sendList(s, c, listed, func(t v1.JoinToken) string { return t.ID })
}

// postJoinToken makes a join token.
func (s *server) postJoinToken(c *call) error {
	if c.tenant == access.AnyTenant {
		return refusal(access.TenantError{}) // A host belongs to one.
	}
	body, err := c.body()
	if err != nil {
		return err
	}
	wanted, err := v1.DecodeNewJoinToken(c.Header.Get("Content-Type"), body)
	if err != nil {
		return err
	}
	valid, err := wanted.Duration()
	if err != nil {
		return err
	}
	ca, err := s.Joining.CA()
	if err != nil {
		return err
	}
	var fingerprint string
	if len(ca) > 0 {
		if fingerprint, err = v1.Fingerprint(ca); err != nil {
			return err
		}
	}
	now := time.Now()
	token := join.Token{
		Tenant: c.tenant, Host: wanted.Host, Application: wanted.Application, MaxHosts: max(wanted.MaxHosts, 1), Labels: wanted.Labels, Approve: wanted.Approve, Replace: wanted.Replace, By: c.who.Name,
		Expires: now.Add(valid).UTC().Truncate(time.Second),
	}
	secret, id, err := s.Joining.Tokens.Add(token, now)
	if err != nil {
		return err
	}
	s.Log.Info("join token made", "tenant", c.tenant, "by", c.who.Name, "id", id[:12], "host", wanted.Host, "expires", token.Expires)
	c.audit.Object, c.audit.Detail = "join-token/"+shortID(id), token.About()
	made := joinToken(join.Kept{ID: id, Token: token}, now)
	made.Token = join.Text(secret, fingerprint)
	c.w.Header().Set("Location", c.URL.Path+"/"+id)
	s.send(c.w, c.Request, http.StatusCreated, made)
	return nil
}

// deleteJoinToken removes a join token. One of another tenant is not there.
func (s *server) deleteJoinToken(c *call) error {
	all, err := s.Joining.Tokens.List()
	if err != nil {
		return err
	}
	id := c.PathValue("id")
	for _, k := range all {
		if k.ID != id || k.Tenant != c.tenant && c.tenant != access.AnyTenant {
			continue
		}
		if err := s.Joining.Tokens.Remove(id); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		s.Log.Info("join token removed", "tenant", c.tenant, "by", c.who.Name, "id", id[:min(len(id), 12)])
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return problem(http.StatusNotFound, "id", id, "tenant %q has no join token %.70q", c.tenant, id)
}

// waitingHosts returns the hosts of a tenant, or of all, that wait for approval.
func (s *server) waitingHosts(tenant string) ([]v1.WaitingHost, error) {
	all, err := s.Joining.Tokens.Waiting(time.Now())
	if err != nil {
		return nil, err
	}
	waiting := []v1.WaitingHost{}
	for _, w := range all {
		if w.Token.Tenant == tenant || tenant == access.AnyTenant {
			waiting = append(waiting, w.Shown())
		}
	}
	return waiting, nil
}

// getWaitingHosts lists the hosts of a tenant, or of all, that wait for approval.
func (s *server) getWaitingHosts(c *call) error {
	waiting, err := s.waitingHosts(c.tenant)
	if err != nil {
		return err
	}
	return sendList(s, c, waiting, func(h v1.WaitingHost) string { return h.Host + " " + h.PublicKey })
}

// mostWaiting is how many of the hosts that wait for approval are in the state of a tenant.
const mostWaiting = 3

// addWaiting adds to the state of a tenant which hosts wait for approval.
func (s *server) addWaiting(c *call, state *v1.State) error {
	if s.Joining == nil {
		return nil
	}
	waiting, err := s.waitingHosts(c.tenant)
	if err == nil && len(waiting) > 0 {
		state.WaitingHosts, state.FirstWaiting = len(waiting), waiting[:min(len(waiting), mostWaiting)]
	}
	return err
}

// decideHost returns the handler that lets a host in that waits for approval, or refuses it.
func decideHost(approve bool) func(*server, *call) error {
	what := "host refused"
	if approve {
		what = "host approved"
	}
	return func(s *server, c *call) error {
		body, err := c.body()
		if err != nil {
			return err
		}
		wanted, err := v1.DecodeHostVerdict(c.Header.Get("Content-Type"), body)
		if err != nil {
			return err
		}
		host := c.PathValue("host")
		c.audit.Detail = "key " + wanted.PublicKey
		decided, err := s.Joining.Decide(join.Verdict{Tenant: c.tenant, Host: host, Key: wanted.PublicKey, Approve: approve, By: c.who.Name}, time.Now())
		if err != nil {
			return joinProblem(err)
		}
		s.Log.Info(what, "tenant", c.tenant, "by", c.who.Name, "host", host, "key", wanted.PublicKey, "from", decided.Use.From)
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
}

// validAddress reports whether a name of the site can be part of an address.
func validAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil || names.ValidHost(host)
}
