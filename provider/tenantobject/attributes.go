package tenantobject

import (
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostics"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/planmodifiers"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/validators"
)

// Kind returns the kind of the objects, of which of has what the mapping does not know. plural
// names them at the beginning of a sentence.
func (k *Mapping[T]) Kind(plural string, of Kind[T]) Kind[T] {
	of.TypeName, of.Locate, of.Parts, of.Validate = k.TypeName, k.Locate, Parts[T]{k.whole()}, k.ValidateConfig
	of.NotFound = plural + " are supported by osupgrade-agent only; Avassa's own API has no such object. " +
		"If the endpoint is an osupgrade-agent, check its version and the name of the tenant."
	return of
}

// Locate returns the attribute of a field of the object, among attributes. For a
// field below one of the leaves it returns the leaf: elements of a set have no index,
// and keys of a map may be any text.
func Locate(attributes map[string]schema.Attribute, field string, leaves ...string) (path.Path, bool) {
	steps := strings.Split(field, ".")
	for i, step := range steps {
		name, _, _ := strings.Cut(step, "[")
		for _, leaf := range leaves {
			if name == leaf && i > 0 {
				field = strings.Join(append(steps[:i:i], name), ".")
			}
		}
	}
	at, ok := diagnostics.Field(field)
	if !ok {
		return at, false
	}
	_, ok = attributes[at.Steps()[0].String()]
	return at, ok
}

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

// ObjectAttribute is an optional object.
func ObjectAttribute(description string, of map[string]schema.Attribute) schema.Attribute {
	return schema.SingleNestedAttribute{Optional: true, MarkdownDescription: description, Attributes: of}
}

// ObjectListAttribute is an optional list of objects.
func ObjectListAttribute(description string, of map[string]schema.Attribute) schema.Attribute {
	return schema.ListNestedAttribute{
		Optional: true, MarkdownDescription: description,
		NestedObject: schema.NestedAttributeObject{Attributes: of},
		Validators:   []validator.List{listvalidator.NoNullValues()},
	}
}
