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
	"os"
	"path/filepath"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/durable"
)

// Users is the authority of the client certificates of users. It is another one than that of
// the site, which hosts trust: neither's certificates are good for what the other's are.
type Users struct {
	Root

	// CRL is the list of the certificates that it has revoked, PEM.
	CRL string
}

// UsersIn returns the authority of users in a folder.
func UsersIn(dir string) Users {
	return Users{
		Root: Root{
			CA: filepath.Join(dir, "client-ca.pem"), CAKey: filepath.Join(dir, "client-ca.key"), title: "osupgrade user authority", purpose: "key of the authority of users",
			usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		},
		CRL: filepath.Join(dir, "client-crl.pem"),
	}
}

// MaxUserLife is the longest life of a client certificate.
const MaxUserLife = life

// Issued is a client certificate and its private key, both PEM.
type Issued struct {
	Cert, Key []byte
	// Serial is its serial number, in hex.
	Serial   string
	NotAfter time.Time
}

// Make makes the authority if there is none yet, with an empty list of revoked certificates,
// and reports whether it did.
func (u Users) Make(now time.Time, box Strongbox) (made bool, err error) {
	if made, err = u.ensure(now, box); err != nil {
		return false, err
	}
	if _, err := os.Stat(u.CRL); errors.Is(err, fs.ErrNotExist) {
		return made, u.write(&x509.RevocationList{Number: new(big.Int)}, now, box)
	}
	return made, nil
}

// Sign signs a client certificate for a user, with a new key.
func (u Users) Sign(tenant, name string, life time.Duration, now time.Time, box Strongbox) (Issued, error) {
	ca, caKey, err := u.authority(box)
	if err != nil {
		return Issued{}, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Issued{}, err
	}
	serial, err := newSerial()
	if err != nil {
		return Issued{}, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name, Organization: []string{tenant}}, NotBefore: now.Add(-early), NotAfter: earlier(now.Add(life), ca.NotAfter),
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	private, err := encode(key)
	if err != nil {
		return Issued{}, err
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, ca, &key.PublicKey, caKey)
	if err != nil {
		return Issued{}, fmt.Errorf("cannot sign a certificate: %w", err)
	}
	return Issued{Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), Key: private, Serial: serial.Text(16), NotAfter: template.NotAfter.UTC().Truncate(time.Second)}, nil
}

// ErrRevoked means that a certificate was revoked before.
var ErrRevoked = errors.New("it was revoked before")

// Revoke puts the certificate with a serial number, in hex, on the list of the revoked ones.
func (u Users) Revoke(serial string, now time.Time, box Strongbox) error {
	number, ok := new(big.Int).SetString(serial, 16)
	if !ok || number.Sign() <= 0 || number.BitLen() > 160 {
		return fmt.Errorf("%.100q is not the serial number of a certificate; it has hexadecimal digits, as in the line that credentials certificate prints and in the audit log", serial)
	}
	if _, err := u.list(); err != nil {
		return err // There may be no folder to lock.
	}
	lock, err := durable.WaitForFolder(filepath.Dir(u.CRL))
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	list, err := u.list()
	if err != nil {
		return err
	}
	for _, entry := range list.RevokedCertificateEntries {
		if entry.SerialNumber.Cmp(number) == 0 {
			return ErrRevoked
		}
	}
	list.RevokedCertificateEntries = append(list.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: number, RevocationTime: now.UTC().Truncate(time.Second)})
	return u.write(list, now, box)
}

// list reads the list of revoked certificates.
func (u Users) list() (*x509.RevocationList, error) {
	text, err := os.ReadFile(u.CRL)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("this site has no authority of users: %s is not there; credentials certificate makes it, and a certificate of another authority is revoked by that", u.CRL)
	}
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s holds no list of revoked certificates in PEM form", u.CRL)
	}
	list, err := x509.ParseRevocationList(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s holds no list of revoked certificates: %w", u.CRL, err)
	}
	return list, nil
}

// write signs the list, with the next number, and writes it. It has no end of its own: it is
// written when something is revoked, and not now and then.
func (u Users) write(list *x509.RevocationList, now time.Time, box Strongbox) error {
	ca, key, err := u.authority(box)
	if err != nil {
		return err
	}
	next := &x509.RevocationList{
		Number: new(big.Int).Add(list.Number, big.NewInt(1)), ThisUpdate: now.Add(-early), NextUpdate: ca.NotAfter, RevokedCertificateEntries: list.RevokedCertificateEntries,
	}
	der, err := x509.CreateRevocationList(rand.Reader, next, ca, key)
	if err != nil {
		return fmt.Errorf("cannot sign the list of revoked certificates: %w", err)
	}
	return durable.WriteFile(u.CRL, pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der}), 0o644)
}
