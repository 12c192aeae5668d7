package document

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

// Object is a set of keys and values in a document. Its methods return the value
// of a key and whether there is a right one; one that is there and wrong is a
// problem that Document.Err tells of. The zero Object has no keys.
type Object struct {
	document *Document
	node     *node
}

func (d *Document) object(n *node) Object {
	switch n.kind {
	case object:
		d.visited = append(d.visited, n)
		return Object{document: d, node: n}
	case broken:
	default:
		d.wrong(n, "is not an object; write keys and values")
	}
	return Object{document: d}
}

// wrong notes that a value is not what its reader wants.
func (d *Document) wrong(n *node, message string) {
	d.found.add(n, n.value(), func() string { return n.describe() + " " + message })
}

// ask returns the value of a key, and nil when there is none to read.
func (o Object) ask(key string) *node {
	if o.node == nil {
		return nil
	}
	o.node.asked[key] = true
	n, ok := o.node.fields[key]
	if !ok || n.kind == broken {
		return nil
	}
	return n
}

// Has reports whether a key is there, with whatever value.
func (o Object) Has(key string) bool {
	if o.node == nil {
		return false
	}
	o.node.asked[key] = true
	_, ok := o.node.fields[key]
	return ok
}

// Null reports whether a key is there with the value null, for the few that
// take it for "none". Everywhere else null is a problem.
func (o Object) Null(key string) bool {
	if !o.Has(key) || !o.node.fields[key].null {
		return false
	}
	o.document.found.forgive(o.node.fields[key])
	return true
}

// Require notes a problem for each of the keys that is not there.
func (o Object) Require(keys ...string) {
	for _, key := range keys {
		if o.node != nil && !o.Has(key) {
			missing := &node{parent: o.node, key: key, place: o.node.place}
			o.document.found.add(missing, "", func() string { return "the key is missing; give it" })
		}
	}
}

// Reject notes that the value of a key is wrong; the error names the value and
// says what would be right.
func (o Object) Reject(key string, err error) {
	if n := o.ask(key); n != nil {
		o.document.found.add(n, n.value(), err.Error)
	}
}

// Text returns a text. In YAML any scalar is taken as it is written, so that
// 10:30 and 01:00 need no quotes (AV-12); in JSON a number or a boolean is wrong.
func (o Object) Text(key string) (string, bool) {
	n := o.ask(key)
	if n == nil {
		return "", false
	}
	return o.document.text(n)
}

func (d *Document) text(n *node) (string, bool) {
	switch n.kind {
	case text, plain:
		return n.written, true
	case broken:
	case literal:
		d.wrong(n, "is not text; put it in quotes")
	case object, list:
		d.wrong(n, "is not text; write text")
	}
	return "", false
}

// Value returns a text as parse reads it. The error of parse names the text and
// says what would be right.
func Value[T any](o Object, key string, parse func(string) (T, error)) (T, bool) {
	var none T
	written, ok := o.Text(key)
	if !ok {
		return none, false
	}
	value, err := parse(written)
	if err != nil {
		o.Reject(key, err)
		return none, false
	}
	return value, true
}

// Duration returns a length of time such as "1d4h18s" (AV-19).
func (o Object) Duration(key string) (time.Duration, bool) {
	return Value(o, key, window.ParseDuration)
}

// Bool returns a boolean, written true or false, without quotes.
func (o Object) Bool(key string) (bool, bool) {
	n := o.ask(key)
	if n == nil {
		return false, false
	}
	if value, ok := map[string]bool{"true": true, "false": false}[n.written]; ok && n.kind != text {
		return value, true
	}
	o.document.wrong(n, "is not a boolean; use true or false, without quotes")
	return false, false
}

var decimal = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

// Integer returns a whole number from least to most, in decimal digits, without
// quotes.
func (o Object) Integer(key string, least, most int64) (int64, bool) {
	n := o.ask(key)
	if n == nil {
		return 0, false
	}
	if n.kind == text || !decimal.MatchString(n.written) {
		o.document.wrong(n, fmt.Sprintf("is not a whole number; use %d to %d, without quotes", least, most))
		return 0, false
	}
	value, err := strconv.ParseInt(n.written, 10, 64)
	if err != nil || value < least || value > most {
		o.document.wrong(n, fmt.Sprintf("is out of range; use %d to %d", least, most))
		return 0, false
	}
	return value, true
}

// Object returns an object.
func (o Object) Object(key string) (Object, bool) {
	n := o.ask(key)
	if n == nil {
		return Object{}, false
	}
	inner := o.document.object(n)
	return inner, inner.node != nil
}
