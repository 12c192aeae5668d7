package calendar

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/planmodifiers"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/window"
)

// model is the Terraform model of the resource.
type model struct {
	tenantobject.NamedCommon
	Dates
}

// Dates are the attributes of the API's object: see tenantobject.Mapping.
type Dates struct {
	Kind        types.String `tfsdk:"kind"`
	Description types.String `tfsdk:"description"`
	Events      types.List   `tfsdk:"events"`
	ICS         types.String `tfsdk:"ics"`
	URL         types.String `tfsdk:"url"`
	Refresh     types.String `tfsdk:"refresh"`
}

// ToAPI returns the declared calendar.
func (m *model) ToAPI(ctx context.Context, diags *diag.Diagnostics) v1.Calendar {
	return kind.ToAPI(ctx, m.Dates, diags)
}

// FromAPI sets the attributes from the server's calendar.
func (m *model) FromAPI(ctx context.Context, server v1.Calendar, all bool, diags *diag.Diagnostics) {
	if all {
		server.Events = withoutDefaults(server.Events)
	}
	kind.FromAPI(ctx, &m.Dates, server, all, diags)
}

// withoutDefaults returns events without the time zone that they have by default. The server
// returns it, and a configuration usually leaves it out: an import would plan to remove it, and
// no plan can keep what is not declared, because the attribute is not computed.
func withoutDefaults(events []v1.Event) []v1.Event {
	events = slices.Clone(events)
	for i := range events {
		if events[i].Timezone == window.DefaultTimezone {
			events[i].Timezone = ""
		}
	}
	return events
}

// Loss describes the effect of a deletion.
func (m *model) Loss(tenant string) (summary, detail string) {
	calendar := "After the deletion of calendar " + m.Name.ValueString() + " of tenant " + tenant + ", "
	if m.Kind.ValueString() == "freeze" {
		return "The freeze ends", calendar + "runs may be in progress during its events, as soon as today."
	}
	return "Runs may start less often", calendar + "no run starts during its events any more, unless a maintenance window or another calendar is open."
}

// Schema defines the resource.
func (*Resource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	all := kind.Attributes()
	all["name"] = tenantobject.NameAttribute("The name of the calendar, unique in its tenant: 1 to 63 lower-case letters, digits and hyphens.")
	resp.Schema = schema.Schema{
		MarkdownDescription: "A named calendar of a tenant: further times at which runs may be in progress, or times at which none may. " +
			"Supported by `osupgrade-agent` only; Avassa's own API has no such object.\n\n" +
			"A tenant may have up to 100 independent calendars. A freeze wins over every window and every calendar of kind `allow`, " +
			"and also over a run in progress: no further host is started.\n\n" +
			"The events are in `events`, in an iCalendar text in `ics`, or in one that the site fetches from `url`. A calendar without any of them has no events. " +
			"Another form of the same duration or time (`4h` or `240m`) is no change.",
		Attributes: tenantobject.Attributes(all, tenantobject.WaitsForNo),
	}
}

// attributes are the attributes of the API's object. ValidateConfig applies the
// API's rules.
func attributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"kind":        tenantobject.RequiredText("`allow` opens during its events, like a maintenance window; `freeze` closes, whatever else is open."),
		"description": tenantobject.TextAttribute("A text for people."),
		"events":      tenantobject.ObjectListAttribute("The events, at most 1,000; `[]` means none.", eventAttributes()),
		"ics":         tenantobject.TextAttribute("Instead of `events`: an iCalendar text (RFC 5545), such as `file(\"freeze.ics\")`, stored unchanged; at most 1 MiB and 1,000 events."),
		"url": tenantobject.TextAttribute("Instead of `events`: the `https` address of an iCalendar text, which the site fetches at regular intervals. The fetched events are not in the Terraform state, so new events cause no diff. " +
			"Until the first text is fetched, a freeze lets no run start. The address is in the state and in plans; pass a secret one through a `sensitive` variable."),
		"refresh": tenantobject.DurationAttribute("How often the site fetches `url`: from `15m` to `7d`; `1h` by default."),
	}
}

func eventAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"summary": tenantobject.TextAttribute("The name of the event in plans and in the list of windows."),
		"start": tenantobject.RequiredText("The start of the event in `timezone`: a wall-clock time such as `2026-12-24T18:00` or, for an all-day event, "+
			"a date such as `2026-12-24`.", planmodifiers.KeepTime()),
		"end": tenantobject.TextAttribute("The end of the event, in the form of `start`; for an all-day event the date after the last day. "+
			"An event has an `end` or a `duration`; an all-day event without either lasts one day.", planmodifiers.KeepTime()),
		"duration": tenantobject.DurationAttribute("The duration of the event in elapsed time, such as `4h`, `90m` or `1d4h`, or of an all-day event in days, such as `2d`; from `1m` to `7d` in a calendar of kind `allow`, to `366d` in a freeze."),
		"timezone": tenantobject.TextAttribute("The time zone of `start` and `end`: `site-local`, `UTC` or an IANA name such as `Europe/Stockholm`; `site-local` by default."),
		"all_day":  tenantobject.BoolAttribute("Whether the event lasts from midnight to midnight; its times are then dates. `false` by default."),
		"rrule":    tenantobject.TextAttribute("The recurrence rule (RFC 5545), such as `FREQ=YEARLY` or `FREQ=MONTHLY;BYDAY=-1FR`; by default the event happens once."),
		"rdate":    tenantobject.TextListAttribute("Further starts, in the form of `start`; at most 1,000."),
		"exdate":   tenantobject.TextListAttribute("Excluded starts, in the form of `start`; a date excludes every start on that date. At most 1,000."),
	}
}
