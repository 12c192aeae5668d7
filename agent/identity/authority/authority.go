// Package authority is the certificate authority of one site, and the certificate that the
// site has from it: for sites that have no other.
//
// It decides what such certificates contain and when the site's is renewed. It
// presents and trusts none.
package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
)

// Files are the files of the authority of a site and of the certificate that it has signed,
// all PEM but the key of the authority, which is sealed: who has it can pass for any site to
// all hosts. The key of the certificate is not sealed: a site whose strongbox is sealed must
// be reached to be unsealed.
type Files struct {
	CA, CAKey, Cert, Key string
}

// Strongbox seals the key of the authority.
type Strongbox interface {
	Seal(secret []byte, purpose string) (string, error)
	Open(sealed, purpose string) ([]byte, error)
	Stale(sealed string) bool
	// Sealed returns why it seals and opens nothing; nil if it does.
	Sealed() error
}

// In returns the files in a folder.
func In(dir string) Files {
	in := func(name string) string { return filepath.Join(dir, name) }
	return Files{CA: in("ca.pem"), CAKey: in("ca.key"), Cert: in("site.pem"), Key: in("site.key")}
}

// purpose is what the key of the authority is sealed for.
const purpose = "key of the authority"

const (
	day = 24 * time.Hour
	// caLife is how long the authority is valid. Hosts trust it, so a new one has to be
	// brought to each.
	caLife = 20 * 365 * day
	// life is how long the certificate of the site is valid, and renewBefore how long
	// before its end it is renewed.
	life, renewBefore = 397 * day, 60 * day
	// early is how long before it was made a certificate is valid: clocks of hosts may
	// be behind.
	early = time.Hour
)

// Made reports whether a certificate was made here.
func (f Files) Made() bool {
	_, err := os.Stat(f.Cert)
	return err == nil
}

// Make makes the certificate of a site for its names and addresses, and before it the
// authority if there is none yet. It reports whether it made the authority. The key goes
// before its certificate: a crash in between leaves an authority that is made anew, as
// nobody trusts it yet.
func (f Files) Make(names []string, now time.Time, box Strongbox) (newAuthority bool, err error) {
	if newAuthority, err = f.ensure(now, box); err != nil {
		return false, err
	}
	return newAuthority, f.sign(names, now, box)
}

// ensure makes an authority if there is none yet, and reports whether it did.
func (f Files) ensure(now time.Time, box Strongbox) (made bool, err error) {
	if err := os.MkdirAll(filepath.Dir(f.CA), 0o700); err != nil {
		return false, fmt.Errorf("cannot make the folder of the certificates: %w", err)
	}
	if _, err := os.Stat(f.CA); !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return true, f.makeAuthority(now, box)
}

func (f Files) makeAuthority(now time.Time, box Strongbox) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serial, err := newSerial()
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "osupgrade site authority " + serial.Text(16)[:8]},
		NotBefore: now.Add(-early), NotAfter: now.Add(caLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	private, err := encode(key)
	if err != nil {
		return err
	}
	if err := f.keepKey(private, box); err != nil {
		return err
	}
	return write(template, template, key, key, f.CA)
}

// sign makes the certificate of the site.
func (f Files) sign(names []string, now time.Time, box Strongbox) error {
	if len(names) == 0 {
		return errors.New("a certificate needs a name or an address")
	}
	ca, caKey, err := f.authority(box)
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serial, err := newSerial()
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: names[0]}, NotBefore: now.Add(-early), NotAfter: earlier(now.Add(life), ca.NotAfter),
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	private, err := encode(key)
	if err != nil {
		return err
	}
	if err := durable.WriteFile(f.Key, private, 0o600); err != nil {
		return err
	}
	return write(template, ca, key, caKey, f.Cert)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Renew makes the certificate anew, for the same names, when it is about to end, and
// reports whether it did. It does nothing for a certificate of another authority, or
// when the authority's key was taken away.
func (f Files) Renew(now time.Time, box Strongbox) (bool, error) {
	if _, err := os.Stat(f.CAKey); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	cert, err := readCertificate(f.Cert)
	if err != nil {
		return false, err
	}
	ca, err := readCertificate(f.CA)
	if err != nil {
		return false, err
	}
	ours := cert.CheckSignatureFrom(ca) == nil
	if !ours || now.Before(cert.NotAfter.Add(-renewBefore)) || !cert.NotAfter.Before(ca.NotAfter) {
		return false, nil
	}
	names := cert.DNSNames
	for _, ip := range cert.IPAddresses {
		names = append(names, ip.String())
	}
	return true, f.sign(names, now, box)
}

func (f Files) authority(box Strongbox) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	ca, err := readCertificate(f.CA)
	if err != nil {
		return nil, nil, err
	}
	text, _, err := f.readKey(box)
	if err != nil {
		return nil, nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, nil, fmt.Errorf("%s holds no key in PEM form", f.CAKey)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, nil, fmt.Errorf("%s holds no key: %w", f.CAKey, err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || !key.PublicKey.Equal(ca.PublicKey) {
		return nil, nil, fmt.Errorf("%s is not the key of %s; put the right one in place, or remove both for a new authority, of which all who trust this one then have to be told", f.CAKey, f.CA)
	}
	return ca, key, nil
}

func readCertificate(file string) (*x509.Certificate, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read a certificate: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, fmt.Errorf("%s holds no certificate in PEM form", file)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s holds no certificate: %w", file, err)
	}
	return cert, nil
}

func newSerial() (*big.Int, error) {
	// 127 random bits, of which the highest is set: positive and always as long.
	low, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 126))
	if err != nil {
		return nil, err
	}
	return low.SetBit(low, 126, 1), nil
}

// sealedKey is the content of the file of a sealed key.
type sealedKey struct {
	Sealed string `json:"sealed"`
}

// keepKey seals the key of the authority.
func (f Files) keepKey(private []byte, box Strongbox) error {
	sealed, err := box.Seal(private, purpose)
	if err != nil {
		return fmt.Errorf("cannot seal the key of the authority: %w", err)
	}
	body, err := format.Sealed.Encode(sealedKey{Sealed: sealed})
	if err != nil {
		return err
	}
	return durable.WriteFile(f.CAKey, body, 0o600)
}

// readKey returns the key of the authority, PEM, and whether it is sealed with the newest key.
func (f Files) readKey(box Strongbox) (text []byte, fresh bool, err error) {
	body, err := os.ReadFile(f.CAKey)
	if err != nil {
		return nil, false, fmt.Errorf("cannot read the key of the authority: %w", err)
	}
	var kept sealedKey
	if err := format.Sealed.Decode(body, &kept); err != nil {
		return nil, false, fmt.Errorf("cannot read the key of the authority, %s: %w", f.CAKey, err)
	}
	text, err = box.Open(kept.Sealed, purpose)
	if err != nil && box.Sealed() == nil {
		return nil, false, fmt.Errorf("cannot open the key of the authority, %s: %w; if the strongbox is lost, remove it and %s, and make a new authority with osupgrade-agent init: whoever trusted that has to be told of the new one", f.CAKey, err, f.CA)
	}
	if err != nil {
		return nil, false, fmt.Errorf("cannot open the key of the authority, %s: %w", f.CAKey, err)
	}
	return text, !box.Stale(kept.Sealed), nil
}

// Protect seals the key of the authority again if it was sealed by an older data key, and
// reports whether it did. It does nothing where there is no such key.
func (f Files) Protect(box Strongbox) (bool, error) {
	text, fresh, err := f.readKey(box)
	if errors.Is(err, fs.ErrNotExist) || err == nil && fresh {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, f.keepKey(text, box)
}

// encode returns a private key as PEM.
func encode(key *ecdsa.PrivateKey) ([]byte, error) {
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), nil
}

// write signs a certificate and writes it. Its key was written before.
func write(template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey, file string) error {
	cert, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return fmt.Errorf("cannot sign a certificate: %w", err)
	}
	return durable.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o644)
}
