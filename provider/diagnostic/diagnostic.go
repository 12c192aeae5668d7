// Package diagnostic turns what the client says into diagnostics: what could
// not be done, for whom, what was asked of the server, what it answered, and
// what to do now.
//
// It decides the words. It never makes a request and never sees a secret.
package diagnostic

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// Failure is an operation on a tenant's object that could not be done.
type Failure struct {
	// Operation is the summary, such as "Unable to create osupgrade_config".
	Operation string
	Tenant    string
	Err       error
	// NotFound is what to do about a 404; empty for the usual advice.
	NotFound string
}

// Add appends the failure as errors. A problem of a field stands at the
// attribute that locate finds; a nil locate finds none.
func (f Failure) Add(diags *diag.Diagnostics, locate Locate) {
	diags.Append(f.diagnostics(locate)...)
}

// Warn appends the failure as one warning that begins with why.
func (f Failure) Warn(diags *diag.Diagnostics, why string) {
	diags.AddWarning(f.Operation, why+"\n\n"+f.detail(f.problems()))
}

func (f Failure) diagnostics(locate Locate) diag.Diagnostics {
	var located diag.Diagnostics
	var rest []v1.Error
	for _, problem := range f.problems() {
		if locate != nil {
			if at, ok := locate(problem.Info.Field); ok {
				located.AddAttributeError(at, f.Operation, "Attribute: "+at.String()+"\n"+f.detail([]v1.Error{problem}))
				continue
			}
		}
		rest = append(rest, problem)
	}
	if len(rest) > 0 || len(located) == 0 {
		located.AddError(f.Operation, f.detail(rest))
	}
	return located
}

func (f Failure) problems() []v1.Error {
	var answer *client.Error
	if errors.As(f.Err, &answer) {
		return answer.Errors
	}
	return nil
}

// detail is the text below the summary.
func (f Failure) detail(problems []v1.Error) string {
	var answer *client.Error
	if !errors.As(f.Err, &answer) {
		return fmt.Sprintf("Tenant: %s\nCause: %v\n\n%s", f.Tenant, f.Err, adviceWithoutAnswer(f.Err))
	}
	lines := []string{
		"Tenant: " + f.Tenant,
		"Request: " + answer.Method + " " + answer.Path,
		strings.TrimSpace(fmt.Sprintf("Status: %d %s", answer.Status, http.StatusText(answer.Status))),
	}
	for _, problem := range problems {
		lines = append(lines, "The server says: "+problem.Message)
	}
	return strings.Join(lines, "\n") + "\n\n" + f.advice(answer.Status)
}

func adviceWithoutAnswer(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "The time for it is over. Set a longer one in the attribute timeouts, or on the provider."
	}
	return "Check that the provider's endpoint is right, that it can be reached from here, and that the server is running."
}

func (f Failure) advice(status int) string {
	if status == http.StatusNotFound && f.NotFound != "" {
		return f.NotFound
	}
	return advice(status)
}

func advice(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "Check the provider's token, or the environment variable OSUPGRADE_TOKEN: the server does not accept it. It may have expired."
	case status == http.StatusForbidden:
		return "The token is not allowed to do this for this tenant. Use one that is, or name another tenant."
	case status == http.StatusNotFound:
		return "Check the name of the tenant and the provider's endpoint."
	case status == http.StatusPreconditionFailed:
		return "Something changed or is under way on the server. Plan again when it is over."
	case status == http.StatusTooManyRequests:
		return "The server asks for fewer requests. Try again later, or raise the provider's retries."
	case status == http.StatusServiceUnavailable:
		return "The server is not ready. Try again later; its own log tells why."
	case status >= http.StatusInternalServerError:
		return "The server failed. Its own log tells why."
	default:
		return "Correct what the server names and plan again."
	}
}
