package apiobject

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostic"
)

// document converts a Terraform value to maps, lists and scalars, as
// encoding/json has them. Attribute names become member names. Null and unknown
// values are omitted.
type document struct {
	// member returns the member of an attribute.
	member func(attribute string) string
	// unknown are the fields with unknown values. A null element of a list
	// counts as unknown: a validator of its own refuses it.
	unknown []string
	err     error
}

// Plain converts a Terraform value to maps, lists and scalars and keeps the
// attribute names. It omits null values. An unknown value is an error.
func Plain(v tftypes.Value) (any, error) {
	d := document{member: func(attribute string) string { return attribute }}
	value := d.read("", v)
	if d.err == nil && !v.IsFullyKnown() {
		d.err = errors.New("a value in it is not known yet")
	}
	return value, d.err
}

// read converts v, the value of a field.
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

// write is the inverse of read: it converts a value to a Terraform value of type
// t. An absent value is null.
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
		return tftypes.Value{}, fmt.Errorf("cannot convert %v to %s: %w", value, t, err)
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

// null returns the null value of a type; a value that is not absent is an error.
func null(t tftypes.Type, value any) (tftypes.Value, error) {
	if value != nil {
		return tftypes.Value{}, fmt.Errorf("cannot convert %v to %s", value, t)
	}
	return tftypes.NewValue(t, nil), nil
}

// ValidateConfig applies the API's rules. A rule may depend on neighbouring
// values, so a problem counts only if all of them are known. Terraform validates
// again once they are.
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
		// Such as 1.5 for an integer. The framework reports it.
		return
	}
	for _, problem := range k.Validate(declared) {
		if d.doubtful(problem.Field) {
			continue
		}
		at, ok := k.Locate(problem.Field)
		if !ok {
			diags.AddError("Invalid configuration of "+k.TypeName, diagnostic.HCL(problem.Field+": "+problem.Message))
			continue
		}
		diags.AddAttributeError(at, "Invalid value of "+at.String(), diagnostic.HCL(problem.Message))
	}
}

// object converts the attributes of the object.
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

// doubtful reports whether a value beside, below or above a field is unknown.
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

// within reports whether a field is equal to another field or below it.
func within(field, other string) bool {
	rest, below := strings.CutPrefix(field, other)
	return below && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
