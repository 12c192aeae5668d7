package site

import (
	"context"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/certificate"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// The listeners by the names that the API and the log use.
const (
	apiListener  = "api"
	natsListener = "nats"
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

// keepCertificates takes up renewed certificates until the site stops.
func (s *Site) keepCertificates(running context.Context, api, nats *certificate.Pair) {
	for _, c := range []listenerCertificate{{apiListener, api}, {natsListener, nats}} {
		if c.Pair != nil {
			s.certificates = append(s.certificates, c)
			s.parts.Go(func() { c.Watch(running) })
		}
	}
}

// Reload reads the files of the certificates at once, and returns how many
// certificates there are. Everything else is watched, or read at the start alone.
func (s *Site) Reload() int {
	for _, c := range s.certificates {
		c.Look(time.Now())
	}
	return len(s.certificates)
}

// expiries tells when the certificates end.
func (s *Site) expiries(now time.Time) []v1.Certificate {
	var all []v1.Certificate
	for _, c := range s.certificates {
		end := c.NotAfter()
		all = append(all, v1.Certificate{Listener: c.listener, NotAfter: end.UTC(), DaysLeft: certificate.DaysLeft(end, now)})
	}
	return all
}
