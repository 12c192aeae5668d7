// Package v1 holds the types of the REST API under /v1, as they stand on the
// wire in JSON and YAML, and the rules that a body must meet. The server, the
// client and the provider share it, so that all three mean the same thing.
//
// It decides whether a body is right and says what is wrong with it. It never
// talks to a network, a store or a clock.
package v1

import (
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
)

// MaxBody is the largest request body that the API reads, in bytes. A larger
// one is answered with 413.
const MaxBody = 1 << 20

// BodyTypes returns the content types of a request body.
func BodyTypes() []string {
	return []string{document.JSON, document.YAML, document.XYAML, document.TextYAML}
}

// JSONPatch is the content type of a list of changes (RFC 6902).
const JSONPatch = "application/json-patch+json"

// PatchTypes returns the content types of a body of PATCH.
func PatchTypes() []string { return append(BodyTypes(), document.MergePatch, JSONPatch) }

// Health is the answer of /healthz and /readyz when all is well.
type Health struct {
	Status string `json:"status"`
}

// ErrorBody is the body of every answer with a status of 400 and above.
type ErrorBody struct {
	Errors []Error `json:"errors"`
}

// Error is one problem. Official Avassa clients need both members.
type Error struct {
	Message string    `json:"error-message"`
	Info    ErrorInfo `json:"error-info"`
}

// ErrorInfo points a program at what is wrong.
type ErrorInfo struct {
	// Field is the path of the field, such as "maintenance-windows[0].start-time"; empty
	// when the problem is not about a field.
	Field string `json:"field,omitempty"`
	// Value is what the field held, as text.
	Value string `json:"value,omitempty"`
	// Run is the id of the run that prevents the request, if one does.
	Run uint64 `json:"run,omitempty"`
	// Frozen is set if that run freezes changes of the configuration until it ends.
	Frozen bool `json:"frozen,omitempty"`
	// Missing is the object that the tenant does not have, such as "rollout"; empty
	// when the problem is another one.
	Missing string `json:"missing,omitempty"`
	// Full is set if there are as many objects of the kind as there may be: the request
	// succeeds once one of them is deleted.
	Full bool `json:"full,omitempty"`
	// Choices are what the request may mean, if it names no environment and there are several.
	Choices []Choice `json:"choices,omitempty"`
}

// Choice is an environment that a request may mean.
type Choice struct {
	// Environment is its name: default has the hosts that are in no other.
	Environment string `json:"environment"`
	// Run is the id of its run, if one is in progress.
	Run uint64 `json:"run,omitempty"`
	// Command is the command that names it.
	Command string `json:"command"`
}

// Problem is one thing that is wrong with a body: its field, the value there as
// text, and a message that names the value and says what would be right.
type Problem = document.Problem

// Problems is an error that tells of everything that is wrong with a body.
type Problems = document.Problems

// Answer is the answer that tells a client of problems. Each message begins
// with the field, since not every client shows more than the message.
func Answer(p Problems) ErrorBody {
	body := ErrorBody{Errors: make([]Error, len(p))}
	for i, problem := range p {
		body.Errors[i] = Error{Message: problem.String(), Info: ErrorInfo{Field: problem.Field, Value: problem.Value}}
	}
	return body
}

// decode replaces the members of a value by those of a body, and validates the result.
// The content type is that of the request; an empty one means JSON. The error is
// Problems: those of the syntax, of unknown keys and of values together.
func decode[T any](contentType string, body []byte, over T, validate func(T) Problems) (T, error) {
	var none T
	d, err := document.Parse(contentType, body)
	if err != nil {
		return none, err
	}
	d.Root().Fill(&over)
	if err := d.Err(validate(over)...); err != nil {
		return none, err
	}
	return over, nil
}
