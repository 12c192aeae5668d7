package v1

import "github.com/osupgrade/terraform-provider-osupgrade/agent/document"

// Problem is one thing that is wrong with a body: its field, the value there as
// text, and a message that names the value and says what would be right.
type Problem = document.Problem

// Problems is an error that tells of everything that is wrong with a body.
type Problems []Problem

// Error returns all problems, separated by semicolons.
func (p Problems) Error() string { return document.Problems(p).Error() }

// under returns the problems with their fields below another.
func (p Problems) under(field string) Problems {
	below := make(Problems, len(p))
	for i, problem := range p {
		problem.Field = field + "." + problem.Field
		below[i] = problem
	}
	return below
}

// Body returns the answer that tells a client of the problems. Each message
// begins with the field, since not every client shows more than the message.
func (p Problems) Body() ErrorBody {
	body := ErrorBody{Errors: make([]Error, len(p))}
	for i, problem := range p {
		body.Errors[i] = Error{Message: problem.String(), Info: ErrorInfo{Field: problem.Field, Value: problem.Value}}
	}
	return body
}
