package api

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// ClientCertificates decide which client certificates are good.
type ClientCertificates interface {
	// Verify returns why the first of a chain is not good at a time; nil if it is.
	Verify(chain []*x509.Certificate, now time.Time) error
}

var errNoProof = errors.New("the request has neither a token nor a client certificate; send Authorization: Bearer TOKEN, or a certificate of one of the authorities of the site's client-ca-file")

// certified returns the user whose client certificate the connection of a request has;
// certified reports whether it has one. Certificate and user are looked at anew for each
// request, so that neither is good any longer than it is.
func (s *server) certified(r *http.Request) (p proof, certified bool, err error) {
	if s.ClientCertificates == nil || r.Header.Get("Authorization") != "" || r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return proof{}, false, nil
	}
	user, err := s.userOf(r.TLS.PeerCertificates)
	if err != nil {
		leaf := r.TLS.PeerCertificates[0]
		s.certificateLog.Warn("a client certificate is not good", "from", source(r.RemoteAddr), "subject", shortened(leaf.Subject.String()), "certificate", titleOf(leaf), "error", err)
		return proof{}, true, err
	}
	// A browser sends the certificate of its user with the requests of any page.
	if err := s.crossOrigin.Check(r); err != nil {
		return proof{}, true, problem(http.StatusForbidden, "", "", "a page of another site has sent this request with the client certificate of the browser's user; send a token instead")
	}
	return proof{
		who: access.Principal{Name: user.Name, As: v1.AuditUser, Tenant: user.Tenant, Roles: user.Allow},
		as:  v1.AuditUser, certificate: titleOf(r.TLS.PeerCertificates[0]),
	}, true, nil
}

func (s *server) userOf(chain []*x509.Certificate) (principal.User, error) {
	if err := s.ClientCertificates.Verify(chain, time.Now()); err != nil {
		return principal.User{}, problem(http.StatusUnauthorized, "", "", "%s", err)
	}
	if s.Logins == nil {
		return principal.User{}, errNoLogins
	}
	user, err := s.Logins.Users.Certified(chain[0])
	if refused, ok := errors.AsType[*principal.CertificateError](err); ok {
		return principal.User{}, problem(http.StatusUnauthorized, "", "", "%s", refused)
	}
	return user, err
}

// titleOf tells a certificate from others: its serial number is what a list of revoked ones
// has, its SHA-256 what programs show.
func titleOf(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return fmt.Sprintf("serial %s, SHA-256 %s", shortened(c.SerialNumber.Text(16)), shortID(hex.EncodeToString(sum[:])))
}
