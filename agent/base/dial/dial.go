// Package dial connects to addresses that a tenant has chosen, such as the URL of a webhook or
// of a check that runs at the site.
//
// A Rule decides which addresses are allowed: all but those of the site's own machine, of its
// link, and those at which clouds serve credentials, unless the site's configuration lists
// them. It judges the address of each connection just before the connection is made. So it
// makes no difference which names lead there, and what DNS said when somebody looked before.
package dial

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Flag is the flag of osupgrade-agent serve that lists local addresses.
const Flag = "--allow-local"

// Any is the entry of a list that allows all local addresses.
const Any = "any"

// Rule says which local addresses are allowed. The zero Rule allows none.
type Rule struct {
	any    bool
	listed []netip.AddrPort
}

// Parse reads a list of local addresses: address:port, localhost:port, or Any.
func Parse(list []string) (Rule, error) {
	var r Rule
	for _, entry := range list {
		if entry == Any {
			r.any = true
			continue
		}
		addresses, err := parse(entry)
		if err != nil {
			return Rule{}, fmt.Errorf("%q is not an address and a port; use one such as 127.0.0.1:9093 or localhost:9093, or %s", entry, Any)
		}
		r.listed = append(r.listed, addresses...)
	}
	return r, nil
}

func parse(entry string) ([]netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(entry)
	if err != nil {
		return nil, err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 {
		return nil, errors.New("not a port")
	}
	if host == "localhost" {
		return []netip.AddrPort{
			netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(number)),
			netip.AddrPortFrom(netip.IPv6Loopback(), uint16(number)),
		}, nil
	}
	address, err := netip.ParseAddr(host)
	return []netip.AddrPort{netip.AddrPortFrom(address.Unmap(), uint16(number))}, err
}

// LocalError is a connection that was not made, because its address is local and not listed.
type LocalError struct{ Address netip.AddrPort }

// Error implements error. It is the same whatever listens at the address.
func (e *LocalError) Error() string {
	return fmt.Sprintf("the site does not connect to %s, which is an address of its own machine, link-local, or one at which a cloud serves credentials; an administrator of the site can allow it with osupgrade-agent serve %[2]s %[1]s", e.Address, Flag)
}

// Check returns a LocalError for an address that is local and not allowed.
func (r Rule) Check(address netip.AddrPort) error {
	address = netip.AddrPortFrom(address.Addr().Unmap(), address.Port())
	if r.any || slices.Contains(r.listed, address) {
		return nil
	}
	local, err := isLocal(address.Addr())
	if err != nil {
		return fmt.Errorf("cannot list the addresses of this machine: %w", err)
	}
	if local {
		return &LocalError{Address: address}
	}
	return nil
}

// Explain says why a request has no answer. An error of the network, of the name or of the
// certificate tells it; any other repeats what came instead of HTTP, which may be from
// whatever listens there and is nobody's business.
func Explain(err error) string {
	if local, refused := errors.AsType[*LocalError](err); refused {
		return local.Error()
	}
	_, network := errors.AsType[net.Error](err)
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, record := errors.AsType[tls.RecordHeaderError](err)
	if network || certificate || record || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return err.Error()
	}
	return "the answer is not HTTP, or its header is too long; check the address, its port, and whether it is http or https"
}

// RetryAfter reads the header Retry-After, in seconds or as a time (RFC 9110 10.2.3). False
// means that it asks for nothing.
func RetryAfter(header string, now time.Time) (time.Duration, bool) {
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(0, at.Sub(now)), true
	}
	return 0, false
}

// metadata are the addresses that serve credentials to a machine in a cloud and are not
// link-local: of AWS, Azure, Alibaba and Oracle.
var metadata = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("168.63.129.16"),
	netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("192.0.0.192"),
}

// nat64 is the prefix behind which a gateway reaches the IPv4 address in the last 4 bytes
// (RFC 6052 2.1).
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// isLocal reports whether an address is one of this machine or of its link, or one of metadata,
// also behind nat64. The addresses of the machine are read each time, because they may change.
func isLocal(address netip.Addr) (bool, error) {
	address = address.WithZone("")
	if bytes := address.As16(); nat64.Contains(address) {
		address = netip.AddrFrom4([4]byte(bytes[12:]))
	}
	if address.IsLoopback() || address.IsUnspecified() || address.IsLinkLocalUnicast() || slices.Contains(metadata, address) {
		return true, nil
	}
	own, err := net.InterfaceAddrs()
	return slices.ContainsFunc(own, func(a net.Addr) bool {
		at, err := netip.ParsePrefix(a.String())
		return err == nil && at.Addr().Unmap() == address
	}), err
}

// Dialer returns a dialer that follows the rule.
func (r Rule) Dialer() *net.Dialer {
	return &net.Dialer{ControlContext: func(_ context.Context, network, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil || !strings.HasPrefix(network, "tcp") {
			return fmt.Errorf("cannot judge the address %s of network %s", address, network)
		}
		return r.Check(at)
	}}
}

// transport is an http.RoundTripper that follows a rule.
type transport struct {
	rule            Rule
	direct, proxied *http.Transport
}

// Transport returns an HTTP transport that follows the rule, and uses the proxy of the
// environment. with makes a transport that connects with a dialer and uses no proxy. The proxy
// is the choice of the site's administrator, so it may be local. It looks up names by itself, so
// the rule judges only the addresses in URLs there.
func (r Rule) Transport(with func(*net.Dialer) *http.Transport) http.RoundTripper {
	t := &transport{rule: r, direct: with(r.Dialer()), proxied: with(&net.Dialer{})}
	t.proxied.Proxy = http.ProxyFromEnvironment
	return t
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	proxy, err := http.ProxyFromEnvironment(r)
	switch {
	case err != nil:
		return nil, err
	case proxy == nil:
		return t.direct.RoundTrip(r)
	}
	if address, err := netip.ParseAddr(r.URL.Hostname()); err == nil {
		if err := t.rule.Check(netip.AddrPortFrom(address, port(r))); err != nil {
			return nil, err
		}
	}
	return t.proxied.RoundTrip(r)
}

// port is the port of a request's URL.
func port(r *http.Request) uint16 {
	if number, err := strconv.ParseUint(r.URL.Port(), 10, 16); err == nil {
		return uint16(number)
	}
	if r.URL.Scheme == "http" {
		return 80
	}
	return 443
}

// CloseIdleConnections is what http.Client calls.
func (t *transport) CloseIdleConnections() {
	t.direct.CloseIdleConnections()
	t.proxied.CloseIdleConnections()
}
