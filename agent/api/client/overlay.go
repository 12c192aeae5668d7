package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// An object on the server may have members that this version does not know: a newer version
// or another server has added them. A PUT replaces the whole object, so a client that sends
// only the members that it knows deletes the others. overlay therefore copies the unknown
// members of the stored object into the new one, at every level.

// overlay returns value as JSON text, with the members of base that T does not know. Each entry
// of a list takes over the unknown members of the old entry that it replaces: see match.
func overlay[T any](base json.RawMessage, value T, canonical func(T) T) (json.RawMessage, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("cannot write the body as JSON: %w", err)
	}
	if !hasUnknown(base, reflect.TypeFor[T]()) {
		return text, nil
	}
	var was T
	if err := json.Unmarshal(base, &was); err != nil {
		return nil, fmt.Errorf("cannot read the stored object: %w", err)
	}
	sides := make([]any, 4)
	for i, side := range []any{base, json.RawMessage(text), canonical(was), canonical(value)} {
		if sides[i], err = tree(side); err != nil {
			return nil, err
		}
	}
	return json.Marshal(graft(reflect.TypeFor[T](), sides[0], sides[1], sides[2], sides[3]))
}

// tree returns a value as maps, lists and scalars; numbers keep their digits.
func tree(value any) (any, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("cannot write an object as JSON: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var all any
	if err := d.Decode(&all); err != nil {
		return nil, fmt.Errorf("cannot read an object as JSON: %w", err)
	}
	return all, nil
}

// graft adds to next what base has and type t does not know. baseMeans and nextMeans are
// the canonical forms of the two, by which entries of lists are matched.
func graft(t reflect.Type, base, next, baseMeans, nextMeans any) any {
	switch t = pointedAt(t); t.Kind() {
	case reflect.Struct:
		return graftMembers(t, base, next, baseMeans, nextMeans)
	case reflect.Slice:
		return graftEntries(t.Elem(), base, next, baseMeans, nextMeans)
	default:
		return next
	}
}

func graftMembers(t reflect.Type, base, next, baseMeans, nextMeans any) any {
	was, okBase := base.(map[string]any)
	result, okNext := next.(map[string]any)
	if !okBase || !okNext {
		return next
	}
	for name, value := range was {
		known, ok := member(t, name)
		if !ok {
			result[name] = value
			continue
		}
		if mine, there := result[name]; there {
			result[name] = graft(known, value, mine, below(baseMeans, name), below(nextMeans, name))
		}
	}
	return result
}

func graftEntries(t reflect.Type, base, next, baseMeans, nextMeans any) any {
	was, okBase := base.([]any)
	result, okNext := next.([]any)
	if !okBase || !okNext || pointedAt(t).Kind() != reflect.Struct {
		return next
	}
	baseEntries, nextEntries := sameLength(was, baseMeans), sameLength(result, nextMeans)
	for i, j := range match(baseEntries, nextEntries) {
		if j >= 0 {
			result[i] = graft(t, was[j], result[i], baseEntries[j], nextEntries[i])
		}
	}
	return result
}

// sameLength returns the canonical form of a list if both have as many entries, and the list
// itself otherwise.
func sameLength(list []any, means any) []any {
	if canonical, ok := means.([]any); ok && len(canonical) == len(list) {
		return canonical
	}
	return list
}

// match returns, for each new entry, the index of the old entry it replaces, or -1: first
// by canonical form, then by name, then by the most members in common, at least one. An
// old entry is used once.
func match(was, next []any) []int {
	matched, used := make([]int, len(next)), make([]bool, len(was))
	for i := range matched {
		matched[i] = -1
	}
	for _, likeness := range []func(a, b any) int{alike, sameName, inCommon} {
		for i, entry := range next {
			best, most := -1, 0
			for j, candidate := range was {
				if n := likeness(candidate, entry); !used[j] && n > most {
					best, most = j, n
				}
			}
			if matched[i] < 0 && best >= 0 {
				matched[i], used[best] = best, true
			}
		}
	}
	return matched
}

func alike(a, b any) int {
	if reflect.DeepEqual(a, b) {
		return 1
	}
	return 0
}

func sameName(a, b any) int {
	if name, ok := below(a, "name").(string); ok && name != "" && below(b, "name") == any(name) {
		return 1
	}
	return 0
}

// inCommon counts the equal members of two entries without a name.
func inCommon(a, b any) int {
	was, _ := a.(map[string]any)
	n := 0
	for name, value := range was {
		if name == "name" {
			return 0
		}
		if reflect.DeepEqual(value, below(b, name)) {
			n++
		}
	}
	return n
}

// below is a member of an object; nil if there is none.
func below(object any, name string) any {
	members, ok := object.(map[string]any)
	if !ok {
		return nil
	}
	return members[name]
}

// hasUnknown reports whether a JSON text has members that type t does not know.
func hasUnknown(text json.RawMessage, t reflect.Type) bool {
	var value any
	if len(text) == 0 || json.Unmarshal(text, &value) != nil {
		return false
	}
	return unknownIn(value, t)
}

func unknownIn(value any, t reflect.Type) bool {
	t = pointedAt(t)
	switch value := value.(type) {
	case map[string]any:
		if t.Kind() != reflect.Struct {
			return false
		}
		for name, child := range value {
			if known, ok := member(t, name); !ok || unknownIn(child, known) {
				return true
			}
		}
	case []any:
		if t.Kind() != reflect.Slice {
			return false
		}
		for _, entry := range value {
			if unknownIn(entry, t.Elem()) {
				return true
			}
		}
	}
	return false
}

// member returns the type of the struct field that encoding/json fills from a name.
func member(t reflect.Type, name string) (reflect.Type, bool) {
	for _, field := range reflect.VisibleFields(t) {
		if tag, _, _ := strings.Cut(field.Tag.Get("json"), ","); tag != "" && tag != "-" && strings.EqualFold(tag, name) {
			return field.Type, true
		}
	}
	return nil, false
}

func pointedAt(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}
