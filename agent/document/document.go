// Package document reads JSON and YAML strictly: bodies of the API and
// configuration files. It decides whether a text is one document whose keys are
// known and given once, and whose values have the type of the field that they
// are read into. It reports every problem at once, each with the path of its
// field.
//
// Object.Fill reads an object into a struct, and Document.Err returns the
// problems. No type is guessed: YAML's unquoted 10:30 is the text that stands
// there (AV-12). The package opens no file and does not know what a value means.
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

// Parse reads a text of a content type; none means JSON. The error is Problems
// when the text cannot be read at all. Whatever else is wrong with it is told by
// Document.Err, so that the caller can add to it.
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

// ParseAll reads a text as Parse does that may be several documents of YAML. It
// returns at least one.
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

// Root returns the object that the document is. Where it is something else, that
// is a problem, and the object has no keys.
func (d *Document) Root() Object { return d.object(d.root) }

// Line returns the line of a field as a Problem names it, from 1 on. For a field
// that is not there it is the line of what would hold it.
func (d *Document) Line(field string) int {
	found := d.root
	for n := found; n != nil; {
		found, n = n, n.towards(field)
	}
	return found.line
}

// Err returns Problems with everything that is wrong with the document, in the
// order of the text, or nil: what the readers of its values found, each key that
// was not asked for, and then values, what the caller found wrong with them.
// Of values, those of a field that has a problem already are left out: they are
// its consequences.
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
