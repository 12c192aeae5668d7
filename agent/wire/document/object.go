package document

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Object is a set of keys and values in a document. Its methods return the value of a
// key, and whether the key has a valid value. An invalid value is a problem that
// Document.Err returns. The zero Object has no keys.
type Object struct {
	document *Document
	node     *node
}

func (d *Document) object(n *node) Object {
	switch n.kind {
	case object:
		d.visited = append(d.visited, n)
		return Object{document: d, node: n}
	case broken, removed:
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
	if !ok || n.kind == broken || n.kind == removed {
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
	n, ok := o.node.fields[key]
	return ok && n.kind != removed
}

// Keys returns the keys of an object whose keys are names, in the order of the
// text.
func (o Object) Keys() []string {
	if o.node == nil {
		return nil
	}
	for _, key := range o.node.keys {
		o.node.asked[key] = true
	}
	return slices.Clone(o.node.keys)
}

// Null reports whether a key has the value null, for the few members for which null
// means "none". For all others null is a problem.
func (o Object) Null(key string) bool {
	if !o.Has(key) || !o.node.fields[key].null {
		return false
	}
	o.document.found.forgive(o.node.fields[key])
	return true
}

// Text returns a text. In YAML any scalar is taken as it is written, so that
// 10:30 and 01:00 need no quotes; in JSON a number or a boolean is wrong.
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
	case broken, removed:
	case literal:
		d.wrong(n, "is not text; put it in quotes")
	case object, list:
		d.wrong(n, "is not text; write text")
	}
	return "", false
}

// bool returns a boolean, written true or false, without quotes.
func (o Object) bool(key string) (bool, bool) {
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

var decimal = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`) })

// integer returns a whole number from least to most, in decimal digits, without
// quotes.
func (o Object) integer(key string, least, most int64) (int64, bool) {
	n := o.ask(key)
	if n == nil {
		return 0, false
	}
	if n.kind == text || !decimal().MatchString(n.written) {
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

// time returns a time; the zero one if there is none.
func (o Object) time(key string) time.Time {
	n := o.ask(key)
	if n == nil {
		return time.Time{}
	}
	written, ok := o.document.text(n)
	if !ok {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, written)
	if err != nil || at.IsZero() {
		o.document.wrong(n, "is not a time; use one such as 2026-11-21T00:00:00Z")
	}
	return at
}

// raw returns a value of any kind as JSON; nil if there is none.
func (o Object) raw(key string) []byte {
	n := o.ask(key)
	if n == nil {
		return nil
	}
	o.document.permitNull(n)
	n.askAll()
	return n.json(Unknown{})
}

// askAll marks every key in a value as known to a reader.
func (n *node) askAll() {
	for _, key := range n.keys {
		n.asked[key] = true
		n.fields[key].askAll()
	}
	for _, item := range n.items {
		item.askAll()
	}
}

// Nested returns an object.
func (o Object) Nested(key string) (Object, bool) {
	n := o.ask(key)
	if n == nil {
		return Object{}, false
	}
	inner := o.document.object(n)
	return inner, inner.node != nil
}

// items returns the values of a list.
func (o Object) items(key string) ([]*node, bool) {
	n := o.ask(key)
	switch {
	case n == nil:
		return nil, false
	case n.kind != list:
		o.document.wrong(n, "is not a list; write a list")
		return nil, false
	}
	return n.items, true
}

// objects returns a list of objects. An item that is no object is a problem; an object
// without keys takes its place, so that the other items keep their indexes.
func (o Object) objects(key string) ([]Object, bool) {
	items, ok := o.items(key)
	if !ok {
		return nil, false
	}
	objects := make([]Object, len(items))
	for i, n := range items {
		objects[i] = o.document.object(n)
	}
	return objects, true
}

// Texts returns a list of texts. An item that is no text is a problem; an empty text
// takes its place.
func (o Object) Texts(key string) ([]string, bool) {
	items, ok := o.items(key)
	if !ok {
		return nil, false
	}
	texts := make([]string, len(items))
	for i, n := range items {
		texts[i], _ = o.document.text(n)
	}
	return texts, true
}

// textMap returns an object of texts under keys of any name.
func (o Object) textMap(key string) (map[string]string, bool) {
	inner, ok := o.Nested(key)
	if !ok {
		return nil, false
	}
	texts := map[string]string{}
	for _, name := range inner.Keys() {
		if written, ok := inner.Text(name); ok {
			texts[name] = written
		}
	}
	return texts, true
}
