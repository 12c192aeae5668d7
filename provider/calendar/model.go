package calendar

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostic"
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

// locate finds the attribute of a field of the API. Where something stands
// within an iCalendar text, the message says.
func locate(field string) (path.Path, bool) {
	name, _, _ := strings.Cut(field, ".")
	if name, _, _ = strings.Cut(name, "["); name == "ics" {
		return path.Root("ics"), true
	}
	at, ok := diagnostic.Field(field)
	if !ok {
		return at, false
	}
	_, ok = attributes()[at.Steps()[0].String()]
	return at, ok
}
