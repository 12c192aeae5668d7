package site

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/port"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/certificate"
)

// maxCallers is the number of open connections to the REST API: those that follow
// events stay open.
const maxCallers = 4096

// Endpoint is an address to listen on, with the certificate that is needed
// beyond loopback.
type Endpoint struct {
	// Listen is host:port; port 0 takes any that is free.
	Listen string
	// CertFile and KeyFile are PEM files; both or neither.
	CertFile, KeyFile string
}

// certificate loads the certificate of the endpoint; nil means plain text, which is
// allowed on loopback alone. name is what the log calls the endpoint, prefix
// precedes the names of its options in errors.
func (e Endpoint) certificate(name, prefix string, log *slog.Logger) (*certificate.Pair, error) {
	cert, key := prefix+"tls-cert", prefix+"tls-key"
	if (e.CertFile == "") != (e.KeyFile == "") {
		return nil, fmt.Errorf("%s and %s belong together; set both or neither", cert, key)
	}
	local, err := loopback(e.Listen)
	if err != nil {
		return nil, fmt.Errorf("%slisten %w", prefix, err)
	}
	if e.CertFile == "" {
		if !local {
			return nil, fmt.Errorf("%slisten %q is reachable from other machines; set %s and %s, make a certificate with osupgrade-agent init, or listen on 127.0.0.1", prefix, e.Listen, cert, key)
		}
		return nil, nil
	}
	pair, err := certificate.Load(name, e.CertFile, e.KeyFile, time.Now(), log)
	if err != nil {
		return nil, fmt.Errorf("cannot load %s and %s: %w", cert, key, err)
	}
	return pair, nil
}

// apiTLS returns the settings of the listener of the REST API; nil means plain text. It asks
// for client certificates if there are authorities whose certificates are good.
func apiTLS(pair *certificate.Pair, clients *certificate.Authorities) *tls.Config {
	config := tlsConfig(pair)
	if config == nil {
		return nil
	}
	config.NextProtos = []string{"h2", "http/1.1"}
	if clients != nil {
		config = clients.Ask(config)
	}
	return config
}

// tlsConfig returns the settings of a listener that presents a certificate; nil
// means plain text.
func tlsConfig(pair *certificate.Pair) *tls.Config {
	if pair == nil {
		return nil
	}
	return &tls.Config{GetCertificate: pair.Get, MinVersion: tls.VersionTLS12}
}

// loopback reports whether only this machine reaches an address. An empty address
// is an error: net.Listen would take any port on all interfaces.
func loopback(listen string) (bool, error) {
	host, number, err := net.SplitHostPort(listen)
	if err == nil {
		_, err = strconv.ParseUint(number, 10, 16)
	}
	if err != nil {
		return false, fmt.Errorf("%q is not host:port; use an address and a port from 0 to 65535", listen)
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback(), nil
}

// listen listens on the address.
func (e Endpoint) listen(ctx context.Context, config *tls.Config) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", e.Listen)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %q: %w", e.Listen, port.Explain(e.Listen, err))
	}
	if config != nil {
		return tls.NewListener(listener, config), nil
	}
	return listener, nil
}
