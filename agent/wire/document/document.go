// Package document reads JSON and YAML strictly: bodies of the API and
// configuration files. It decides whether a text is one document whose keys are
// known and given once, and whose values have the type of the field that they
// are read into. It reports every problem at once, each with the path of its
// field.
//
// Object.Fill reads an object into a struct, and Document.Err returns the
// problems. No type is guessed: YAML's unquoted 10:30 is the text that stands
// there. The package opens no file and does not know what a value means.
package document

import (
	"bytes"
	"fmt"
	"mime"
	"strings"
	"unicode/utf8"
)

// Media types that Parse takes. YAML is the registered name (RFC 9512); the
// other names for it came before.
const (
	JSON     = "application/json"
	YAML     = "application/yaml"
	XYAML    = "application/x-yaml"
	TextYAML = "text/yaml"
)

// MaxDepth is how deep lists and objects may be nested; the whole document
// counts as 1.
const MaxDepth = 32

// Document is a text that has been read. It collects the problems found in it.
type Document struct {
	root    *node
	visited []*node
	found   collection
}

// Parse reads a text of a content type; an empty content type means JSON. If the text
// cannot be read at all, the error is Problems. Document.Err returns every other
// problem, so that the caller can add to them.
func Parse(contentType string, text []byte) (*Document, error) {
	all, err := ParseAll(contentType, text)
	switch {
	case err != nil:
		return nil, err
	case len(all) > 1:
		return nil, Problems{{Message: "a second YAML document follows; write one"}}
	}
	return all[0], nil
}

// ParseAll is Parse for a text that may have several YAML documents. It returns at
// least one document.
func ParseAll(contentType string, text []byte) ([]*Document, error) {
	yaml, err := isYAML(contentType)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(text) {
		return nil, Problems{{Message: "the document is not UTF-8 text; use UTF-8"}}
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, errEmpty()
	}
	if !yaml {
		d, err := readJSON(text)
		return []*Document{d}, err
	}
	all, err := readYAML(text)
	if err == nil && len(all) == 0 {
		err = errEmpty()
	}
	return all, err
}

func errEmpty() error { return Problems{{Message: "the document is empty; write an object"}} }

func isYAML(contentType string) (bool, error) {
	if strings.TrimSpace(contentType) == "" {
		return false, nil
	}
	media, parameters, err := mime.ParseMediaType(contentType)
	charset, hasCharset := parameters["charset"]
	switch {
	case err != nil:
	case hasCharset && !strings.EqualFold(charset, "utf-8"):
		return false, contentTypeProblem(contentType, "has a charset that is not read here; use utf-8")
	case media == JSON:
		return false, nil
	case media == YAML, media == XYAML, media == TextYAML:
		return true, nil
	}
	return false, contentTypeProblem(contentType,
		fmt.Sprintf("is not a content type that is read here; use %s, %s, %s or %s", JSON, YAML, XYAML, TextYAML))
}

func contentTypeProblem(contentType, message string) error {
	return Problems{{Field: "Content-Type", Value: Clip(contentType), Message: quote(contentType) + " " + message}}
}

// Root returns the document as an object. If the document is no object, that is a
// problem, and the returned object has no keys.
func (d *Document) Root() Object { return d.object(d.root) }

// Line returns the line of a field, counted from 1. The field is a path as in Problem.
// For a missing field it is the line of the object or list that would hold it.
func (d *Document) Line(field string) int {
	found := d.root
	for n := found; n != nil; {
		found, n = n, n.towards(field)
	}
	return found.line
}

// Err returns all problems of the document in the order of the text, as Problems, or
// nil: the problems that its readers found, each key that nobody has read, and then
// values, the problems that the caller found. If a field has a problem already, those of
// values about it are left out, because they are its consequences.
func (d *Document) Err(values ...Problem) error {
	for _, n := range d.visited {
		for _, key := range n.keys {
			if !n.asked[key] {
				d.found.add(n.fields[key], n.fields[key].value(), func() string { return unknownKey(key, n.asked) })
			}
		}
	}
	d.visited = nil
	return d.found.problems(values).orNil()
}
