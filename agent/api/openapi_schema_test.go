package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// schemas makes JSON Schemas of Go types: their members and comments, and the bounds in
// the tags of their fields.
type schemas struct {
	comments map[string]string
	// made are the schemas of structs by name.
	made map[string]schema
}

// comments returns the comments of the types and fields in some folders, by "Type" and
// "Type.Field".
func comments(t *testing.T, dirs ...string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, dir := range dirs {
		files, err := filepath.Glob(dir + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no source: %v", dir, err)
		}
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if d, ok := n.(*ast.GenDecl); ok {
					for _, spec := range d.Specs {
						if s, ok := spec.(*ast.TypeSpec); ok {
							note(found, s, cmp.Or(s.Doc.Text(), d.Doc.Text()))
						}
					}
				}
				return true
			})
		}
	}
	return found
}

func note(found map[string]string, s *ast.TypeSpec, doc string) {
	structure, ok := s.Type.(*ast.StructType)
	if !ok || !s.Name.IsExported() {
		return
	}
	found[s.Name.Name] = sentence(doc)
	for _, f := range structure.Fields.List {
		for _, name := range f.Names {
			found[s.Name.Name+"."+name.Name] = sentence(cmp.Or(f.Doc.Text(), f.Comment.Text()))
		}
	}
}

func sentence(doc string) string { return strings.Join(strings.Fields(doc), " ") }

// of returns the schema of a type: that of a struct is a reference to the one in made.
func (s *schemas) of(t reflect.Type) schema {
	switch t {
	case reflect.TypeFor[time.Time](), reflect.TypeFor[v1.Microseconds]():
		return schema{"type": "string", "format": "date-time"}
	case reflect.TypeFor[rollout.Span]():
		return schema{"type": "string"}
	case reflect.TypeFor[json.RawMessage]():
		return schema{"type": "object"}
	}
	switch t.Kind() {
	case reflect.String:
		return schema{"type": "string"}
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return schema{"type": "integer", "format": "int64"}
	case reflect.Uint64:
		return schema{"type": "integer", "minimum": 0}
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.Slice:
		return schema{"type": "array", "items": s.of(t.Elem())}
	case reflect.Map:
		return schema{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.Struct:
		s.structure(t)
		return schema{"$ref": "#/components/schemas/" + t.Name()}
	}
	panic("no schema for " + t.String())
}

// structure makes the schema of a struct.
func (s *schemas) structure(t reflect.Type) {
	if _, made := s.made[t.Name()]; made {
		return
	}
	properties, required := map[string]schema{}, []string{}
	one := schema{"type": "object", "properties": properties}
	s.made[t.Name()] = one
	if about := s.comments[t.Name()]; about != "" {
		one["description"] = about
	}
	for _, field := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		properties[name] = s.member(t, field)
		if options == "" {
			required = append(required, name)
		}
	}
	if len(required) > 0 {
		one["required"] = required
	}
}

// change returns the schema of a body of PATCH for a struct (RFC 7396): no member is
// required, null removes one, and objects are changed in the same way.
func (s *schemas) change(t reflect.Type) schema {
	name := t.Name() + "Change"
	reference := schema{"$ref": "#/components/schemas/" + name}
	if _, made := s.made[name]; made {
		return reference
	}
	properties := map[string]schema{}
	s.made[name] = schema{"type": "object", "properties": properties, "description": "A change of " + t.Name() + " (RFC 7396). A member that is null is removed."}
	for _, field := range reflect.VisibleFields(t) {
		member, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if member == "" {
			continue
		}
		below := field.Type
		if below.Kind() == reflect.Pointer {
			below = below.Elem()
		}
		m := s.member(t, field)
		if below.Kind() == reflect.Struct && below != reflect.TypeFor[time.Time]() {
			m = s.change(below)
		}
		properties[member] = schema{"anyOf": []schema{m, {"type": "null"}}}
	}
	return reference
}

// member returns the schema of a field, with what its comment and its tags say.
func (s *schemas) member(t reflect.Type, field reflect.StructField) schema {
	m := s.of(field.Type)
	if field.Type == reflect.TypeFor[json.RawMessage]() {
		m = schema{} // Any value.
	}
	owner := t
	for _, i := range field.Index[:len(field.Index)-1] {
		owner = owner.Field(i).Type
	}
	if about := s.comments[owner.Name()+"."+field.Name]; about != "" {
		m["description"] = about
	}
	if words := field.Tag.Get("oneof"); words != "" {
		m["enum"] = strings.Fields(words)
	}
	if most, err := strconv.Atoi(field.Tag.Get("most")); err == nil {
		m["maxItems"] = most
	}
	number := m["type"] == "integer"
	if usual, has := field.Tag.Lookup("default"); has {
		if n, err := strconv.Atoi(usual); err == nil && number {
			m["default"] = n
		} else {
			m["default"] = usual
		}
	}
	from, to, bounded := strings.Cut(field.Tag.Get("within"), " ")
	switch least, err := strconv.ParseInt(from, 10, 64); {
	case bounded && number && err == nil:
		m["minimum"] = least
		m["maximum"], _ = strconv.ParseInt(to, 10, 64)
	case bounded:
		m["description"] = strings.TrimSpace(fmt.Sprintf("%v From %s to %s.", cmp.Or(m["description"], any("")), from, to))
	}
	return m
}

// newSchemas returns schemas with the comments of the types of the API.
func newSchemas(t *testing.T) *schemas {
	t.Helper()
	s := &schemas{comments: comments(t, "../wire/v1", "../wire/rollout", "../wire/release"), made: map[string]schema{}}
	s.of(reflect.TypeFor[v1.ErrorBody]())
	return s
}
