package document

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	clip "github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
)

// maxProblems bounds the problems that are reported of one document: nobody reads more,
// and a response must not be larger than the request body.
const maxProblems = 100

// Problem is one thing that is wrong.
type Problem struct {
	// Field is the path, such as "maintenance-windows[0].start-time"; empty
	// when the problem is one of the whole document.
	Field string
	// Value is what the field holds, as text; long ones are cut.
	Value string
	// Message names the value and says what would be right.
	Message string
}

// String returns the field and the message.
func (p Problem) String() string {
	if p.Field == "" {
		return p.Message
	}
	return p.Field + ": " + p.Message
}

// Wrong is the problem of a value; the message is about the value, which goes
// first.
func Wrong(field, value, message string) Problem {
	return Problem{Field: field, Value: Clip(value), Message: quote(value) + " " + message}
}

// TooMany is the problem of a list that is too long.
func TooMany(field string, count, most int) Problem {
	return Problem{Field: field, Value: strconv.Itoa(count), Message: fmt.Sprintf("%d entries are too many; use at most %d", count, most)}
}

// OutOfRange is the problem of a number.
func OutOfRange(field string, n, least, most int) Problem {
	return Problem{Field: field, Value: strconv.Itoa(n), Message: fmt.Sprintf("%d is out of range; use %d to %d", n, least, most)}
}

// NoneOf is the problem of a text that is not one of the possible texts.
func NoneOf(field, value string, possible ...string) Problem {
	last := len(possible) - 1
	message := "is invalid; use " + strings.Join(possible[:last], ", ") + " or " + possible[last]
	if closest, ok := window.Closest(value, possible); ok {
		message += "; did you mean " + closest + "?"
	}
	return Wrong(field, value, message)
}

// Problems is an error that consists of several problems.
type Problems []Problem

// Error returns all problems, separated by semicolons.
func (p Problems) Error() string {
	texts := make([]string, len(p))
	for i, problem := range p {
		texts[i] = problem.String()
	}
	return strings.Join(texts, "; ")
}

// Under returns the problems with their fields below another.
func (p Problems) Under(field string) Problems {
	below := make(Problems, len(p))
	for i, problem := range p {
		problem.Field = strings.TrimSuffix(field+"."+problem.Field, ".")
		below[i] = problem
	}
	return below
}

// Err returns problems as an error; nil when there is none.
func Err(problems ...Problem) error { return Problems(problems).orNil() }

func (p Problems) orNil() error {
	if len(p) == 0 {
		return nil
	}
	return p
}

// collection keeps the first problem of each field.
type collection struct {
	kept    []placed
	fields  map[string]bool
	dropped int
}

type placed struct {
	place int
	Problem
}

// add keeps a problem of a node. The message is made only when it is kept, so
// that a body of nothing but mistakes costs no more than a small one.
func (c *collection) add(n *node, value string, message func() string) {
	field := n.path()
	switch {
	case c.fields[field]:
		return
	case len(c.kept) >= maxProblems:
		c.dropped++
		return
	}
	if c.fields == nil {
		c.fields = map[string]bool{}
	}
	c.fields[field] = true
	c.kept = append(c.kept, placed{place: n.place, Problem: Problem{Field: field, Value: Clip(value), Message: message()}})
}

// forgive removes the problem of a node whose value turns out to be valid. Of a key that
// is there twice that stays a problem.
func (c *collection) forgive(n *node) {
	kept := len(c.kept)
	c.kept = slices.DeleteFunc(c.kept, func(p placed) bool { return p.place == n.place })
	if len(c.kept) == kept && c.dropped > 0 {
		c.dropped--
	}
	delete(c.fields, n.path())
	if n.twice {
		c.add(n, "", func() string { return keyTwice })
	}
}

const keyTwice = "the key is there twice; give it once"

func (c *collection) problems(values []Problem) Problems {
	slices.SortStableFunc(c.kept, func(a, b placed) int { return cmp.Compare(a.place, b.place) })
	var all Problems
	for _, p := range c.kept {
		all = append(all, p.Problem)
	}
	dropped := c.dropped
	for _, p := range values {
		switch {
		case c.covers(p.Field):
		case len(all) >= maxProblems:
			dropped++
		default:
			all = append(all, p)
		}
	}
	if dropped > 0 {
		all = append(all, Problem{Message: fmt.Sprintf("and %d more", dropped)})
	}
	return all
}

// covers reports whether a field or one that it lies in has a problem.
func (c *collection) covers(field string) bool {
	for i := range len(field) {
		if (field[i] == '.' || field[i] == '[') && c.fields[field[:i]] {
			return true
		}
	}
	return c.fields[field] || c.fields[""]
}

func unknownKey(key string, known map[string]bool) string {
	names := slices.Sorted(maps.Keys(known))
	if closest, ok := window.Closest(key, names); ok {
		return fmt.Sprintf("unknown key; did you mean %s?", closest)
	}
	if len(names) == 0 {
		return "unknown key; nothing is known here"
	}
	return "unknown key; use " + strings.Join(names, ", ")
}

// maxValue is how much of a value a message shows, in bytes.
const maxValue = 200

// Clip cuts a value where it would drown the message.
func Clip(value string) string { return clip.Cut(value, maxValue, "...") }

func quote(value string) string { return strconv.Quote(Clip(value)) }
