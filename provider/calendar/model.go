package calendar

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/apiobject"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/attribute"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantresource"
)

// model is the resource as Terraform has it.
type model struct {
	tenantresource.Common
	Name types.String `tfsdk:"name"`
	Dates
}

// Dates are the attributes that make up the API's object: see package whole.
type Dates struct {
	Kind        types.String `tfsdk:"kind"`
	Description types.String `tfsdk:"description"`
	Events      types.List   `tfsdk:"events"`
	ICS         types.String `tfsdk:"ics"`
}

var _ tenantresource.Named = (*model)(nil)

// ObjectName is the calendar's name.
func (m *model) ObjectName() types.String { return m.Name }

// ToAPI is what the model declares.
func (m *model) ToAPI(ctx context.Context, diags *diag.Diagnostics) v1.Calendar {
	return kind.ToAPI(ctx, m.Dates, diags)
}

// FromAPI takes over what the server has.
func (m *model) FromAPI(ctx context.Context, server v1.Calendar, all bool, diags *diag.Diagnostics) {
	kind.FromAPI(ctx, &m.Dates, server, all, diags)
}

// Claims is the calendar of that name.
func (m *model) Claims() map[string]path.Path {
	return map[string]path.Path{"the calendar " + m.Name.ValueString(): path.Root("name")}
}

// Loss tells what the calendar does no longer.
func (m *model) Loss(tenant string) (summary, detail string) {
	calendar := "When calendar " + m.Name.ValueString() + " of tenant " + tenant + " is deleted, "
	if m.Kind.ValueString() == "freeze" {
		return "Runs are no longer held back", calendar + "runs may be under way at the times of its events, a run of today included."
	}
	return "Runs may start more seldom", calendar + "no run starts at the times of its events any more, unless a maintenance window or another calendar says so."
}

// Schema describes the resource.
func (*Resource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	all := attributes()
	all["name"] = schema.StringAttribute{
		Required:            true,
		MarkdownDescription: "The name of the calendar, unique in its tenant. Another one replaces the resource.",
		Validators:          []validator.String{attribute.Name()},
		PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
	}
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
		"kind":        apiobject.Required("`allow` opens at the times of its events, like one more maintenance window; `freeze` closes, whatever else is open."),
		"description": apiobject.Text("What it is for, for people."),
		"events":      apiobject.Objects("The events; `[]` means none.", eventAttributes()),
		"ics":         apiobject.Text("A whole iCalendar text (RFC 5545), such as `file(\"freeze.ics\")`, kept as it is. Instead of `events`."),
	}
}

func eventAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"summary": apiobject.Text("What it is called in plans and in the list of windows."),
		"start": apiobject.Required("When it begins, on the clock of `timezone`: a time such as `2026-12-24T18:00` or, for an event that lasts all day, "+
			"a date such as `2026-12-24`.", attribute.KeepTime()),
		"end": apiobject.Text("When it ends, written like `start`; of an event that lasts all day, the date after its last. "+
			"There is an `end` or a `duration`; an event that lasts all day may have neither, and then lasts for a day.", attribute.KeepTime()),
		"duration": apiobject.Duration("How long it lasts in elapsed time, such as `4h`, `90m` or `1d4h`; at most `7d` in a calendar of kind `allow`, `366d` in a freeze."),
		"timezone": apiobject.Text("The zone of its times: `site-local`, `UTC` or an IANA name such as `Europe/Stockholm`; `site-local` by default."),
		"all_day":  apiobject.Bool("Whether it lasts from midnight to midnight; its times are dates then. `false` by default."),
		"rrule":    apiobject.Text("How it recurs, as a rule of RFC 5545, such as `FREQ=YEARLY` or `FREQ=MONTHLY;BYDAY=-1FR`; once by default."),
		"rdate":    apiobject.Texts("Further starts, written like `start`."),
		"exdate":   apiobject.Texts("Starts to leave out, written like `start`; a date leaves out every start on it."),
	}
}
