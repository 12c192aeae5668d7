package check

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// dialer is that of all checks and hooks.
var dialer net.Dialer

// transport is net/http's own, but for servers that speak before they are
// asked, such as one of ssh: net/http prints what they say to standard error,
// and its error is none. Here they are not heard before there is a request.
var transport = sync.OnceValue(func() *http.Transport {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return politely(dialer.DialContext(ctx, network, address))
		},
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return politely((&tls.Dialer{NetDialer: &dialer}).DialContext(ctx, network, address))
		},
	}
})

// polite is a connection on which the other side is not heard before this one
// has spoken.
type polite struct {
	net.Conn
	spoken chan struct{}
	speak  func()
}

func politely(conn net.Conn, err error) (net.Conn, error) {
	if err != nil {
		return nil, err
	}
	spoken := make(chan struct{})
	return &polite{Conn: conn, spoken: spoken, speak: sync.OnceFunc(func() { close(spoken) })}, nil
}

// Read implements net.Conn.
func (p *polite) Read(b []byte) (int, error) {
	<-p.spoken
	return p.Conn.Read(b)
}

// Write implements net.Conn.
func (p *polite) Write(b []byte) (int, error) {
	p.speak()
	return p.Conn.Write(b)
}

// Close implements net.Conn.
func (p *polite) Close() error {
	p.speak()
	return p.Conn.Close()
}
