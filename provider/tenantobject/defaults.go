package tenantobject

import (
	"context"
	"maps"
	"reflect"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/listdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/objectdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// The state of an object may have the default of each member that is not declared: to
// write a default out is then no change. The API's object lacks
// them, so that a server that does not know a member yet is asked for it only by who
// declares it.

// Defaults are the defaults of the members of an object.
type Defaults[T any] struct {
	// Filled returns an object with the default of each member that is absent; nil if only
	// members of Inside have defaults.
	Filled func(T) T
	// Inside fills in members that are objects with defaults of their own, such as a rollout. An
	// absent one stays absent.
	Inside map[string]func(members map[string]any) map[string]any
	// Trimmed returns an object without defaults.
	Trimmed func(T) T
	// Parts are the attributes of objects that mean the same when they are absent as with
	// nothing in them.
	Parts []string
}

// defaulted gives optional attributes the defaults of the members of a type: those in their
// tags, false, and nothing for a list.
func (k *Mapping[T]) defaulted(attributes map[string]schema.Attribute, of reflect.Type) map[string]schema.Attribute {
	all := maps.Clone(attributes)
	for name, attribute := range attributes {
		field, found := fieldOf(of, k.Member(name))
		if found && !attribute.IsRequired() {
			all[name] = k.withDefault(attribute, field)
		}
	}
	return all
}

// fieldOf returns the field of a member.
func fieldOf(of reflect.Type, member string) (reflect.StructField, bool) {
	for _, field := range reflect.VisibleFields(of) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name == member {
			return field, true
		}
	}
	return reflect.StructField{}, false
}

func (k *Mapping[T]) withDefault(attribute schema.Attribute, field reflect.StructField) schema.Attribute {
	text, has := field.Tag.Lookup("default")
	switch a := attribute.(type) {
	case schema.StringAttribute:
		if has {
			a.Computed, a.Default = true, stringdefault.StaticString(text)
		}
		return a
	case schema.Int64Attribute:
		if number, err := strconv.ParseInt(text, 10, 64); err == nil {
			a.Computed, a.Default = true, int64default.StaticInt64(number)
		}
		return a
	case schema.BoolAttribute:
		a.Computed, a.Default = true, booldefault.StaticBool(false)
		return a
	case schema.ListAttribute:
		a.Computed, a.Default = true, listdefault.StaticValue(types.ListValueMust(a.ElementType, []attr.Value{}))
		return a
	case schema.ListNestedAttribute:
		a.NestedObject.Attributes = k.defaulted(a.NestedObject.Attributes, structOf(field.Type))
		a.Computed, a.Default = true, listdefault.StaticValue(types.ListValueMust(a.NestedObject.Type(), []attr.Value{}))
		return a
	case schema.SingleNestedAttribute:
		a.Attributes = k.defaulted(a.Attributes, structOf(field.Type))
		return a
	default:
		return attribute
	}
}

func structOf(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t
}

// withParts gives each part the default of a part with nothing in it.
func (k *Mapping[T]) withParts(attributes map[string]schema.Attribute) {
	empty := k.fill(map[string]any{})
	for _, name := range k.Defaults.Parts {
		part, ok := attributes[name].(schema.SingleNestedAttribute)
		value, err := k.value(context.Background(), part.GetType(), empty[k.Member(name)])
		object, isObject := value.(types.Object)
		if !ok || !isObject || err != nil {
			panic("tenantobject: " + name + " is no part that can be empty")
		}
		part.Computed, part.Default = true, objectdefault.StaticValue(object)
		attributes[name] = part
	}
}

// Filled returns members with the defaults of those that are absent, as a plan has them.
func (k *Mapping[T]) Filled(members map[string]any) map[string]any {
	if k.build(); k.Defaults.Filled != nil {
		return k.fill(members)
	}
	members = maps.Clone(members)
	for name, fill := range k.Defaults.Inside {
		if inner, ok := members[name].(map[string]any); ok {
			members[name] = fill(inner)
		}
	}
	return members
}

func (k *Mapping[T]) fill(members map[string]any) map[string]any {
	object, _ := objectOf[T](members) // Whoever converts the members reports what does not fit.
	filled, _ := k.filled(k.kind.TerraformType(context.Background()), members, Tree(k.Defaults.Filled(object))).(map[string]any)
	return filled
}

// filled returns a value of a type with what it lacks: what usual has, else false, and nothing
// for a list.
func (k *Mapping[T]) filled(t tftypes.Type, value, usual any) any {
	if value == nil {
		value = usual
	}
	switch t := t.(type) {
	case tftypes.Object:
		if value == nil {
			return nil
		}
		all := map[string]any{}
		for name, of := range t.AttributeTypes {
			member := k.Member(name)
			if inner := k.filled(of, part(value, member), part(usual, member)); inner != nil {
				all[member] = inner
			}
		}
		return all
	case tftypes.List:
		list, _ := value.([]any)
		all := make([]any, len(list))
		for i, element := range list {
			all[i] = k.filled(t.ElementType, element, part(usual, strconv.Itoa(i)))
		}
		return all
	}
	if value == nil && t.Is(tftypes.Bool) {
		return false
	}
	return value
}
