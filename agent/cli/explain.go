package cli

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client"
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
	switch {
	case errors.Is(err, unix.ECONNREFUSED):
		text += "; no agent listens there: start one, or give --endpoint"
	case errors.Is(err, http.ErrSchemeMismatch):
		text += "; the agent speaks HTTP there: give --endpoint http://…"
	}
	return fmt.Sprintf("%s (%s %s)", text, call.Method, call.Path)
}
