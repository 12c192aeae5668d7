package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Error is an answer with a status of 400 and above.
type Error struct {
	Method, Path string
	Status       int
	// Errors is never empty: a body in no known form becomes one entry with
	// its first 300 characters.
	Errors []v1.Error
	// foreign is set when the body was in no known form: perhaps not the API
	// answered, but something on the way to it.
	foreign bool
}

// Error names the request, the status and each of the server's messages.
func (e *Error) Error() string {
	messages := make([]string, 0, len(e.Errors))
	for _, one := range e.Errors {
		messages = append(messages, one.Message)
	}
	return fmt.Sprintf("cannot %s %s: %s: %s", e.Method, e.Path, statusText(e.Status), strings.Join(messages, "; "))
}

// CallError is a call that brought no usable answer: no answer at all, a
// redirect, or a body that is not what belongs there.
type CallError struct {
	Method, Path string
	// Reason is what went wrong, without the request and without the token.
	Reason string
	// stopped is set when the caller ended a call that was under way.
	stopped bool
	cause   error
}

// Error names the request and the reason.
func (e *CallError) Error() string {
	verb := ""
	if e.stopped {
		verb = " any longer"
	}
	return fmt.Sprintf("cannot %s %s%s: %s", e.Method, e.Path, verb, e.Reason)
}

// Unwrap gives the cause for errors.Is and errors.As. Its text may contain the
// token; Reason does not.
func (e *CallError) Unwrap() error { return e.cause }

// HasStatus reports whether err is an *Error with that HTTP status.
func HasStatus(err error, status int) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Status == status
}

// Sealed reports whether err says that the site is sealed: it answers nothing before a
// person has unsealed it.
func Sealed(err error) bool {
	e, ok := errors.AsType[*Error](err)
	if login, failed := errors.AsType[*LoginError](err); failed && login.Answer != nil {
		e, ok = login.Answer, true
	}
	return ok && e.Status == http.StatusServiceUnavailable && strings.HasPrefix(e.Errors[0].Message, v1.StrongboxSealed)
}

// Unsealing is what to do about it.
const Unsealing = "unseal the site with osupgrade-agent unseal, and try again"

// sealedAnswer reports whether an answer says so. It leaves the body to be read.
func sealedAnswer(resp *http.Response, s *secret) bool {
	body, err := io.ReadAll(resp.Body)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return err == nil && Sealed(newError("", "", resp.StatusCode, body, s))
}

// Missing reports whether err says that the object is not there: a 404 in the
// API's own form that is not about the tenant. A 404 of a proxy, or of a mistyped
// tenant, must not make anybody forget an object that exists. The agent names the tenant
// in error-info. What another server has there is not documented, so of an answer without
// it the text decides, here alone; and whoever forgets something because of a text that it
// does not know looks further (tenantobject).
func Missing(err error) bool {
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Status != http.StatusNotFound || e.foreign {
		return false
	}
	switch first := e.Errors[0]; first.Info.Field {
	case "tenant":
		return false
	case "":
		return !strings.HasPrefix(first.Message, "tenant ") || !strings.Contains(first.Message, "does not exist")
	default:
		return true
	}
}

// Full reports whether err says that there are as many objects of the kind as there may be. That
// is no fault of the request: it succeeds once another object is deleted.
func Full(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Errors[0].Info.Full
}

// Frozen reports whether the server refused a change because a run freezes changes until it ends.
func Frozen(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Errors[0].Info.Frozen
}

// excerptLength is how much of a body in no known form is shown, in
// characters.
const excerptLength = 300

// newError reads an error body of Avassa's shape; what is in
// error-info differs between servers, so each member counts when it fits.
func newError(method, path string, status int, body []byte, s *secret) *Error {
	e := &Error{Method: method, Path: path, Status: status}
	var known struct {
		Errors []struct {
			Message string          `json:"error-message"`
			Info    json.RawMessage `json:"error-info"`
		} `json:"errors"`
	}
	if json.Unmarshal(body, &known) == nil {
		for _, one := range known.Errors {
			e.Errors = append(e.Errors, v1.Error{Message: s.clean(one.Message), Info: readInfo(one.Info, s)})
		}
	}
	if len(e.Errors) == 0 {
		e.foreign = true
		e.Errors = []v1.Error{{Message: excerpt(body, s)}}
	}
	return e
}

func readInfo(raw json.RawMessage, s *secret) v1.ErrorInfo {
	var info v1.ErrorInfo
	// An error leaves out what does not fit, another server's own, and keeps
	// the rest.
	_ = json.Unmarshal(raw, &info)
	info.Field, info.Value, info.Missing = s.clean(info.Field), s.clean(info.Value), s.clean(info.Missing)
	return info
}

// excerpt is the beginning of a body for people to read.
func excerpt(body []byte, s *secret) string {
	text := s.clean(string(body))
	if text == "" {
		return "the answer has no text"
	}
	if utf8.RuneCountInString(text) > excerptLength {
		text = string([]rune(text)[:excerptLength]) + "…"
	}
	return text
}

// statusText is a status with its name, if it has one.
func statusText(status int) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", status, http.StatusText(status)))
}
