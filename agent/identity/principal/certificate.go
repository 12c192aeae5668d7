package principal

import (
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"os"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
)

// CertificateError means that a client certificate, which may be good otherwise, is that of
// no user.
type CertificateError struct{ Text string }

// Error implements error.
func (e *CertificateError) Error() string { return e.Text }

// The attributes of a subject that name a user (RFC 5280, 4.1.2.4).
var (
	commonName   = asn1.ObjectIdentifier{2, 5, 4, 3}
	organization = asn1.ObjectIdentifier{2, 5, 4, 10}
)

// Certified returns the user whom the subject of a client certificate names: CN is the name
// of the user, O the tenant, * for a user of all tenants. The certificate makes nobody, and
// nothing of it is kept: it is that of the user as this is now. Whether the certificate is
// good is decided before.
//
// The tenant must be there: of two users of a name, one may be made after the certificate.
func (u *Users) Certified(cert *x509.Certificate) (User, error) {
	name, err := attribute(cert, commonName, "common name (CN)", "the name of the user")
	if err != nil {
		return User{}, err
	}
	tenant, err := attribute(cert, organization, "organization (O)", "the tenant of the user, or * for all tenants")
	if err != nil {
		return User{}, err
	}
	user, err := User{}, os.ErrNotExist
	if tenant == access.AnyTenant || names.Valid(tenant) {
		user, err = u.Get(tenant, name)
	}
	if errors.Is(err, os.ErrNotExist) {
		return User{}, &CertificateError{fmt.Sprintf("the client certificate is for user %.100q of tenant %.100q, and this site has no such user; make the user, or use a certificate whose CN is the name of one and whose O is its tenant", name, tenant)}
	}
	return user, err
}

// attribute returns the one value of an attribute of the subject.
func attribute(cert *x509.Certificate, id asn1.ObjectIdentifier, what, right string) (value string, err error) {
	found := 0
	for _, a := range cert.Subject.Names {
		if a.Type.Equal(id) {
			found++
			value, _ = a.Value.(string)
		}
	}
	if found != 1 || value == "" {
		return "", &CertificateError{fmt.Sprintf("the subject of the client certificate has %d values of %s; it needs one, %s", found, what, right)}
	}
	return value, nil
}
