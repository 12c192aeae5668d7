package certificate

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/big"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// maxChain is how many certificates a client may present: its own and some intermediate
// ones. It bounds the time that a request with a hostile chain takes.
const maxChain = 5

// maxPresented is how many bytes these may have. A connection keeps them for as long as it is
// open, so a handshake with more fails.
const maxPresented = 16 << 10

// Authorities are those whose client certificates are good, and what they have revoked.
type Authorities struct {
	caFile, crlFile string
	// seenFile is where seen is kept; empty for nowhere.
	seenFile string
	log      *slog.Logger
	current  atomic.Pointer[trust]

	// mu guards what follows: a look may be asked for at any time.
	mu     sync.Mutex
	faults faults
	// seen are the newest lists that were ever taken up, kept those that are on disk.
	seen, kept seenLists
}

// trust is what the files hold.
type trust struct {
	ca, crl []byte
	// roots are the authorities.
	roots   *x509.CertPool
	issuers []*x509.Certificate
	// revoked are the certificates that were revoked, with when.
	revoked map[issued]time.Time
	// lists are the newest lists of revoked certificates, by what seenLists are by.
	lists map[string]*x509.RevocationList
	// stale is the earliest end of a list of revoked certificates; zero without one.
	stale time.Time
}

// issued names a certificate by its issuer and the serial number that this gave it.
type issued struct{ issuer, serial string }

func issuedBy(issuer []byte, serial *big.Int) issued { return issued{string(issuer), serial.Text(16)} }

// LoadAuthorities reads the certificates of authorities, and the lists of what these have
// revoked (CRLs, PEM or DER) if crlFile is not empty. It refuses a file without an
// authority that is valid at now, and a list that is older than one of seenFile, in which an
// earlier process has kept the newest ones. Empty means that nothing is kept.
func LoadAuthorities(caFile, crlFile, seenFile string, now time.Time, log *slog.Logger) (*Authorities, error) {
	a := &Authorities{caFile: caFile, crlFile: crlFile, seenFile: seenFile, log: log.With("client-ca-file", caFile)}
	first, err := a.read(now)
	if err == nil && seenFile != "" {
		a.kept, err = readSeen(seenFile)
	}
	if err == nil {
		a.seen, err = a.kept.with(first, crlFile)
	}
	if err != nil {
		return nil, err
	}
	a.current.Store(first)
	a.warnStale(first, now)
	return a, nil
}

func (a *Authorities) read(now time.Time) (*trust, error) {
	t := &trust{roots: x509.NewCertPool(), revoked: map[issued]time.Time{}, lists: map[string]*x509.RevocationList{}}
	var err error
	switch t.ca, err = os.ReadFile(a.caFile); {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("client-ca-file: %w", err)
	case err != nil:
		return nil, fmt.Errorf("client-ca-file: %w", err)
	}
	for der := range blocks(t.ca, "CERTIFICATE") {
		c, err := x509.ParseCertificate(der)
		switch {
		case err != nil:
			return nil, fmt.Errorf("client-ca-file: %s holds a certificate that cannot be read: %w", a.caFile, err)
		case !c.IsCA:
			return nil, fmt.Errorf("client-ca-file: in %s the certificate of %.100q is not that of an authority; name those that sign the certificates of users", a.caFile, c.Subject)
		}
		t.issuers = append(t.issuers, c)
		t.roots.AddCert(c)
	}
	if err := checkTrusted(a.caFile, t.ca, now); err != nil {
		return nil, fmt.Errorf("client-ca-file: %w", err)
	}
	if a.crlFile == "" {
		return t, nil
	}
	if t.crl, err = os.ReadFile(a.crlFile); err == nil {
		err = t.readRevoked(a.crlFile)
	}
	if err != nil {
		return nil, fmt.Errorf("client-crl-file: %w", err)
	}
	return t, nil
}

// readRevoked reads the lists of revoked certificates.
func (t *trust) readRevoked(file string) error {
	lists := slices.Collect(blocks(t.crl, "X509 CRL"))
	if len(lists) == 0 {
		lists = [][]byte{t.crl}
	}
	for _, der := range lists {
		list, err := x509.ParseRevocationList(der)
		if err != nil {
			return fmt.Errorf("%s holds no list of revoked certificates (CRL), in PEM or DER form: %w", file, err)
		}
		signed := func(c *x509.Certificate) bool {
			return bytes.Equal(c.RawSubject, list.RawIssuer) && list.CheckSignatureFrom(c) == nil
		}
		signer := slices.IndexFunc(t.issuers, signed)
		if signer < 0 {
			return fmt.Errorf("the list of %.100q in %s is signed by none of the authorities in client-ca-file; add that authority there, or take the list out", list.Issuer, file)
		}
		key := signedBy(t.issuers[signer])
		if last := t.lists[key]; last == nil || seenOf(last).older(list) == nil {
			t.lists[key] = list
		}
		for _, entry := range list.RevokedCertificateEntries {
			t.revoked[issuedBy(list.RawIssuer, entry.SerialNumber)] = entry.RevocationTime
		}
		if end := list.NextUpdate; !end.IsZero() && (t.stale.IsZero() || end.Before(t.stale)) {
			t.stale = end
		}
	}
	return nil
}

// Watch looks at the files when they change, and now and then, until ctx ends.
func (a *Authorities) Watch(ctx context.Context) {
	a.mu.Lock()
	a.keep()
	a.mu.Unlock()
	files := []string{a.caFile}
	if a.crlFile != "" {
		files = append(files, a.crlFile)
	}
	watch(ctx, files, a.log, a.Look)
}

// Look reads the files again. What they hold is taken up if it can be read and no list of
// revoked certificates is older than before; otherwise that from before stays, and the log says
// why.
func (a *Authorities) Look(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.current.Load()
	next, err := a.read(now)
	var seen seenLists
	if err == nil {
		seen, err = a.seen.with(next, a.crlFile)
	}
	switch {
	case err != nil:
		if a.faults.persists(err) {
			a.log.Warn("cannot take up the authorities of client certificates; those from before stay in use", "error", err)
		}
	case bytes.Equal(next.ca, before.ca) && bytes.Equal(next.crl, before.crl):
		a.faults = faults{}
	default:
		a.current.Store(next)
		a.seen, a.faults = seen, faults{}
		a.log.Info("took up the authorities of client certificates", "authorities", len(next.issuers), "revoked", len(next.revoked))
		a.warnStale(next, now)
	}
	a.keep()
}

// keep writes down the newest lists, with the lock held.
func (a *Authorities) keep() {
	if a.seenFile == "" || maps.Equal(a.seen, a.kept) {
		return
	}
	if err := writeSeen(a.seenFile, a.seen); err != nil {
		a.log.Warn("cannot keep which lists of revoked certificates are the newest; trying again", "error", err)
		return
	}
	a.kept = a.seen
}

// warnStale logs that a list of revoked certificates should have been replaced by now. What
// it has revoked stays so.
func (a *Authorities) warnStale(t *trust, now time.Time) {
	if !t.stale.IsZero() && now.After(t.stale) {
		a.log.Warn("a list of revoked certificates is out of date; put a new one in place: it is taken up without a restart", "client-crl-file", a.crlFile, "expected", date(t.stale))
	}
}

// NotAfter is when the last of the authorities ends.
func (a *Authorities) NotAfter() (end time.Time) {
	for _, c := range a.current.Load().issuers {
		if c.NotAfter.After(end) {
			end = c.NotAfter
		}
	}
	return end
}

// Ask has a listener ask its clients for certificates of the authorities as they are then. A
// client without one connects all the same, and so does one whose certificate is not good:
// the request is answered with why, and a handshake would only fail.
func (a *Authorities) Ask(config *tls.Config) *tls.Config {
	asking := config.Clone()
	asking.ClientAuth, asking.VerifyPeerCertificate = tls.RequestClientCert, checkPresented
	config = asking.Clone()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		now := asking.Clone()
		now.ClientCAs = a.current.Load().roots
		return now, nil
	}
	return config
}

// checkPresented is tls.Config.VerifyPeerCertificate.
func checkPresented(presented [][]byte, _ [][]*x509.Certificate) error {
	size := 0
	for _, der := range presented {
		size += len(der)
	}
	if size > maxPresented {
		return fmt.Errorf("the client certificates have %d bytes; %d are the most", size, maxPresented)
	}
	return nil
}

// Verify returns why a client certificate is not good at a time; nil if it is. The first of
// the chain is that of the client; that it has the private key was proved by the handshake.
// What is revoked, or whose authority is not trusted any more, is good no more at once, on
// any connection.
//
// The certificate itself must name clientAuth. x509.Verify is content with one for any usage
// or without a list of usages, which RFC 5280 4.2.1.12 permits us to refuse: somebody who had
// it signed for another purpose could log in. Authorities on the way may be for any usage.
func (a *Authorities) Verify(chain []*x509.Certificate, now time.Time) error {
	t := a.current.Load()
	switch leaf := leafOf(chain); {
	case leaf == nil:
		return errors.New("there is no client certificate")
	case len(chain) > maxChain:
		return fmt.Errorf("the client certificate comes with %d further ones; send those between it and its authority, %d at most", len(chain)-1, maxChain-1)
	case leaf.IsCA:
		return errors.New("the client certificate is that of an authority; use one that it has signed for a user")
	case !slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageClientAuth):
		return errors.New("the client certificate is not for clients: it lacks the extended key usage clientAuth; use one that has it, not that of a server or a host")
	case now.After(leaf.NotAfter):
		return fmt.Errorf("the client certificate expired on %s; ask for a new one", date(leaf.NotAfter))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("the client certificate is not valid before %s; compare that with the clock of the site", date(leaf.NotBefore))
	}
	return t.verify(chain, now)
}

func leafOf(chain []*x509.Certificate) *x509.Certificate {
	if len(chain) == 0 {
		return nil
	}
	return chain[0]
}

// verify looks for a way from a certificate to an authority that has nothing revoked on it.
func (t *trust) verify(chain []*x509.Certificate, now time.Time) error {
	leaf, between := chain[0], x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	ways, err := leaf.Verify(x509.VerifyOptions{Roots: t.roots, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); unknown {
		return fmt.Errorf("the client certificate is signed by %.100q, and no authority that this site trusts for users stands behind that; use a certificate of one that is in its client-ca-file", leaf.Issuer)
	}
	if err != nil {
		return fmt.Errorf("the client certificate cannot be verified: %w", err)
	}
	var revoked error
	for _, way := range ways {
		if revoked = t.revokedOn(way); revoked == nil {
			return nil
		}
	}
	return revoked
}

// revokedOn returns an error if a certificate on the way to an authority was revoked.
func (t *trust) revokedOn(way []*x509.Certificate) error {
	for _, c := range way {
		if at, revoked := t.revoked[issuedBy(c.RawIssuer, c.SerialNumber)]; revoked {
			return fmt.Errorf("the certificate with serial number %s was revoked on %s; ask for a new one", c.SerialNumber.Text(16), date(at))
		}
	}
	return nil
}
