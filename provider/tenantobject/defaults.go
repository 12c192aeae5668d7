package tenantobject

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	schemadefaults "github.com/hashicorp/terraform-plugin-framework/resource/schema/defaults"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/listdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/objectdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/conversion"
)

// The state of an object may have the default of each member that is not declared: to
// write a default out is then no change. The API's object lacks
// them, so that a server that does not know a member yet is asked for it only by who
// declares it.

// defaults are the default of a value and of what is below it, with the names of members.
type defaults struct {
	value   any // nil if there is none
	members map[string]*defaults
}

// defaulted gives optional attributes the defaults of the members of a type.
func (k *Mapping[T]) defaulted(attributes map[string]schema.Attribute, of reflect.Type, parts []string) map[string]schema.Attribute {
	all := maps.Clone(attributes)
	for name, attribute := range attributes {
		field, found := fieldOf(of, k.Member(name))
		if found && !attribute.IsRequired() {
			all[name] = k.withDefault(attribute, field, slices.Contains(parts, name))
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

func (k *Mapping[T]) withDefault(attribute schema.Attribute, field reflect.StructField, part bool) schema.Attribute {
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
		a.NestedObject.Attributes = k.defaulted(a.NestedObject.Attributes, structOf(field.Type), nil)
		a.Computed, a.Default = true, listdefault.StaticValue(types.ListValueMust(a.NestedObject.Type(), []attr.Value{}))
		return a
	case schema.SingleNestedAttribute:
		a.Attributes = k.defaulted(a.Attributes, structOf(field.Type), nil)
		if part {
			a.Computed, a.Default = true, objectdefault.StaticValue(emptyPart(a.Attributes))
		}
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

// emptyPart is an object that declares nothing.
func emptyPart(attributes map[string]schema.Attribute) types.Object {
	values, kinds := map[string]attr.Value{}, map[string]attr.Type{}
	for name, attribute := range attributes {
		kinds[name] = attribute.GetType()
		if values[name] = defaultOf(attribute); values[name] == nil {
			none, err := kinds[name].ValueFromTerraform(context.Background(), conversion.Null(kinds[name]))
			if err != nil {
				panic("tenantobject: cannot make a null of " + name + ": " + err.Error())
			}
			values[name] = none
		}
	}
	return types.ObjectValueMust(kinds, values)
}

// defaultsOf returns the defaults of attributes.
func (k *Mapping[T]) defaultsOf(attributes map[string]schema.Attribute) map[string]*defaults {
	all := map[string]*defaults{}
	for name, attribute := range attributes {
		d := &defaults{}
		if value := defaultOf(attribute); value != nil {
			d.value = k.plain(value)
		}
		switch a := attribute.(type) {
		case schema.ListNestedAttribute:
			d.members = k.defaultsOf(a.NestedObject.Attributes)
		case schema.SingleNestedAttribute:
			d.members = k.defaultsOf(a.Attributes)
		}
		all[k.Member(name)] = d
	}
	return all
}

// plain returns a value as it is in an object of the API.
func (k *Mapping[T]) plain(value attr.Value) any {
	raw, err := value.ToTerraformValue(context.Background())
	d := conversion.Document{Member: k.Member, Err: err}
	plain := d.Read("", raw)
	if d.Err != nil {
		panic("tenantobject: a default has no plain form: " + d.Err.Error())
	}
	return plain
}

// defaultOf returns the default of an attribute; nil if it has none.
func defaultOf(attribute schema.Attribute) attr.Value {
	ctx := context.Background()
	switch a := attribute.(type) {
	case schema.StringAttribute:
		var resp schemadefaults.StringResponse
		if a.Default != nil {
			a.Default.DefaultString(ctx, schemadefaults.StringRequest{}, &resp)
			return resp.PlanValue
		}
	case schema.Int64Attribute:
		var resp schemadefaults.Int64Response
		if a.Default != nil {
			a.Default.DefaultInt64(ctx, schemadefaults.Int64Request{}, &resp)
			return resp.PlanValue
		}
	case schema.BoolAttribute:
		var resp schemadefaults.BoolResponse
		if a.Default != nil {
			a.Default.DefaultBool(ctx, schemadefaults.BoolRequest{}, &resp)
			return resp.PlanValue
		}
	case schema.ListAttribute:
		return listDefault(ctx, a.Default)
	case schema.ListNestedAttribute:
		return listDefault(ctx, a.Default)
	case schema.SingleNestedAttribute:
		var resp schemadefaults.ObjectResponse
		if a.Default != nil {
			a.Default.DefaultObject(ctx, schemadefaults.ObjectRequest{}, &resp)
			return resp.PlanValue
		}
	}
	return nil
}

func listDefault(ctx context.Context, of schemadefaults.List) attr.Value {
	if of == nil {
		return nil
	}
	var resp schemadefaults.ListResponse
	of.DefaultList(ctx, schemadefaults.ListRequest{}, &resp)
	return resp.PlanValue
}

// fill returns a value with the defaults of what it does not declare.
func (d *defaults) fill(value any) any {
	switch value := value.(type) {
	case nil:
		return d.value
	case map[string]any:
		if d.members == nil {
			return value
		}
		return fillMembers(d.members, value)
	case []any:
		if d.members == nil {
			return value
		}
		list := make([]any, len(value))
		for i, element := range value {
			list[i] = (&defaults{members: d.members}).fill(element)
		}
		return list
	default:
		return value
	}
}

func fillMembers(all map[string]*defaults, members map[string]any) map[string]any {
	filled := maps.Clone(members)
	for name, d := range all {
		if value := d.fill(members[name]); value != nil {
			filled[name] = value
		}
	}
	return filled
}

// strip is the inverse of fill: it returns a value without the members that have their
// defaults.
func (d *defaults) strip(value any) any {
	switch value := value.(type) {
	case map[string]any:
		if d.members == nil {
			return value
		}
		return stripMembers(d.members, value)
	case []any:
		if d.members == nil {
			return value
		}
		list := make([]any, len(value))
		for i, element := range value {
			list[i] = (&defaults{members: d.members}).strip(element)
		}
		return list
	default:
		return value
	}
}

func stripMembers(all map[string]*defaults, members map[string]any) map[string]any {
	stripped := map[string]any{}
	for name, value := range members {
		d, ok := all[name]
		if !ok {
			d = &defaults{}
		}
		value = d.strip(value)
		if d.value == nil || !reflect.DeepEqual(value, d.strip(d.value)) {
			stripped[name] = value
		}
	}
	return stripped
}
