package apiobject

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// document is a value of Terraform as JSON has it, and what of it is not known
// yet. The names of attributes become those of members; a value that is null
// or not known is left out.
type document struct {
	// member is the member of the API's object for an attribute.
	member func(attribute string) string
	// unknown are the fields of which nothing can be said, null elements of
	// lists among them: the validators tell of those.
	unknown []string
	err     error
}

// Plain is a value of Terraform as JSON has it, with the names of attributes as
// they are. What is null is left out, and what is not known is an error.
func Plain(v tftypes.Value) (any, error) {
	d := document{member: func(attribute string) string { return attribute }}
	value := d.read("", v)
	if d.err == nil && !v.IsFullyKnown() {
		d.err = errors.New("something in it is not known yet")
	}
	return value, d.err
}

// read is the JSON value of v, which stands at the field.
func (d *document) read(field string, v tftypes.Value) any {
	switch {
	case !v.IsKnown():
		d.unknown = append(d.unknown, field)
		return nil
	case v.IsNull():
		return nil
	case v.Type().Is(tftypes.Object{}):
		return d.readMembers(field, v, d.member)
	case v.Type().Is(tftypes.Map{}):
		return d.readMembers(field, v, func(key string) string { return key })
	case v.Type().Is(tftypes.List{}), v.Type().Is(tftypes.Set{}), v.Type().Is(tftypes.Tuple{}):
		return d.readList(field, v)
	}
	return d.readPrimitive(v)
}

func (d *document) readMembers(field string, v tftypes.Value, rename func(string) string) any {
	var attributes map[string]tftypes.Value
	d.note(v.As(&attributes))
	members := map[string]any{}
	for name, attribute := range attributes {
		name = rename(name)
		if value := d.read(below(field, name), attribute); value != nil {
			members[name] = value
		}
	}
	return members
}

func (d *document) readList(field string, v tftypes.Value) any {
	var elements []tftypes.Value
	d.note(v.As(&elements))
	list := make([]any, len(elements))
	for i, element := range elements {
		at := field + "[" + strconv.Itoa(i) + "]"
		if element.IsNull() {
			d.unknown = append(d.unknown, at)
		}
		list[i] = d.read(at, element)
	}
	return list
}

func (d *document) readPrimitive(v tftypes.Value) any {
	switch {
	case v.Type().Is(tftypes.String):
		var text string
		d.note(v.As(&text))
		return text
	case v.Type().Is(tftypes.Bool):
		var yes bool
		d.note(v.As(&yes))
		return yes
	default:
		var number big.Float
		d.note(v.As(&number))
		f, _ := number.Float64()
		return f
	}
}

func (d *document) note(err error) {
	if d.err == nil {
		d.err = err
	}
}

func below(field, name string) string {
	if field == "" {
		return name
	}
	return field + "." + name
}

// write is the opposite of read: a JSON value as one of Terraform of this
// type. What is absent is null.
func write(t tftypes.Type, value any, member func(string) string) (tftypes.Value, error) {
	switch t := t.(type) {
	case tftypes.Object:
		members, ok := value.(map[string]any)
		if !ok {
			return null(t, value)
		}
		attributes := map[string]tftypes.Value{}
		for name, kind := range t.AttributeTypes {
			attribute, err := write(kind, members[member(name)], member)
			if err != nil {
				return attribute, err
			}
			attributes[name] = attribute
		}
		return tftypes.NewValue(t, attributes), nil
	case tftypes.Map:
		return writeMap(t, value, member)
	case tftypes.List:
		return writeList(t, t.ElementType, value, member)
	case tftypes.Set:
		return writeList(t, t.ElementType, value, member)
	}
	if err := tftypes.ValidateValue(t, value); err != nil {
		return tftypes.Value{}, fmt.Errorf("%v cannot stand for %s: %w", value, t, err)
	}
	return tftypes.NewValue(t, value), nil
}

func writeMap(t tftypes.Map, value any, renamed func(string) string) (tftypes.Value, error) {
	members, ok := value.(map[string]any)
	if !ok {
		return null(t, value)
	}
	elements := map[string]tftypes.Value{}
	for key, member := range members {
		element, err := write(t.ElementType, member, renamed)
		if err != nil {
			return element, err
		}
		elements[key] = element
	}
	return tftypes.NewValue(t, elements), nil
}

func writeList(t, of tftypes.Type, value any, member func(string) string) (tftypes.Value, error) {
	list, ok := value.([]any)
	if !ok {
		return null(t, value)
	}
	elements := make([]tftypes.Value, len(list))
	for i, item := range list {
		element, err := write(of, item, member)
		if err != nil {
			return element, err
		}
		elements[i] = element
	}
	return tftypes.NewValue(t, elements), nil
}

// null is the absent value of a type; any other is an error.
func null(t tftypes.Type, value any) (tftypes.Value, error) {
	if value != nil {
		return tftypes.Value{}, fmt.Errorf("%v cannot stand for %s", value, t)
	}
	return tftypes.NewValue(t, nil), nil
}

// ValidateConfig applies the API's rules. A rule may look at the neighbours of
// a value, so that a problem counts only where all of them are known; the rest
// is checked when they are.
func (k *Kind[T]) ValidateConfig(config tftypes.Value, diags *diag.Diagnostics) {
	d := document{member: k.Member}
	members := d.object(config, k.Names())
	if d.err != nil {
		k.broken(diags, d.err)
		return
	}
	var misfits diag.Diagnostics
	declared := k.object(members, &misfits)
	if misfits.HasError() {
		// Such as 1.5 for an integer, of which the framework tells.
		return
	}
	for _, problem := range k.Validate(declared) {
		if d.doubtful(problem.Field) {
			continue
		}
		at, ok := k.Locate(problem.Field)
		if !ok {
			at = path.Empty()
		}
		diags.AddAttributeError(at, "Invalid value of "+at.String(), problem.Message)
	}
}

// object reads the attributes that make up the API's object.
func (d *document) object(resource tftypes.Value, names []string) map[string]any {
	var attributes map[string]tftypes.Value
	d.note(resource.As(&attributes))
	members := map[string]any{}
	for _, name := range names {
		if value := d.read(d.member(name), attributes[name]); value != nil {
			members[d.member(name)] = value
		}
	}
	return members
}

// doubtful reports whether something beside or below a field, or above it, is
// not known.
func (d *document) doubtful(field string) bool {
	around := field
	if end := strings.LastIndexAny(field, ".["); end > 0 {
		around = field[:end]
	}
	for _, unknown := range d.unknown {
		if within(unknown, around) || within(field, unknown) {
			return true
		}
	}
	return false
}

// within reports whether a field is another one, or stands below it.
func within(field, other string) bool {
	rest, below := strings.CutPrefix(field, other)
	return below && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
