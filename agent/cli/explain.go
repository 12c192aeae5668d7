package cli

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
)

// needsHTTPS is what a server of HTTPS answers to HTTP (net/http).
const needsHTTPS = "Client sent an HTTP request to an HTTPS server"

// explain tells an error to who typed a command: first what is wrong, and the
// request at the end for who looks into it.
func explain(err error) string {
	if refused, ok := errors.AsType[*client.Error](err); ok {
		var messages []string
		for _, one := range refused.Errors {
			messages = append(messages, one.Message)
		}
		text := strings.Join(messages, "; ")
		if strings.Contains(text, needsHTTPS) {
			text = "the agent speaks HTTPS there; give --endpoint https://…"
		}
		if refused.Status == http.StatusNotFound && len(refused.Errors) > 0 && refused.Errors[0].Info.Field == "tenant" {
			text += "; osupgrade-agent tenant list shows those there are"
		}
		if client.Sealed(err) && !strings.Contains(text, "osupgrade-agent") { // Avassa's says no more.
			text += "; " + client.Unsealing
		}
		return fmt.Sprintf("%s (%s %s: %d %s)", text, refused.Method, refused.Path, refused.Status, http.StatusText(refused.Status))
	}
	call, ok := errors.AsType[*client.CallError](err)
	if !ok {
		return err.Error()
	}
	text := call.Reason
	if _, ok := errors.AsType[net.Error](err); ok {
		text = "cannot reach the REST API: " + text
	}
	text += otherName(err)
	switch {
	case errors.Is(err, unix.ECONNREFUSED) && call.Path == joinPath:
		text += "; nothing listens there: start the agent of the site, or give its address with --site"
	case errors.Is(err, unix.ECONNREFUSED):
		text += "; nothing listens there: start the agent, or give its address with --endpoint or the variable OSUPGRADE_ENDPOINT"
	case errors.Is(err, http.ErrSchemeMismatch) && call.Path == joinPath:
		text += "; the site speaks HTTP there: give --site http://…"
	case errors.Is(err, http.ErrSchemeMismatch):
		text += "; the agent speaks HTTP there: give --endpoint http://…"
	}
	return fmt.Sprintf("%s (%s %s)", text, call.Method, call.Path)
}

// joinPath is the path of a join. The command for it, worker join, has --site in place of --endpoint.
const joinPath = "/v1/join"

// otherName returns what to do about a site that was called by a name or address which its
// certificate does not have; nothing for other errors.
func otherName(err error) string {
	var wrong x509.HostnameError
	if !errors.As(err, &wrong) {
		return ""
	}
	var names []string
	for _, name := range wrong.Certificate.DNSNames {
		if name != "localhost" { // It has that, and the addresses of loopback, whatever is asked for.
			names = append(names, name)
		}
	}
	for _, ip := range wrong.Certificate.IPAddresses {
		if !ip.IsLoopback() {
			names = append(names, ip.String())
		}
	}
	return fmt.Sprintf("; use a name of the certificate, or make one for all names on the site: osupgrade-agent init --name %s", strings.Join(append(names, wrong.Host), " --name "))
}
