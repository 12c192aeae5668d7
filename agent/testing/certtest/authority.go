package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"
)

// Authority signs certificates.
type Authority struct {
	Pair

	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes an authority that is valid for a day on either side of now.
func NewAuthority(t testing.TB, name string, now time.Time) *Authority {
	t.Helper()
	return sign(t, nil, x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, NotBefore: now.Add(-24 * time.Hour), NotAfter: now.Add(24 * time.Hour)})
}

// Sub makes an authority that this one has signed, valid as long, for some usages or all.
func (a *Authority) Sub(t testing.TB, name string, usages ...x509.ExtKeyUsage) *Authority {
	t.Helper()
	return sign(t, a, x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: usages, IsCA: true, NotBefore: a.cert.NotBefore, NotAfter: a.cert.NotAfter})
}

// Sign signs a certificate. What the template lacks is that of a good certificate for the
// user in its subject.
func (a *Authority) Sign(t testing.TB, template x509.Certificate) Pair {
	t.Helper()
	if template.NotBefore.IsZero() {
		template.NotBefore = a.cert.NotBefore
	}
	if template.NotAfter.IsZero() {
		template.NotAfter = a.cert.NotAfter
	}
	if template.ExtKeyUsage == nil {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}
	return sign(t, a, template).Pair
}

// User signs a certificate of a user.
func (a *Authority) User(t testing.TB, tenant, name string) Pair {
	t.Helper()
	return a.Sign(t, x509.Certificate{Subject: pkix.Name{CommonName: name, Organization: []string{tenant}}})
}

// Revoke returns a list of revoked certificates, PEM, whose successor is due at next.
func (a *Authority) Revoke(t testing.TB, now, next time.Time, serials ...*big.Int) []byte {
	t.Helper()
	return a.List(t, &x509.RevocationList{Number: big.NewInt(now.Unix()), ThisUpdate: now, NextUpdate: next}, serials...)
}

// List signs a list of revoked certificates, which may lack a number.
func (a *Authority) List(t testing.TB, list *x509.RevocationList, serials ...*big.Int) []byte {
	t.Helper()
	for _, serial := range serials {
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: serial, RevocationTime: list.ThisUpdate})
	}
	der, err := a.signList(list)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der})
}

func (a *Authority) signList(list *x509.RevocationList) ([]byte, error) {
	if list.Number != nil {
		return x509.CreateRevocationList(rand.Reader, list, a.cert, a.key)
	}
	var revoked []pkix.RevokedCertificate
	for _, entry := range list.RevokedCertificateEntries {
		revoked = append(revoked, pkix.RevokedCertificate{SerialNumber: entry.SerialNumber, RevocationTime: entry.RevocationTime})
	}
	return a.cert.CreateCRL(rand.Reader, a.key, revoked, list.ThisUpdate, list.NextUpdate) //nolint:staticcheck // the only one that makes a list without a number
}

// Leaf returns the certificate of a pair.
func (p Pair) Leaf(t testing.TB) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(p.Cert)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func sign(t testing.TB, by *Authority, template x509.Certificate) *Authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if template.SerialNumber == nil {
		if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100)); err != nil {
			t.Fatal(err)
		}
	}
	template.BasicConstraintsValid, template.KeyUsage = true, x509.KeyUsageDigitalSignature
	if template.IsCA {
		template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	}
	parent, signer := &template, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	made := &Authority{key: key, Pair: Pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}}
	made.cert = made.Leaf(t)
	return made
}

// Signer returns the certificate of a user, and one of user admin that the user's key has
// signed: a forged one.
func (a *Authority) Signer(t testing.TB, tenant, name string) (user, forged Pair) {
	t.Helper()
	signer := sign(t, a, x509.Certificate{
		Subject: pkix.Name{CommonName: name, Organization: []string{tenant}}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		NotBefore: a.cert.NotBefore, NotAfter: a.cert.NotAfter,
	})
	return signer.Pair, signer.User(t, tenant, "admin")
}
