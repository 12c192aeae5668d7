package conversion

import (
	"fmt"
	"math/big"
	"strconv"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// Document converts a Terraform value to maps, lists and scalars, as
// encoding/json has them. Attribute names become member names. Null and unknown
// values are omitted.
type Document struct {
	// Member returns the member of an attribute.
	Member func(attribute string) string
	// Unknown are the fields with unknown values. A null element of a list
	// counts as unknown: a validator of its own refuses it.
	Unknown []string
	// Err is the first error of a conversion.
	Err error
}

// Read converts v, the value of a field.
func (d *Document) Read(field string, v tftypes.Value) any {
	switch {
	case !v.IsKnown():
		d.Unknown = append(d.Unknown, field)
		return nil
	case v.IsNull():
		return nil
	case v.Type().Is(tftypes.Object{}):
		return d.readMembers(field, v, d.Member)
	case v.Type().Is(tftypes.Map{}):
		return d.readMembers(field, v, func(key string) string { return key })
	case v.Type().Is(tftypes.List{}), v.Type().Is(tftypes.Set{}), v.Type().Is(tftypes.Tuple{}):
		return d.readList(field, v)
	}
	return d.readPrimitive(v)
}

func (d *Document) readMembers(field string, v tftypes.Value, rename func(string) string) any {
	var attributes map[string]tftypes.Value
	d.note(v.As(&attributes))
	members := map[string]any{}
	for name, attribute := range attributes {
		name = rename(name)
		if value := d.Read(below(field, name), attribute); value != nil {
			members[name] = value
		}
	}
	return members
}

func (d *Document) readList(field string, v tftypes.Value) any {
	var elements []tftypes.Value
	d.note(v.As(&elements))
	list := make([]any, len(elements))
	for i, element := range elements {
		at := field + "[" + strconv.Itoa(i) + "]"
		if element.IsNull() {
			d.Unknown = append(d.Unknown, at)
		}
		list[i] = d.Read(at, element)
	}
	return list
}

func (d *Document) readPrimitive(v tftypes.Value) any {
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

func (d *Document) note(err error) {
	if d.Err == nil {
		d.Err = err
	}
}

func below(field, name string) string {
	if field == "" {
		return name
	}
	return field + "." + name
}

// Write is the inverse of Read: it converts a value to a Terraform value of type
// t. An absent value is null.
func Write(t tftypes.Type, value any, member func(string) string) (tftypes.Value, error) {
	switch t := t.(type) {
	case tftypes.Object:
		members, ok := value.(map[string]any)
		if !ok {
			return null(t, value)
		}
		attributes := map[string]tftypes.Value{}
		for name, kind := range t.AttributeTypes {
			attribute, err := Write(kind, members[member(name)], member)
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
		element, err := Write(t.ElementType, member, renamed)
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
		element, err := Write(of, item, member)
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

// Object converts the attributes of a resource that are members of its object.
func (d *Document) Object(resource tftypes.Value, names []string) map[string]any {
	var attributes map[string]tftypes.Value
	d.note(resource.As(&attributes))
	members := map[string]any{}
	for _, name := range names {
		if value := d.Read(d.Member(name), attributes[name]); value != nil {
			members[d.Member(name)] = value
		}
	}
	return members
}
