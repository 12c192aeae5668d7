package calendar

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/attribute"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantresource"
)

// Schema describes the resource.
func (*Resource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	all := attributes()
	maps.Copy(all, map[string]schema.Attribute{
		"name": schema.StringAttribute{
			Required:            true,
			MarkdownDescription: "The name of the calendar, unique in its tenant. Another one replaces the resource.",
			Validators:          []validator.String{attribute.Name()},
			PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
		},
	})
	resp.Schema = schema.Schema{
		MarkdownDescription: "A named calendar of a tenant: further times at which runs may be under way, or times at which none may. " +
			"Offered by `osupgrade-agent` only; Avassa's own API has no such object. " +
			"The guide [Maintenance Calendar](../guides/calendar.md) explains how windows, calendars and changes of the clock add up.\n\n" +
			"A tenant may have several calendars, and each is independent of the others. A freeze wins over every window and every calendar of kind `allow`, " +
			"also over a run that is under way: no further host is begun.\n\n" +
			"What is in it stands either in `events`, or in an iCalendar text in `ics`. A calendar without either never happens. " +
			"Another spelling of the same length or time (`4h` or `240m`) is no change.",
		Attributes: tenantresource.Attributes(ctx, all),
	}
}

// attributes are those that make up the API's object. What is right, the API's
// own rules say, in ValidateConfig.
func attributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"kind": schema.StringAttribute{
			Required:            true,
			MarkdownDescription: "`allow` opens at the times of its events, like one more maintenance window; `freeze` closes, whatever else is open.",
		},
		"description": text("What it is for, for people."),
		"events": schema.ListNestedAttribute{
			Optional:            true,
			MarkdownDescription: "The events; `[]` means none.",
			NestedObject:        schema.NestedAttributeObject{Attributes: eventAttributes()},
			Validators:          []validator.List{listvalidator.NoNullValues()},
		},
		"ics": text("A whole iCalendar text (RFC 5545), such as `file(\"freeze.ics\")`, kept as it is. Instead of `events`."),
	}
}

func eventAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"summary": text("What it is called in plans and in the list of windows."),
		"start": schema.StringAttribute{
			Required: true,
			MarkdownDescription: "When it begins, on the clock of `timezone`: a time such as `2026-12-24T18:00` or, for an event that lasts all day, " +
				"a date such as `2026-12-24`.",
			PlanModifiers: []planmodifier.String{attribute.KeepTime()},
		},
		"end": spelt("When it ends, written like `start`; of an event that lasts all day, the date after its last. "+
			"There is an `end` or a `duration`; an event that lasts all day may have neither, and then lasts for a day.", attribute.KeepTime()),
		"duration": spelt("How long it lasts in elapsed time, such as `4h`, `90m` or `1d4h`; at most `7d` in a calendar of kind `allow`, `366d` in a freeze.", attribute.KeepDuration()),
		"timezone": text("The zone of its times: `site-local`, `UTC` or an IANA name such as `Europe/Stockholm`; `site-local` by default."),
		"all_day": schema.BoolAttribute{
			Optional:            true,
			MarkdownDescription: "Whether it lasts from midnight to midnight; its times are dates then. `false` by default.",
		},
		"rrule":  text("How it recurs, as a rule of RFC 5545, such as `FREQ=YEARLY` or `FREQ=MONTHLY;BYDAY=-1FR`; once by default."),
		"rdate":  texts("Further starts, written like `start`."),
		"exdate": texts("Starts to leave out, written like `start`; a date leaves out every start on it."),
	}
}

func text(description string) schema.Attribute { return spelt(description) }

func spelt(description string, modifiers ...planmodifier.String) schema.Attribute {
	return schema.StringAttribute{Optional: true, MarkdownDescription: description, PlanModifiers: modifiers}
}

func texts(description string) schema.Attribute {
	return schema.ListAttribute{
		ElementType: types.StringType, Optional: true, MarkdownDescription: description,
		Validators: []validator.List{listvalidator.NoNullValues()},
	}
}
