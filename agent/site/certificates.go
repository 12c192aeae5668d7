package site

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/certificate"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// The listeners by the names that the API and the log use.
const (
	apiListener  = "api"
	natsListener = "nats"
	// clientCA stands for the authorities whose client certificates are good.
	clientCA = "client-ca"
)

// listenerCertificate is the certificate of a listener.
type listenerCertificate struct {
	listener string
	*certificate.Pair
}

// pairs loads the certificates of both endpoints, before anything runs. One is nil
// if its endpoint needs none.
func (o Options) pairs() (api, nats *certificate.Pair, err error) {
	if api, err = o.API.certificate(apiListener, "", o.Log); err != nil {
		return nil, nil, err
	}
	if o.NATS == (Endpoint{}) {
		return api, nil, nil
	}
	nats, err = o.NATS.certificate(natsListener, "nats-", o.Log)
	return api, nats, err
}

// loadCertificates loads the certificates of both endpoints, and the authorities whose client
// certificates are good.
func (s *Site) loadCertificates(o Options) (api, nats *certificate.Pair, err error) {
	if api, nats, err = o.pairs(); err == nil {
		s.clients, err = o.clientAuthorities(api)
	}
	return api, nats, err
}

// clientAuthorities loads the authorities whose client certificates log users in; nil means
// that none is asked for.
func (o Options) clientAuthorities(api *certificate.Pair) (*certificate.Authorities, error) {
	switch {
	case o.ClientCAFile == "" && o.ClientCRLFile != "":
		return nil, errors.New("client-crl-file is set without client-ca-file, which names the authorities whose client certificates are good; set both or neither")
	case o.ClientCAFile == "":
		return nil, nil
	case api == nil:
		return nil, errors.New("client-ca-file is set, but the REST API has no TLS, without which there are no client certificates; set tls-cert and tls-key, or make a certificate with osupgrade-agent init")
	}
	return certificate.LoadAuthorities(o.ClientCAFile, o.ClientCRLFile, filepath.Join(o.Dir, besideKind, "revocations.json"), time.Now(), o.Log)
}

// verifier is who decides which client certificates are good; nil when none is asked for.
func (s *Site) verifier() api.ClientCertificates {
	if s.clients == nil {
		return nil
	}
	return s.clients
}

// keepCertificates takes up renewed certificates until the site stops.
func (s *Site) keepCertificates(running context.Context, api, nats *certificate.Pair) {
	if s.clients != nil {
		s.parts.Go(func() { s.clients.Watch(running) })
	}
	for _, c := range []listenerCertificate{{apiListener, api}, {natsListener, nats}} {
		if c.Pair != nil {
			s.certificates = append(s.certificates, c)
			s.parts.Go(func() { c.Watch(running) })
		}
	}
}

// Reload reads the files of the certificates at once, and returns how many
// certificates of listeners there are. Everything else is watched, or read at the start alone.
func (s *Site) Reload() int {
	for _, c := range s.certificates {
		c.Look(time.Now())
	}
	if s.clients != nil {
		s.clients.Look(time.Now())
	}
	return len(s.certificates)
}

// expiries tells when the certificates end.
func (s *Site) expiries(now time.Time) []v1.Certificate {
	var all []v1.Certificate
	add := func(listener string, end time.Time) {
		all = append(all, v1.Certificate{Listener: listener, NotAfter: end.UTC(), DaysLeft: certificate.DaysLeft(end, now)})
	}
	for _, c := range s.certificates {
		add(c.listener, c.NotAfter())
	}
	if s.clients != nil {
		add(clientCA, s.clients.NotAfter())
	}
	return all
}
