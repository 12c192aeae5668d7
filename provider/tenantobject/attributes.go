package tenantobject

import (
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/planmodifiers"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/validators"
)

// The attributes of an object refuse null elements and what the API's object cannot
// tell from an absent member: an empty text, a zero. ValidateConfig applies the API's
// rules to all else.

// TextAttribute is an optional text.
func TextAttribute(description string, modifiers ...planmodifier.String) schema.Attribute {
	return schema.StringAttribute{
		Optional: true, MarkdownDescription: description, PlanModifiers: modifiers,
		Validators: []validator.String{validators.Text()},
	}
}

// ChoiceAttribute is an optional text that is one of some.
func ChoiceAttribute(description string, of ...string) schema.Attribute {
	return schema.StringAttribute{
		Optional: true, MarkdownDescription: description,
		Validators: []validator.String{validators.Choice(of...)},
	}
}

// RequiredText is a required text.
func RequiredText(description string, modifiers ...planmodifier.String) schema.Attribute {
	return schema.StringAttribute{Required: true, MarkdownDescription: description, PlanModifiers: modifiers}
}

// NameAttribute is the name of an object. Another name is another object.
func NameAttribute(description string, valid ...validator.String) schema.Attribute {
	if len(valid) == 0 {
		valid = []validator.String{validators.Name()}
	}
	return schema.StringAttribute{
		Required: true, MarkdownDescription: description + " A change replaces the resource.",
		Validators: valid, PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
	}
}

// DurationAttribute is an optional duration.
func DurationAttribute(description string) schema.Attribute {
	return TextAttribute(description, planmodifiers.KeepDuration())
}

// NumberAttribute is an optional whole number that is at least so much.
func NumberAttribute(description string, least int64) schema.Attribute {
	return schema.Int64Attribute{
		Optional: true, MarkdownDescription: description,
		Validators: []validator.Int64{validators.Number(least, 0)},
	}
}

// BoolAttribute is an optional boolean.
func BoolAttribute(description string) schema.Attribute {
	return schema.BoolAttribute{Optional: true, MarkdownDescription: description}
}

// TextListAttribute is an optional list of texts.
func TextListAttribute(description string) schema.Attribute {
	return schema.ListAttribute{
		ElementType: types.StringType, Optional: true, MarkdownDescription: description,
		Validators: []validator.List{listvalidator.NoNullValues()},
	}
}

// TextSetAttribute is an optional set of texts: their order does not count.
func TextSetAttribute(description string) schema.Attribute {
	return schema.SetAttribute{
		ElementType: types.StringType, Optional: true, MarkdownDescription: description,
		Validators: []validator.Set{setvalidator.NoNullValues()},
	}
}

// RequiredTextSet is a required set of texts.
func RequiredTextSet(description string) schema.Attribute {
	return schema.SetAttribute{
		ElementType: types.StringType, Required: true, MarkdownDescription: description,
		Validators: []validator.Set{setvalidator.NoNullValues()},
	}
}

// ObjectAttribute is an optional object.
func ObjectAttribute(description string, of map[string]schema.Attribute) schema.Attribute {
	return Typed(schema.SingleNestedAttribute{Optional: true, MarkdownDescription: description, Attributes: of})
}

// ObjectListAttribute is an optional list of objects.
func ObjectListAttribute(description string, of map[string]schema.Attribute) schema.Attribute {
	return Typed(schema.ListNestedAttribute{
		Optional: true, MarkdownDescription: description,
		NestedObject: schema.NestedAttributeObject{Attributes: of},
		Validators:   []validator.List{listvalidator.NoNullValues()},
	})
}

// Typed returns an attribute with its type. The framework asks each attribute for it at each path of a
// value, and would otherwise put the type of a whole tree together each time.
func Typed(attribute schema.Attribute) schema.Attribute {
	switch a := attribute.(type) {
	case schema.SingleNestedAttribute:
		a.CustomType, _ = a.GetType().(types.ObjectType)
		return a
	case schema.ListNestedAttribute:
		a.NestedObject.CustomType, _ = a.NestedObject.Type().(types.ObjectType)
		a.CustomType, _ = a.GetType().(types.ListType)
		return a
	}
	return attribute
}
