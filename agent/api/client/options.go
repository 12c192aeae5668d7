package client

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"unicode"
)

// settings are options that were found right, with their defaults filled in.
type settings struct {
	Options
	endpoint endpoint
	// token is empty if the client logs in, or has nothing but a certificate.
	token string
	// certificate is nil if the client has none.
	certificate *clientCertificate
	secret      *secret
	tls         *tls.Config
}

// endpoint is the base address of the API.
type endpoint struct{ *url.URL }

func (o Options) check() (settings, error) {
	s := settings{Options: o}
	var problems [6]error
	s.endpoint, problems[0] = parseEndpoint(o.Endpoint)
	s.certificate, problems[5] = parseClientCertificate(o.ClientCertPEM, o.ClientKeyPEM)
	switch alone := s.Transport != nil || len(o.ClientCertPEM) > 0 && strings.TrimSpace(o.Token) == ""; {
	case o.Login != nil:
		var login Credentials
		login, problems[1] = o.Login.check()
		s.Login = &login
	case s.Transport != nil:
	case alone && s.endpoint.URL != nil && s.endpoint.Scheme != "https":
		problems[1] = errors.New("there is a client certificate and no token, and the endpoint is http, which knows no certificates; use https, or a token")
	case !alone:
		s.token, problems[1] = parseToken(o.Token)
	}
	s.secret = newSecret(s.token)
	if s.tls, problems[2] = tlsConfig(o.CACertPEM, o.Insecure); s.tls != nil && s.certificate != nil {
		s.tls.GetClientCertificate = s.certificate.present
	}
	switch {
	case o.Timeout < 0:
		problems[3] = fmt.Errorf("timeout %s is negative; use a positive duration, or 0 for %s", o.Timeout, defaultTimeout)
	case o.Timeout == 0:
		s.Timeout = defaultTimeout
	}
	if o.Retries == 0 {
		s.Retries = defaultRetries
	}
	s.Retries = max(s.Retries, 0)
	if strings.ContainsFunc(o.UserAgent, unicode.IsControl) {
		problems[4] = fmt.Errorf("user agent %q holds a control character; leave it out", o.UserAgent)
	}
	return s, errors.Join(problems[:]...)
}

// parseEndpoint never shows what could be a password: a text with an "@" is
// not repeated, nor is the parser's cause, which quotes a piece of it.
func parseEndpoint(text string) (endpoint, error) {
	const right = `use an absolute address such as "https://api.example.com"`
	shown := fmt.Sprintf("endpoint %q", text)
	if strings.Contains(text, "@") {
		shown = "endpoint"
	}
	u, err := url.Parse(strings.TrimSpace(text))
	switch {
	case text == "":
		return endpoint{}, errors.New("endpoint is empty; " + right)
	case err != nil:
		return endpoint{}, fmt.Errorf("%s is not a URL; %s", shown, right)
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return endpoint{}, fmt.Errorf("%s is not an absolute http or https URL; %s", shown, right)
	case u.User != nil:
		return endpoint{}, errors.New("endpoint holds a user name or password; leave it out and use the token")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return endpoint{}, fmt.Errorf("%s has a query or a fragment; leave it out", shown)
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = ""
	return endpoint{u}, nil
}

// at is the address of a path below the endpoint. The path is percent-encoded.
func (e endpoint) at(path string, query url.Values) string {
	address := e.String() + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	return address
}

// parseToken trims the token, as a trailing newline from a file would make Go
// refuse the header at each request.
func parseToken(text string) (string, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return "", errors.New("token is empty; use the bearer token of a login")
	}
	for _, r := range text {
		if r > unicode.MaxASCII || unicode.IsControl(r) || unicode.IsSpace(r) {
			return "", errors.New("token holds a blank, a control character or one that is not ASCII; check that it was copied whole and alone")
		}
	}
	return text, nil
}

func tlsConfig(caCertPEM []byte, insecure bool) (*tls.Config, error) {
	// Insecure is the user's own choice; the provider and the command line warn.
	c := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: insecure}
	if len(caCertPEM) == 0 {
		return c, nil
	}
	c.RootCAs = x509.NewCertPool()
	if !c.RootCAs.AppendCertsFromPEM(caCertPEM) {
		return nil, errors.New(`CA certificates hold no certificate that can be read; use PEM text that begins with "-----BEGIN CERTIFICATE-----"`)
	}
	return c, nil
}

// loopback reports whether host is this machine by its very name.
func loopback(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}
