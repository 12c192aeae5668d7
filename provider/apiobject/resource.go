package apiobject

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/attribute"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostic"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantresource"
)

// Resource is a resource that owns an object of a kind, without its Schema.
type Resource[T, M any, P interface {
	*M
	tenantresource.Model[T]
}] struct {
	tenantresource.Resource[T, M, P]
	kind *Kind[T]
}

// New returns a resource of a kind. plural names the objects at the beginning of
// a sentence.
func New[T, M any, P interface {
	*M
	tenantresource.Model[T]
}](kind *Kind[T], plural string, of tenantresource.Kind[T]) Resource[T, M, P] {
	of.TypeName, of.Locate, of.Rules = kind.TypeName, kind.Locate, kind.Rules()
	of.NotFound = plural + " are supported by osupgrade-agent only; Avassa's own API has no such object. " +
		"If the endpoint is an osupgrade-agent, check its version and the name of the tenant."
	return Resource[T, M, P]{tenantresource.New[T, M, P](of), kind}
}

// ValidateConfig applies the API's rules.
func (r *Resource[T, M, P]) ValidateConfig(_ context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	r.kind.ValidateConfig(req.Config.Raw, &resp.Diagnostics)
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
	at, ok := diagnostic.Field(field)
	if !ok {
		return at, false
	}
	_, ok = attributes[at.Steps()[0].String()]
	return at, ok
}

// The attributes of an object refuse null elements and what the API's object cannot
// tell from an absent member: an empty text, a zero. ValidateConfig applies the API's
// rules to all else.

// Text is an optional text.
func Text(description string, modifiers ...planmodifier.String) schema.Attribute {
	return schema.StringAttribute{
		Optional: true, MarkdownDescription: description, PlanModifiers: modifiers,
		Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
	}
}

// Required is a required text.
func Required(description string, modifiers ...planmodifier.String) schema.Attribute {
	return schema.StringAttribute{Required: true, MarkdownDescription: description, PlanModifiers: modifiers}
}

// Duration is an optional duration.
func Duration(description string) schema.Attribute {
	return Text(description, attribute.KeepDuration())
}

// Number is an optional whole number that is at least so much.
func Number(description string, least int64) schema.Attribute {
	return schema.Int64Attribute{
		Optional: true, MarkdownDescription: description,
		Validators: []validator.Int64{int64validator.AtLeast(least)},
	}
}

// Bool is an optional boolean.
func Bool(description string) schema.Attribute {
	return schema.BoolAttribute{Optional: true, MarkdownDescription: description}
}

// Texts is an optional list of texts.
func Texts(description string) schema.Attribute {
	return schema.ListAttribute{
		ElementType: types.StringType, Optional: true, MarkdownDescription: description,
		Validators: []validator.List{listvalidator.NoNullValues()},
	}
}

// TextSet is an optional set of texts: their order does not count.
func TextSet(description string) schema.Attribute {
	return schema.SetAttribute{
		ElementType: types.StringType, Optional: true, MarkdownDescription: description,
		Validators: []validator.Set{setvalidator.NoNullValues()},
	}
}

// Object is an optional object.
func Object(description string, of map[string]schema.Attribute) schema.Attribute {
	return schema.SingleNestedAttribute{Optional: true, MarkdownDescription: description, Attributes: of}
}

// Objects is an optional list of objects.
func Objects(description string, of map[string]schema.Attribute) schema.Attribute {
	return schema.ListNestedAttribute{
		Optional: true, MarkdownDescription: description,
		NestedObject: schema.NestedAttributeObject{Attributes: of},
		Validators:   []validator.List{listvalidator.NoNullValues()},
	}
}
