// Package certificate keeps the certificate of a listener the same as its files, and the
// authorities whose client certificates it takes: renewed ones are taken up without a
// restart.
//
// It decides which certificate may be presented, which client certificate is good, and
// when a person is told that one is about to expire. It never makes or renews one, and
// does not know who may do what.
package certificate

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// soon and urgent are how long before its end a certificate is a warning and an
	// error, remindInterval is the time between two of these lines.
	soon, urgent   = 30 * day, 7 * day
	remindInterval = day
	day            = 24 * time.Hour
)

// Pair is the certificate and the private key of a listener.
type Pair struct {
	files   files
	log     *slog.Logger
	current atomic.Pointer[loaded]

	// mu guards what follows: a look may be asked for at any time.
	mu     sync.Mutex
	faults faults
	// reminded is when a line about the end of the certificate was written.
	reminded time.Time
}

// files name a certificate and its key, both PEM.
type files struct{ cert, key string }

// loaded is what the files held.
type loaded struct {
	cert, key   []byte
	certificate *tls.Certificate
}

// Load reads a certificate and its key, and refuses one that is not valid at now.
// name says in the log which listener it is for.
func Load(name, certFile, keyFile string, now time.Time, log *slog.Logger) (*Pair, error) {
	p := &Pair{files: files{certFile, keyFile}, log: log.With("certificate", certFile, "listener", name)}
	first, err := p.files.read()
	if err != nil {
		return nil, err
	}
	if err := valid(first.leaf(), now); err != nil {
		return nil, fmt.Errorf("the certificate in %s %w", certFile, err)
	}
	p.current.Store(first)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remind(now)
	return p, nil
}

func (f files) read() (*loaded, error) {
	cert, err := os.ReadFile(f.cert)
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(f.key)
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("%s and %s are not a certificate and its key: %w", f.cert, f.key, err)
	}
	if certificate.Leaf == nil {
		return nil, fmt.Errorf("%s holds no certificate", f.cert)
	}
	return &loaded{cert: cert, key: key, certificate: &certificate}, nil
}

func (l *loaded) leaf() *x509.Certificate { return l.certificate.Leaf }

func (l *loaded) equal(other *loaded) bool {
	return bytes.Equal(l.cert, other.cert) && bytes.Equal(l.key, other.key)
}

// valid returns why a certificate must not be presented at a time. The text does
// not depend on that time.
func valid(leaf *x509.Certificate, now time.Time) error {
	switch {
	case now.After(leaf.NotAfter):
		return fmt.Errorf("expired on %s; renew it", date(leaf.NotAfter))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("is not valid before %s; compare that with the clock of this machine", date(leaf.NotBefore))
	}
	return nil
}

func date(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// Get is for tls.Config.GetCertificate: it returns the newest certificate.
func (p *Pair) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return p.current.Load().certificate, nil
}

// NotAfter is the end of the certificate that is presented now.
func (p *Pair) NotAfter() time.Time { return p.current.Load().leaf().NotAfter }

// Watch looks at the files when they change, and now and then, until ctx ends.
func (p *Pair) Watch(ctx context.Context) {
	watch(ctx, []string{p.files.cert, p.files.key}, p.log, p.Look)
}

// Look reads the files again. What they hold is taken up when it may be presented;
// otherwise the certificate from before stays, and the log says why.
func (p *Pair) Look(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next, err := p.files.read()
	same := err == nil && next.equal(p.current.Load())
	if err == nil && !same {
		if err = valid(next.leaf(), now); err != nil {
			err = fmt.Errorf("the new certificate %w", err)
		}
	}
	switch {
	case err != nil:
		if p.faults.persists(err) {
			p.log.Warn("cannot take up the certificate; the one from before stays in use", "error", err, "expires", date(p.NotAfter()))
		}
	case same:
		p.faults = faults{}
	default:
		p.current.Store(next)
		p.faults, p.reminded = faults{}, time.Time{}
		p.log.Info("took up the renewed certificate", "expires", date(p.NotAfter()), "days-left", DaysLeft(p.NotAfter(), now))
	}
	p.remind(now)
}

// remind logs once a day that the certificate is about to expire or has expired.
func (p *Pair) remind(now time.Time) {
	// A clock that was set back must not silence it.
	if since := now.Sub(p.reminded); since >= 0 && since < remindInterval {
		return
	}
	end := p.NotAfter()
	level, text := slog.LevelWarn, "the certificate expires soon; renew it: it is taken up without a restart"
	switch left := end.Sub(now); {
	case left > soon:
		return
	case left <= 0:
		level, text = slog.LevelError, "the certificate has expired: no client and no host can connect; renew it: it is taken up without a restart"
	case left <= urgent:
		level = slog.LevelError
	}
	p.reminded = now
	p.log.Log(context.Background(), level, text, "expires", date(end), "days-left", DaysLeft(end, now))
}

// DaysLeft is the number of whole days until an end; negative after it.
func DaysLeft(end, now time.Time) int {
	left := end.Sub(now)
	if left < 0 {
		left -= day - 1
	}
	return int(left / day)
}
