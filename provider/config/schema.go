package config

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/attribute"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/maintenancewindow"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantresource"
)

// Schema defines the resource.
func (*Resource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "A tenant's OS-upgrade configuration: the applications whose hosts take part, and the maintenance windows in which a run may be under way.\n\n" +
			"Each tenant has one configuration. The resource manages the lists that it declares: an omitted list is not managed, " +
			"`[]` means none, and any other value means exactly its elements. So one Terraform configuration can own the applications of a tenant and another its windows.\n\n" +
			"Another form of the same time, time zone or duration (`4h` or `240m`) is no change. " +
			"Another order of the same windows or another case of a day is shown in the plan, but nothing is written.",
		Attributes: tenantresource.Attributes(ctx, map[string]schema.Attribute{
			applications: applicationsAttribute(),
			windows:      windowsAttribute(),
		}),
	}
}

func applicationsAttribute() schema.Attribute {
	return schema.SetAttribute{
		ElementType: types.StringType,
		Optional:    true,
		MarkdownDescription: "The names of the worker applications. Every host on which one of them is scheduled takes part. " +
			"Omitted: not managed. `[]`: none.",
		Validators: []validator.Set{
			setvalidator.NoNullValues(),
			setvalidator.SizeAtMost(v1.MaxApplications),
			setvalidator.ValueStringsAre(attribute.Name()),
		},
	}
}

func windowsAttribute() schema.Attribute {
	return schema.ListNestedAttribute{
		Optional: true,
		MarkdownDescription: "The maintenance windows. A run may be under way while any of them is open; overlapping windows count as one. Their order does not matter. " +
			"Omitted: not managed. `[]`: none, so that no run starts by itself.",
		NestedObject: schema.NestedAttributeObject{Attributes: windowAttributes()},
		Validators: []validator.List{
			listvalidator.NoNullValues(),
			listvalidator.SizeAtMost(v1.MaxWindows),
			maintenancewindow.Distinct(),
		},
	}
}

func windowAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"days_of_week": schema.SetAttribute{
			ElementType:         types.StringType,
			Required:            true,
			MarkdownDescription: "The days on which the window starts, as English names in any case, such as `[\"Friday\", \"Saturday\"]`.",
			Validators: []validator.Set{
				setvalidator.NoNullValues(),
				setvalidator.SizeAtLeast(1),
				setvalidator.ValueStringsAre(maintenancewindow.Day()),
				maintenancewindow.DistinctDays(),
			},
		},
		"start_time": schema.StringAttribute{
			Required:            true,
			MarkdownDescription: "The time of day at which the window starts, `HH:MM` from `00:00` to `23:59`.",
			Validators:          []validator.String{maintenancewindow.StartTime()},
			PlanModifiers:       []planmodifier.String{attribute.KeepTimeOfDay()},
		},
		"timezone": schema.StringAttribute{
			Optional: true, Computed: true,
			Default:             stringdefault.StaticString(maintenancewindow.DefaultTimezone),
			MarkdownDescription: "The time zone of `days_of_week` and `start_time`: `site-local`, `UTC` or an IANA name such as `Europe/Stockholm`; `site-local` by default.",
			Validators:          []validator.String{maintenancewindow.Timezone()},
			PlanModifiers:       []planmodifier.String{attribute.KeepZone()},
		},
		"duration": schema.StringAttribute{
			Required:            true,
			MarkdownDescription: "The duration of the window in elapsed time, from `1m` to `7d`, such as `4h`, `90m` or `1d4h`.",
			Validators:          []validator.String{maintenancewindow.Duration()},
			PlanModifiers:       []planmodifier.String{attribute.KeepDuration()},
		},
	}
}
