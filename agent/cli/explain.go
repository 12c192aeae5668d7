package cli

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client"
)

// explain tells an error to who typed a command: first what is wrong, and the
// request at the end for who looks into it.
func explain(err error) string {
	if refused, ok := errors.AsType[*client.Error](err); ok {
		var messages []string
		for _, one := range refused.Errors {
			messages = append(messages, one.Message)
		}
		return fmt.Sprintf("%s (%s %s: %d %s)", strings.Join(messages, "; "),
			refused.Method, refused.Path, refused.Status, http.StatusText(refused.Status))
	}
	call, ok := errors.AsType[*client.CallError](err)
	if !ok {
		return err.Error()
	}
	text := call.Reason
	if _, ok := errors.AsType[net.Error](err); ok {
		text = "cannot reach the REST API: " + text
	}
	return fmt.Sprintf("%s (%s %s)", text, call.Method, call.Path)
}
