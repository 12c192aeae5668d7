package window

import (
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	dataschema "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/planmodifiers"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
)

// Attributes are the attributes of a window in a resource.
func Attributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"days_of_week": schema.SetAttribute{
			ElementType:         types.StringType,
			Required:            true,
			MarkdownDescription: "The days on which the window starts, as English names in any case, such as `[\"Friday\", \"Saturday\"]`.",
			Validators: []validator.Set{
				setvalidator.NoNullValues(),
				setvalidator.SizeAtLeast(1),
				setvalidator.ValueStringsAre(Day()),
				DistinctDays(),
			},
		},
		"start_time": schema.StringAttribute{
			Required:            true,
			MarkdownDescription: "The time of day at which the window starts, `HH:MM` from `00:00` to `23:59`.",
			Validators:          []validator.String{StartTime()},
			PlanModifiers:       []planmodifier.String{planmodifiers.KeepTimeOfDay()},
		},
		"timezone": schema.StringAttribute{
			Optional: true, Computed: true,
			Default:             stringdefault.StaticString(DefaultTimezone),
			MarkdownDescription: "The time zone of `days_of_week` and `start_time`: `site-local`, `UTC` or an IANA name such as `Europe/Stockholm`; `site-local` by default.",
			Validators:          []validator.String{Timezone()},
			PlanModifiers:       []planmodifier.String{planmodifiers.KeepZone()},
		},
		"duration": schema.StringAttribute{
			Required:            true,
			MarkdownDescription: "The duration of the window in elapsed time, from `1m` to `7d`, such as `4h`, `90m` or `1d4h`.",
			Validators:          []validator.String{Duration()},
			PlanModifiers:       []planmodifier.String{planmodifiers.KeepDuration()},
		},
	}
}

// ListAttribute is the attribute maintenance_windows of a resource.
func ListAttribute(description string) schema.Attribute {
	return tenantobject.Typed(schema.ListNestedAttribute{
		Optional:            true,
		MarkdownDescription: description,
		NestedObject:        schema.NestedAttributeObject{Attributes: Attributes()},
		Validators: []validator.List{
			listvalidator.NoNullValues(),
			listvalidator.SizeAtMost(v1.MaxWindows),
			Distinct(),
		},
	})
}

// DataAttribute is the attribute maintenance_windows of a data source.
func DataAttribute(description string) dataschema.Attribute {
	return tenantobject.ComputedObjects(description, map[string]dataschema.Attribute{
		"days_of_week": tenantobject.ComputedTextSet("The days on which the window starts."),
		"start_time":   tenantobject.ComputedText("The time of day at which the window starts, `HH:MM`."),
		"timezone":     tenantobject.ComputedText("The time zone of `days_of_week` and `start_time`: `site-local`, `UTC` or an IANA name."),
		"duration":     tenantobject.ComputedText("The duration of the window in elapsed time, such as `4h`."),
	})
}
