package principal

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/certtest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/credentialtest"
)

// TestCertified checks which user a certificate is that of, and that it makes nobody.
func TestCertified(t *testing.T) {
	t.Parallel()
	users := NewUsers(&credentialtest.Memory{})
	for _, u := range []User{
		{Tenant: "acme", Name: "ann", Allow: []access.Role{access.Viewer}},
		{Tenant: "other", Name: "ann", Allow: []access.Role{access.Admin}},
		{Tenant: access.AnyTenant, Name: "root", Allow: []access.Role{access.Admin}},
	} {
		if _, err := users.Write(t.Context(), u, "correct horse", nil, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	site := certtest.NewAuthority(t, "site", time.Now())
	named := func(names ...pkix.AttributeTypeAndValue) pkix.Name { return pkix.Name{ExtraNames: names} }
	cn := func(value any) pkix.AttributeTypeAndValue {
		return pkix.AttributeTypeAndValue{Type: commonName, Value: value}
	}
	o := func(value any) pkix.AttributeTypeAndValue {
		return pkix.AttributeTypeAndValue{Type: organization, Value: value}
	}
	unit := pkix.AttributeTypeAndValue{Type: asn1.ObjectIdentifier{2, 5, 4, 11}, Value: "acme"}
	for name, c := range map[string]struct {
		subject pkix.Name
		// want is the tenant and the role of the user, or part of why there is none.
		want string
	}{
		"of one tenant":              {named(cn("ann"), o("acme")), "acme viewer"},
		"of another tenant":          {named(cn("ann"), o("other")), "other admin"},
		"in another order":           {named(o("acme"), cn("ann")), "acme viewer"},
		"of all tenants":             {named(cn("root"), o("*")), "* admin"},
		"with more in it":            {named(unit, cn("ann"), o("acme")), "acme viewer"},
		"of nobody":                  {named(cn("bob"), o("acme")), `user "bob" of tenant "acme", and this site has no such user`},
		"of all tenants, who is not": {named(cn("ann"), o("*")), `user "ann" of tenant "*", and this site has no such user`},
		"of one tenant, who is not":  {named(cn("root"), o("acme")), "no such user"},
		"by the name of a file":      {named(cn("root"), o("_")), "no such user"},
		"in capitals":                {named(cn("Ann"), o("acme")), "no such user"},
		"with a blank":               {named(cn("ann "), o("acme")), "no such user"},
		"with the tenant in it":      {named(cn("acme.ann")), "0 values of organization"},
		"with a path":                {named(cn("../other.ann"), o("acme")), "no such user"},
		"with a path of a tenant":    {named(cn("ann"), o("../users/acme")), "no such user"},
		"with a zero byte":           {named(cn("ann\x00.evil"), o("acme")), "no such user"},
		"without a tenant":           {named(cn("ann")), "0 values of organization (O); it needs one, the tenant of the user"},
		"without a name":             {named(o("acme")), "0 values of common name (CN); it needs one, the name of the user"},
		"of nothing":                 {named(), "0 values of common name"},
		"of two":                     {named(cn("bob"), cn("ann"), o("acme")), "2 values of common name"},
		"of two tenants":             {named(cn("ann"), o("other"), o("acme")), "2 values of organization"},
	} {
		user, err := users.Certified(site.Sign(t, x509.Certificate{Subject: c.subject}).Leaf(t))
		got := user.Tenant + " " + strings.Join(user.Allow, " ")
		if err != nil {
			if _, refused := errors.AsType[*CertificateError](err); !refused {
				t.Errorf("%s: %v is no refusal of the certificate", name, err)
			}
			got = err.Error()
		}
		if !strings.Contains(got, c.want) || err == nil && got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	if left, err := users.List(); err != nil || len(left) != 3 {
		t.Errorf("there are %d users, %v", len(left), err)
	}
	if err := users.remove(KeyOf("acme", "ann"), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := users.Certified(site.User(t, "acme", "ann").Leaf(t)); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("a removed user: %v", err)
	}
}
