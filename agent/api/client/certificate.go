package client

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"sync/atomic"
)

// clientCertificate is the certificate of a client, which a server may ask for.
type clientCertificate struct {
	certificate tls.Certificate
	asked       atomic.Bool
}

// parseClientCertificate reads a client certificate and its key; nil if there is neither. No
// error shows anything of the key.
func parseClientCertificate(cert, key []byte) (*clientCertificate, error) {
	switch {
	case len(cert) == 0 && len(key) == 0:
		return nil, nil
	case len(cert) == 0:
		return nil, errors.New("there is the key of a client certificate and not the certificate; set both or neither")
	case len(key) == 0:
		return nil, errors.New("there is a client certificate and not its private key; set both or neither")
	case bytes.Contains(key, []byte("ENCRYPTED")):
		return nil, errors.New("the key of the client certificate is encrypted, and nobody is asked for its passphrase; decrypt it with openssl pkey, into a file that only you can read")
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("the client certificate and its key do not belong together, or cannot be read (both are PEM): %w", err)
	}
	return &clientCertificate{certificate: pair}, nil
}

// present is tls.Config.GetClientCertificate. The certificate is sent to each server that asks
// for one, also if it is of none of the authorities that the server names: its answer says
// what is wrong, and without one nobody would.
func (c *clientCertificate) present(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	c.asked.Store(true)
	return &c.certificate, nil
}

// errNotAsked means that the server refuses a request, and knows nothing of the certificate.
var errNotAsked = errors.New("the server does not ask for a client certificate, and there is no token; have the site take certificates (osupgrade-agent serve --client-ca-file), or use a token. " +
	"A proxy before the site keeps them from it")
