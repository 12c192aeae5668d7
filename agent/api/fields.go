package api

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
)

// fields is the selection of the query parameter fields; nil selects all.
type fields map[string]fields

// maxFieldsDepth is the deepest nesting of a selection.
const maxFieldsDepth = 16

// parseFields parses Avassa's grammar of the parameter fields: "a,b", "a/b", "a/[b,c/d]".
func parseFields(text string) (fields, error) {
	p := fieldsParser{rest: text}
	f, err := p.list(0)
	if err == nil && p.rest != "" {
		err = fmt.Errorf("%q is unexpected", shortened(p.rest))
	}
	if err != nil {
		return nil, badRequest("fields", text, fmt.Sprintf("cannot be parsed: %v; use a,b or a/b or a/[b,c]", err))
	}
	return f, nil
}

type fieldsParser struct {
	rest string
}

// list parses item { "," item }.
func (p *fieldsParser) list(depth int) (fields, error) {
	f := fields{}
	for {
		if err := p.item(f, depth); err != nil {
			return nil, err
		}
		if !p.skip(",") {
			return f, nil
		}
	}
}

// item parses name [ "/" item | "/[" list "]" ] into f.
func (p *fieldsParser) item(f fields, depth int) (err error) {
	if depth > maxFieldsDepth {
		return fmt.Errorf("it is nested deeper than %d", maxFieldsDepth)
	}
	end := strings.IndexAny(p.rest, ",/[]")
	if end < 0 {
		end = len(p.rest)
	}
	name := p.rest[:end]
	if name == "" {
		return fmt.Errorf("a name is missing before %q", shortened(p.rest))
	}
	p.rest = p.rest[end:]
	switch {
	case p.skip("/["):
		if f[name], err = p.list(depth + 1); err == nil && !p.skip("]") {
			err = fmt.Errorf("a ] is missing before %q", shortened(p.rest))
		}
	case p.skip("/"):
		f[name] = fields{}
		err = p.item(f[name], depth+1)
	default:
		f[name] = nil
	}
	return err
}

func (p *fieldsParser) skip(prefix string) bool {
	rest, found := strings.CutPrefix(p.rest, prefix)
	p.rest = rest
	return found
}

// sendFields sends a value, restricted to the fields selected by the request.
func (s *server) sendFields(c *call, value any) error {
	return s.sendFieldsOf(c, reflect.TypeOf(value), value)
}

// sendFieldsOf is sendFields for a value whose fields are those of a type.
func (s *server) sendFieldsOf(c *call, t reflect.Type, value any) error {
	if c.query.Has("fields") {
		wanted, err := parseFields(c.query.Get("fields"))
		if err != nil {
			return err
		}
		if value, err = wanted.of(t, value); err != nil {
			return err
		}
	}
	s.send(c.w, c.Request, http.StatusOK, value)
	return nil
}

// sendList writes a list: its keys with keys=true, its length with count=true, and else its
// entries.
func sendList[T any](s *server, c *call, list []T, key func(T) string) error {
	switch {
	case c.has("keys"):
		keys := make([]string, len(list))
		for i, entry := range list {
			keys[i] = key(entry)
		}
		s.send(c.w, c.Request, http.StatusOK, keys)
	case c.has("count"):
		s.send(c.w, c.Request, http.StatusOK, len(list))
	default:
		return s.sendFields(c, list)
	}
	return nil
}

// of restricts a value to the selected fields of its type. A field that the
// type does not have is an error; a field that this value does not have is omitted.
func (f fields) of(t reflect.Type, value any) (any, error) {
	if err := f.check(t); err != nil {
		return nil, err
	}
	return selection{fields: f, value: value}, nil
}

// check refuses fields that a type does not have.
func (f fields) check(t reflect.Type) error {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	known := members(t)
	for name, below := range f {
		member, found := known[name]
		if !found {
			return badRequest("fields", name, "is not a field here; use one of "+strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		if err := below.check(member); err != nil {
			return err
		}
	}
	return nil
}

// members maps the JSON names of a struct, embedded ones included, to their
// types.
func members(t reflect.Type) map[string]reflect.Type {
	known := map[string]reflect.Type{}
	for _, field := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" && name != "-" {
			known[name] = field.Type
		}
	}
	return known
}
