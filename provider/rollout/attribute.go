package rollout

import (
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/attribute"
)

// The attributes check nothing but null elements themselves: what is right, the
// API's own rules say, in ValidateConfig.

func text(description string) schema.Attribute {
	return schema.StringAttribute{Optional: true, MarkdownDescription: description}
}

func required(description string) schema.Attribute {
	return schema.StringAttribute{Required: true, MarkdownDescription: description}
}

func number(description string) schema.Attribute {
	return schema.Int64Attribute{Optional: true, MarkdownDescription: description}
}

// length is a length of time.
func length(description string) schema.Attribute {
	return schema.StringAttribute{
		Optional: true, MarkdownDescription: description,
		PlanModifiers: []planmodifier.String{attribute.KeepDuration()},
	}
}

// textList is a list of texts whose order counts.
func textList(description string) schema.Attribute {
	return schema.ListAttribute{
		ElementType: types.StringType, Optional: true, MarkdownDescription: description,
		Validators: []validator.List{listvalidator.NoNullValues()},
	}
}

// textSet is a list of texts whose order does not count.
func textSet(description string) schema.Attribute {
	return schema.SetAttribute{
		ElementType: types.StringType, Optional: true, MarkdownDescription: description,
		Validators: []validator.Set{setvalidator.NoNullValues()},
	}
}

// objects is a list of objects whose order counts.
func objects(description string, of map[string]schema.Attribute) schema.Attribute {
	return schema.ListNestedAttribute{
		Optional: true, MarkdownDescription: description,
		NestedObject: schema.NestedAttributeObject{Attributes: of},
		Validators:   []validator.List{listvalidator.NoNullValues()},
	}
}

// matchAttribute chooses hosts.
func matchAttribute(description string) schema.Attribute {
	return schema.SingleNestedAttribute{
		Optional:            true,
		MarkdownDescription: description + " A host is chosen when it fits each attribute that is given; at least one must be.",
		Attributes: map[string]schema.Attribute{
			"hosts": textSet("Names of hosts; a host fits when its own is one of them."),
			"labels": schema.MapAttribute{
				ElementType: types.StringType, Optional: true,
				MarkdownDescription: "Labels with their values, as the host's worker tells them; a host fits when it has all of them.",
				Validators:          []validator.Map{mapvalidator.NoNullValues()},
			},
			"roles":        textSet("Roles, as the host's worker tells its own; a host fits when it has one of them."),
			"applications": textSet("Worker applications; a host fits when its worker is known under one of them."),
		},
	}
}
