package api

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/strongbox"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// answer is an error with its HTTP answer.
type answer struct {
	status int
	body   v1.ErrorBody
	// kind is what the FleetLock protocol calls the error; empty for what its status says.
	kind string
}

// Error implements error.
func (a *answer) Error() string {
	return fmt.Sprintf("%d %s", a.status, a.body.Errors[0].Message)
}

// problem returns an answer with one error, of a field if that is not empty.
func problem(status int, field, value, format string, args ...any) error {
	return &answer{status: status, body: v1.ErrorBody{Errors: []v1.Error{{
		Message: fmt.Sprintf(format, args...), Info: v1.ErrorInfo{Field: field, Value: value},
	}}}}
}

// missing returns an answer that an object of that name does not exist.
func missing(object, format string, args ...any) error {
	return &answer{status: http.StatusNotFound, body: v1.ErrorBody{Errors: []v1.Error{{
		Message: fmt.Sprintf(format, args...), Info: v1.ErrorInfo{Missing: object},
	}}}}
}

// shortened is a value of a request as an error shows it: a long one would make an answer
// as long as the request.
func shortened(value string) string { return text.Cut(value, 200, "...") }

// badRequest returns an answer that names a field, its value and the reason.
func badRequest(field, value, right string) error {
	if value = shortened(value); value == "" {
		return problem(http.StatusBadRequest, field, value, "%s: %s", field, right)
	}
	return problem(http.StatusBadRequest, field, value, "%s: %q %s", field, value, right)
}

// retryAfter is how many seconds a client should wait after a 503.
const retryAfter = "2"

// fail answers a request with an error.
func (s *server) fail(w http.ResponseWriter, c *call, err error) {
	s.answer(w, c, s.classify(c.Request, err))
}

func (s *server) answer(w http.ResponseWriter, c *call, a *answer) {
	switch a.status {
	case http.StatusServiceUnavailable:
		after := retryAfter
		if strings.HasPrefix(a.body.Errors[0].Message, v1.StrongboxSealed) {
			after = sealedRetry
		}
		w.Header().Set("Retry-After", after)
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", strconv.Itoa(int(attemptsEach/time.Second)))
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Bearer realm="osupgrade"`)
	}
	if c.route.isFleetLock() {
		s.sendFleetLock(w, a)
		return
	}
	s.send(w, c.Request, a.status, a.body)
}

// classify turns any error into an answer.
func (s *server) classify(r *http.Request, err error) *answer {
	var made *answer
	var problems v1.Problems
	var refused *run.Refused
	var partly *run.Partly
	var ambiguous *run.Ambiguous
	var nowhere *run.NoEnvironment
	var tooLarge *http.MaxBytesError
	var wrong *principal.WrongError
	switch {
	case errors.As(err, &made):
		return made
	case errors.As(err, &problems) && len(problems) == 1 && problems[0].Field == "Content-Type":
		return &answer{status: http.StatusUnsupportedMediaType, body: v1.Answer(problems)}
	case errors.As(err, &problems):
		return &answer{status: http.StatusBadRequest, body: v1.Answer(problems)}
	case errors.As(err, &wrong):
		return &answer{status: http.StatusBadRequest, body: v1.ErrorBody{Errors: []v1.Error{{Message: wrong.Error(), Info: v1.ErrorInfo{Field: wrong.Field}}}}}
	case errors.As(err, &partly):
		return s.partly(r, partly)
	case errors.As(err, &ambiguous):
		return &answer{status: http.StatusConflict, body: v1.ErrorBody{Errors: []v1.Error{{
			Message: ambiguous.Message, Info: v1.ErrorInfo{Choices: ambiguous.Choices},
		}}}}
	case errors.As(err, &nowhere):
		return &answer{status: http.StatusNotFound, body: v1.ErrorBody{Errors: []v1.Error{{
			Message: nowhere.Error(), Info: v1.ErrorInfo{Field: "environment", Value: nowhere.Name, Missing: "environment/" + nowhere.Name},
		}}}}
	case errors.As(err, &refused):
		return &answer{status: http.StatusPreconditionFailed, body: v1.ErrorBody{Errors: []v1.Error{{
			Message: refused.Message, Info: v1.ErrorInfo{Run: refused.Run, Frozen: refused.Frozen},
		}}}}
	case errors.As(err, &tooLarge):
		return plain(http.StatusRequestEntityTooLarge, fmt.Errorf("the body is larger than %d bytes", tooLarge.Limit))
	case format.IsUnsupported(err):
		return plain(http.StatusInternalServerError, fmt.Errorf("%w; start a version that reads it", err))
	case errors.Is(err, store.ErrFull):
		return &answer{status: http.StatusBadRequest, body: v1.ErrorBody{Errors: []v1.Error{{Message: err.Error(), Info: v1.ErrorInfo{Full: true}}}}}
	case errors.Is(err, ErrTooManyTenants):
		return plain(http.StatusBadRequest, err)
	case errors.Is(err, run.ErrNoRun), errors.Is(err, run.ErrNoHealth), errors.Is(err, run.ErrNotConfigured), errors.Is(err, store.ErrNotFound):
		return plain(http.StatusNotFound, err)
	case errors.Is(err, store.ErrConflict):
		return plain(http.StatusPreconditionFailed, err)
	}
	if errors.Is(err, principal.ErrDamagedUser) || errors.Is(err, principal.ErrDamagedApprole) || errors.Is(err, principal.ErrDamagedPolicy) {
		return plain(http.StatusInternalServerError, err)
	}
	if errors.Is(err, principal.ErrBusy) {
		return plain(http.StatusServiceUnavailable, err)
	}
	if sealed, ok := errors.AsType[*strongbox.SealedError](err); ok {
		return plain(http.StatusServiceUnavailable, fmt.Errorf("%s: %s", v1.StrongboxSealed, sealed.Why))
	}
	// Any other error means that a part of the agent does not answer.
	if !errors.Is(err, run.ErrNotReady) && r.Context().Err() == nil {
		s.Log.Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	}
	return plain(http.StatusServiceUnavailable, err)
}

// partly returns the answer to a request of several runs that failed in some environments: an error
// for each of these, and the status of the first.
func (s *server) partly(r *http.Request, p *run.Partly) *answer {
	all := &answer{}
	for _, f := range p.Failed {
		one := s.classify(r, f.Err)
		all.status = cmp.Or(all.status, one.status)
		for _, e := range one.body.Errors {
			e.Message = fmt.Sprintf("environment %s: %s", f.Environment, e.Message)
			e.Info.Field, e.Info.Value = "environment", f.Environment
			all.body.Errors = append(all.body.Errors, e)
		}
	}
	all.body.Errors[0].Message = p.Error()
	return all
}

func plain(status int, err error) *answer {
	return &answer{status: status, body: v1.ErrorBody{Errors: []v1.Error{{Message: err.Error()}}}}
}

// send writes a value in the format of the Accept header.
func (s *server) send(w http.ResponseWriter, r *http.Request, status int, value any) {
	out := &statusFirst{w: w, status: status, contentType: v1.Preferred(r.Header.Get("Accept"))}
	switch err := v1.Write(out, out.contentType, value); {
	case err != nil && !out.sent:
		s.Log.Error("cannot encode an answer", "path", r.URL.Path, "error", err)
		w.WriteHeader(http.StatusInternalServerError)
	case err != nil:
		s.Log.Debug("the client is gone", "path", r.URL.Path, "error", err)
	}
}

// statusFirst sends the status of an answer and its content type before its body.
type statusFirst struct {
	w           http.ResponseWriter
	status      int
	contentType string
	sent        bool
}

// Write implements io.Writer.
func (a *statusFirst) Write(part []byte) (int, error) {
	if !a.sent {
		a.sent = true
		a.w.Header().Set("Content-Type", a.contentType)
		a.w.WriteHeader(a.status)
	}
	return a.w.Write(part)
}
