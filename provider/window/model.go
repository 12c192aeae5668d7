package window

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
)

// DefaultTimezone is the time zone of a window without one.
const DefaultTimezone = "site-local"

// Model is an element of an attribute maintenance_windows.
type Model struct {
	DaysOfWeek types.Set    `tfsdk:"days_of_week"`
	StartTime  types.String `tfsdk:"start_time"`
	Timezone   types.String `tfsdk:"timezone"`
	Duration   types.String `tfsdk:"duration"`
}

// Type is the type of an element.
func Type() types.ObjectType {
	return types.ObjectType{AttrTypes: map[string]attr.Type{
		"days_of_week": types.SetType{ElemType: types.StringType},
		"start_time":   types.StringType,
		"timezone":     types.StringType,
		"duration":     types.StringType,
	}}
}

// API converts an element to a window of the API. The days are joined in the
// order of the week; the other fields keep their form.
func (m Model) API() v1.MaintenanceWindow {
	return v1.MaintenanceWindow{
		DaysOfWeek: joinDays(texts(m.DaysOfWeek)),
		StartTime:  m.StartTime.ValueString(),
		Timezone:   m.Timezone.ValueString(),
		Duration:   m.Duration.ValueString(),
	}
}

// Days is the attribute days_of_week in an object that a tenantobject.Mapping maps.
var Days = tenantobject.Joined{Split: splitDays, Join: joinDays}

func joinDays(names []string) string {
	days := strings.Join(names, ", ")
	if parsed, err := window.ParseDays(days); err == nil {
		return parsed.String()
	}
	return days
}

// FromAPI converts a window of the API to an element.
func FromAPI(w v1.MaintenanceWindow) Model {
	days := []attr.Value{}
	for _, day := range splitDays(w.DaysOfWeek) {
		days = append(days, types.StringValue(day))
	}
	m := Model{
		DaysOfWeek: types.SetValueMust(types.StringType, days),
		StartTime:  types.StringValue(w.StartTime),
		Timezone:   types.StringValue(w.Timezone),
		Duration:   types.StringValue(w.Duration),
	}
	if w.Timezone == "" {
		m.Timezone = types.StringValue(DefaultTimezone)
	}
	return m
}

// AllFromAPI converts the windows of the API to elements, in their order and form.
func AllFromAPI(windows []v1.MaintenanceWindow) []Model {
	models := make([]Model, len(windows))
	for i, w := range windows {
		models[i] = FromAPI(w)
	}
	return models
}

// Models returns the elements of a list. All values must be known.
func Models(ctx context.Context, list types.List, diags *diag.Diagnostics) []Model {
	var models []Model
	diags.Append(list.ElementsAs(ctx, &models, false)...)
	return models
}

// List returns a list of elements.
func List(ctx context.Context, models []Model, diags *diag.Diagnostics) types.List {
	list, problems := types.ListValueFrom(ctx, Type(), models)
	diags.Append(problems...)
	return list
}

// ToAPI converts a list to windows: nil for a null list, empty but not nil for a
// list without elements. All values must be known.
func ToAPI(ctx context.Context, list types.List, diags *diag.Diagnostics) []v1.MaintenanceWindow {
	if list.IsNull() {
		return nil
	}
	windows := []v1.MaintenanceWindow{}
	for _, m := range Models(ctx, list, diags) {
		windows = append(windows, m.API())
	}
	return windows
}

// Known reports whether every value in a value is known.
func Known(ctx context.Context, value attr.Value) bool {
	raw, err := value.ToTerraformValue(ctx)
	return err == nil && raw.IsFullyKnown()
}

func texts(set types.Set) []string {
	var result []string
	for _, element := range set.Elements() {
		if text, ok := element.(types.String); ok {
			result = append(result, text.ValueString())
		}
	}
	return result
}
