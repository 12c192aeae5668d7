// Package diagnostics turns an error of the client into diagnostics: the failed
// operation, the tenant, the request, the server's answer, and what to do next.
//
// It decides the text. It never makes a request and never sees a secret.
package diagnostics

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Failure is a failed operation on an object of a tenant.
type Failure struct {
	// Operation is the summary, such as "Unable to create osupgrade_config".
	Operation string
	Tenant    string
	Err       error
	// NotFound is the advice for a 404, Refused that for a 412; empty means the usual
	// advice.
	NotFound, Refused string
}

// Add adds the failure as errors. A problem of a field is reported at the
// attribute that locate returns; a nil locate returns none.
func (f Failure) Add(diags *diag.Diagnostics, locate Locate) {
	diags.Append(f.diagnostics(locate)...)
}

// Warn adds the failure as one warning that begins with why.
func (f Failure) Warn(diags *diag.Diagnostics, why string) {
	diags.AddWarning(f.Operation, why+"\n\n"+f.detail(f.problems()))
}

func (f Failure) diagnostics(locate Locate) diag.Diagnostics {
	var located diag.Diagnostics
	var rest []v1.Error
	for _, problem := range f.problems() {
		if locate != nil {
			if at, ok := locate(problem.Info.Field); ok {
				located.AddAttributeError(at, f.Operation, "Attribute: "+Attribute(at)+"\n"+f.detail([]v1.Error{problem}))
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
	var login *client.LoginError
	if errors.As(f.Err, &login) {
		return fmt.Sprintf("Tenant: %s\nCause: %s\n\n%s", f.Tenant, HCL(f.Err.Error()), loginAdvice(login))
	}
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
		lines = append(lines, "The server says: "+HCL(problem.Message))
	}
	return strings.Join(lines, "\n") + "\n\n" + f.advice(answer.Status)
}

func adviceWithoutAnswer(err error) string {
	switch {
	case errors.Is(err, context.Canceled):
		return "The operation was interrupted. Plan again to see what was done."
	case errors.Is(err, context.DeadlineExceeded):
		return "The operation timed out. Set a longer timeout in the attribute timeouts or on the provider."
	}
	return "Check the provider's endpoint, that it can be reached from here, and that the server is running."
}

func (f Failure) advice(status int) string {
	switch {
	case client.Sealed(f.Err):
		return sealed
	case client.Frozen(f.Err):
		return frozen
	case f.adviceOnEnvironment() != "":
		return f.adviceOnEnvironment()
	case status == http.StatusNotFound && f.NotFound != "":
		return f.NotFound
	case status == http.StatusNotFound && f.reads() && client.Missing(f.Err):
		return "The tenant exists, but not what was asked for. Check its name or id. A server deletes old runs from its history."
	case status == http.StatusPreconditionFailed && f.Refused != "":
		return f.Refused
	}
	return advice(status)
}

// adviceOnEnvironment is the advice for a request that omits the environment although there are
// several, or names one that does not exist; empty for any other.
func (f Failure) adviceOnEnvironment() string {
	for _, problem := range f.problems() {
		switch info := problem.Info; {
		case len(info.Choices) > 0:
			return "Set the attribute environment to one of the environments that the server names."
		case info.Field == "environment" && info.Missing != "":
			return "Check the attribute environment. If the same apply creates the environment, use the attribute name of its osupgrade_environment instead of the bare name, so that Terraform creates it first."
		}
	}
	return ""
}

// sealed is the advice when the site is sealed.
const sealed = "The site is sealed: until its strongbox is opened, it answers nothing else. Unseal it with osupgrade-agent unseal on any machine that reaches it, and run Terraform again."

// frozen is the advice while a run freezes changes.
const frozen = "Nothing was written. Apply again when the run has ended. What only holds runs can be applied now, alone, with -target: a new freeze, or paused of a rollout."

// reads reports whether the request that failed was a read.
func (f Failure) reads() bool {
	var answer *client.Error
	return errors.As(f.Err, &answer) && answer.Method == http.MethodGet
}

func advice(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "Check the provider's token or the environment variable OSUPGRADE_TOKEN: the server does not accept the token. It may have expired."
	case status == http.StatusForbidden:
		return "The token does not permit this operation for this tenant. Use another token or another tenant."
	case status == http.StatusNotFound:
		return "Check the name of the tenant and the provider's endpoint."
	case status == http.StatusPreconditionFailed:
		return "The object has changed on the server, or a run is in progress. Plan again, after the run if there is one."
	case status == http.StatusTooManyRequests:
		return "The server limits the rate of requests. Try again later, or raise the provider's retries."
	case status == http.StatusServiceUnavailable:
		return "The server is not ready. Try again later; the server's log has the reason."
	case status >= http.StatusInternalServerError:
		return "The server failed. Its log has the reason."
	default:
		return "Correct the problems named by the server and plan again."
	}
}

// Locate returns the attribute of a field of the API, such as
// maintenance_windows[0].start_time for "maintenance-windows[0].start-time".
type Locate func(field string) (path.Path, bool)

// Field is the usual Locate: hyphens become underscores and indexes those of a
// list. It reports false for a text that is not the path of a field.
func Field(field string) (path.Path, bool) {
	at := path.Empty()
	for part := range strings.SplitSeq(field, ".") {
		name, indexes, indexed := strings.Cut(part, "[")
		if !isName(name) || indexed && indexes == "" {
			return path.Empty(), false
		}
		at = at.AtName(strings.ReplaceAll(name, "-", "_"))
		for indexes != "" {
			index, rest, closed := strings.Cut(indexes, "]")
			i, err := strconv.ParseUint(index, 10, 31)
			next, another := strings.CutPrefix(rest, "[")
			if err != nil || !closed || another == (next == "") {
				return path.Empty(), false
			}
			at = at.AtListIndex(int(i))
			indexes = next
		}
	}
	return at, true
}

func isName(text string) bool {
	for _, r := range text {
		if r != '-' && (r < 'a' || r > 'z') {
			return false
		}
	}
	return text != ""
}
