package rollout

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
)

// inspector collects what is wrong with the members of a policy.
type inspector struct {
	found document.Problems
}

func (i *inspector) add(field, value, message string) {
	i.found = append(i.found, document.Problem{Field: field, Value: document.Clip(value), Message: message})
}

// wrong notes a problem; the message is about the value, which goes first.
func (i *inspector) wrong(field, value, message string) {
	i.found = append(i.found, document.Wrong(field, value, message))
}

// limit reports whether a list is short enough.
func (i *inspector) limit(field string, count, most int) bool {
	if count > most {
		i.found = append(i.found, document.TooMany(field, count, most))
	}
	return count <= most
}

// inspected has rules of its own beside those in the tags of its members.
type inspected interface {
	inspect(i *inspector, field string)
}

// members holds each member of a struct against the tags of its field, in the
// order of the fields.
func (i *inspector) members(path string, of any) {
	for name, m := range membersOf(of) {
		i.member(below(path, name), m)
	}
}

func (i *inspector) member(field string, m member) {
	switch value := m.value.Interface().(type) {
	case Span:
		i.span(field, value, m.tag)
	case Count:
		i.count(field, value, m.tag)
	case string:
		if of := m.tag.Get("oneof"); of != "" && value != "" {
			i.choice(field, value, strings.Fields(of)...)
		}
	case int:
		i.number(field, value, m.tag)
	case *int:
		if value != nil {
			i.number(field, *value, m.tag)
		}
	default:
		i.nested(field, m)
	}
}

// nested inspects an object that is there, or a list of them.
func (i *inspector) nested(field string, m member) {
	value := reflect.Indirect(m.value)
	if !value.IsValid() {
		return
	}
	if own, ok := value.Interface().(inspected); ok {
		own.inspect(i, field)
		return
	}
	most, err := strconv.Atoi(m.tag.Get("most"))
	switch {
	case value.Kind() == reflect.Struct:
		i.members(field, value.Interface())
	case err == nil && i.limit(field, value.Len(), most):
		for n := range value.Len() {
			i.nested(fmt.Sprintf("%s[%d]", field, n), member{value: value.Index(n)})
		}
	}
}

// span checks a length of time that may be absent.
func (i *inspector) span(field string, s Span, tag reflect.StructTag) {
	if s == "" {
		return
	}
	least, most := bounds(tag, func(text string) time.Duration { return Span(text).Duration() })
	if _, err := window.ParseDurationWithin(string(s), least, most); err != nil {
		i.add(field, string(s), err.Error())
	}
}

// count checks a count of hosts that may be absent.
func (i *inspector) count(field string, c Count, tag reflect.StructTag) {
	if c == "" {
		return
	}
	n, _, err := c.parse()
	switch least, _, _ := Count(tag.Get("least")).parse(); {
	case err != nil:
		i.add(field, string(c), err.Error())
	case n < least:
		i.wrong(field, string(c), "is too few; use at least 1 or 1%")
	}
}

// number checks a number for which 0 is absent.
func (i *inspector) number(field string, n int, tag reflect.StructTag) {
	least, most := bounds(tag, func(text string) int {
		n, _ := strconv.Atoi(text)
		return n
	})
	if n != 0 && (n < least || n > most) {
		i.found = append(i.found, document.OutOfRange(field, n, least, most))
	}
}

// choice reports whether a text is one of some.
func (i *inspector) choice(field, text string, of ...string) bool {
	if slices.Contains(of, text) {
		return true
	}
	i.found = append(i.found, document.NoneOf(field, text, of...))
	return false
}

// each checks that the entries of a list are right, and there once.
func (i *inspector) each(field string, list []string, most int, valid func(string) bool, message string) {
	if !i.limit(field, len(list), most) {
		return
	}
	first := map[string]int{}
	for n, entry := range list {
		path := fmt.Sprintf("%s[%d]", field, n)
		other, twice := first[entry]
		switch {
		case !valid(entry):
			i.wrong(path, entry, message)
		case twice:
			i.wrong(path, entry, fmt.Sprintf("is %s[%d] again; give it once", field, other))
		default:
			first[entry] = n
		}
	}
}

// member is a field of a struct.
type member struct {
	value reflect.Value
	tag   reflect.StructTag
}

// membersOf goes through the fields of a struct by their names in JSON.
func membersOf(of any) func(yield func(string, member) bool) {
	return func(yield func(string, member) bool) {
		value := reflect.ValueOf(of)
		for n, f := range fieldsOf(value.Type()) {
			if !yield(f.name, member{value.Field(n), f.tag}) {
				return
			}
		}
	}
}

// field is what the type of a struct says of one of its fields.
type field struct {
	// name is its name in JSON, fallback the text of its default.
	name, fallback string
	tag            reflect.StructTag
}

// fields are the fields by type of struct, of which there are few: to read a tag costs
// more than what is done by it.
var fields sync.Map // of reflect.Type to []field

func fieldsOf(of reflect.Type) []field {
	if known, ok := fields.Load(of); ok {
		return known.([]field) //nolint:forcetypeassert // The map has nothing else.
	}
	all := make([]field, of.NumField())
	for n := range all {
		tag := of.Field(n).Tag
		name, _, _ := strings.Cut(tag.Get("json"), ",")
		all[n] = field{name, tag.Get("default"), tag}
	}
	fields.Store(of, all)
	return all
}

// memberOf returns the field of a name, which must be there.
func memberOf(of any, name string) member {
	for has, m := range membersOf(of) {
		if has == name {
			return m
		}
	}
	panic(fmt.Sprintf("policy: %T has no member %s", of, name))
}

// text is the value for people.
func (m member) text() string {
	if args, ok := m.value.Interface().([]string); ok {
		return strings.Join(args, " ")
	}
	return fmt.Sprint(m.value.Interface())
}

func below(path, name string) string {
	switch {
	case path == "":
		return name
	case name == "": // What is embedded has no name of its own.
		return path
	}
	return path + "." + name
}

// bounds reads the tag of a member that has a least and a most.
func bounds[T any](tag reflect.StructTag, read func(string) T) (least, most T) {
	from, to, _ := strings.Cut(tag.Get("within"), " ")
	return read(from), read(to)
}

// firstUnreadable returns the first value of a struct, or below it, that means
// nothing.
func firstUnreadable(path string, of any) error {
	for name, m := range membersOf(of) {
		if err := unreadableAt(below(path, name), m.value); err != nil {
			return err
		}
	}
	return nil
}

func unreadableAt(field string, value reflect.Value) error {
	value = reflect.Indirect(value)
	switch {
	case !value.IsValid():
	case value.Kind() == reflect.Struct:
		return firstUnreadable(field, value.Interface())
	case isListOfStructs(value):
		for n := range value.Len() {
			if err := unreadableAt(fmt.Sprintf("%s[%d]", field, n), value.Index(n)); err != nil {
				return err
			}
		}
	default:
		if text, ok := value.Interface().(readable); ok {
			if err := text.unreadable(); err != nil {
				return fmt.Errorf("%s: %w", field, err)
			}
		}
	}
	return nil
}

func isListOfStructs(value reflect.Value) bool {
	return value.Kind() == reflect.Slice && value.Type().Elem().Kind() == reflect.Struct
}

// rewritten returns a copy of a struct in which a change was made to each
// struct, from the innermost to the outermost. Lists of structs and what
// pointers point to are copied, all else is shared.
func rewritten[T any](of T, change func(reflect.Value)) T {
	rewrite(reflect.ValueOf(&of).Elem(), change)
	return of
}

func rewrite(value reflect.Value, change func(reflect.Value)) {
	switch {
	case value.Kind() == reflect.Pointer && !value.IsNil() && value.Elem().Kind() == reflect.Struct:
		inner := reflect.New(value.Type().Elem())
		inner.Elem().Set(value.Elem())
		rewrite(inner.Elem(), change)
		value.Set(inner)
	case isListOfStructs(value) && !value.IsNil():
		list := reflect.MakeSlice(value.Type(), value.Len(), value.Len())
		reflect.Copy(list, value)
		for n := range list.Len() {
			rewrite(list.Index(n), change)
		}
		value.Set(list)
	case value.Kind() == reflect.Struct:
		for n := range value.NumField() {
			rewrite(value.Field(n), change)
		}
		change(value)
	}
}

// completed has defaults that depend on its other members.
type completed interface{ complete() }

// setDefault gives each member of a struct that is absent its default.
func setDefault(of reflect.Value) {
	if own, ok := of.Addr().Interface().(completed); ok {
		own.complete()
	}
	setFallbacks(of)
}

// setFallbacks gives each member of a struct that is absent the default in its tag.
func setFallbacks(of reflect.Value) {
	for n, f := range fieldsOf(of.Type()) {
		field, text := of.Field(n), f.fallback
		if text == "" || !field.IsZero() {
			continue
		}
		if field.Kind() == reflect.String {
			field.SetString(text)
			continue
		}
		number, err := strconv.Atoi(text)
		if err != nil {
			panic("policy: the default " + text + " is not a number")
		}
		if field.Kind() == reflect.Pointer {
			field.Set(reflect.ValueOf(&number))
		} else {
			field.SetInt(int64(number))
		}
	}
}

// dropFallbacks removes each member of a struct that is the default in its tag.
func dropFallbacks(of reflect.Value) {
	for n, f := range fieldsOf(of.Type()) {
		if field := of.Field(n); f.fallback != "" && !field.IsZero() && fmt.Sprint(reflect.Indirect(field)) == f.fallback {
			field.SetZero()
		}
	}
}

// setCanonical spells each length of time of a struct in the one way.
func setCanonical(of reflect.Value) {
	for n := range of.NumField() {
		if span, ok := of.Field(n).Interface().(Span); ok {
			of.Field(n).Set(reflect.ValueOf(span.canonical()))
		}
	}
}
