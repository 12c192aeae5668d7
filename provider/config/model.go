package config

import (
	"cmp"
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantresource"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/window"
)

// model is the resource as Terraform has it.
type model struct {
	tenantresource.Common
	WorkerApplications types.Set  `tfsdk:"worker_applications"`
	MaintenanceWindows types.List `tfsdk:"maintenance_windows"`
}

// ToAPI is what the model owns: a list that it does not manage is nil, and one
// without elements is empty but not nil. All values must be known.
func (m *model) ToAPI(ctx context.Context, diags *diag.Diagnostics) v1.OSUpgrade {
	var owned v1.OSUpgrade
	if !m.WorkerApplications.IsNull() {
		var names []string
		diags.Append(m.WorkerApplications.ElementsAs(ctx, &names, false)...)
		owned.WorkerApplications = toApplications(names)
	}
	owned.MaintenanceWindows = window.ToAPI(ctx, m.MaintenanceWindows, diags)
	return owned
}

func toApplications(names []string) []v1.WorkerApplication {
	list := make([]v1.WorkerApplication, 0, len(names))
	for _, name := range names {
		list = append(list, v1.WorkerApplication{Name: name})
	}
	slices.SortFunc(list, func(a, b v1.WorkerApplication) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// FromAPI takes the server's lists over into those that the model manages, in
// the order and spelling that it has. With all it begins to manage every list
// that the server has, as after an import.
func (m *model) FromAPI(ctx context.Context, server v1.OSUpgrade, all bool, diags *diag.Diagnostics) {
	if !m.WorkerApplications.IsNull() || all && server.WorkerApplications != nil {
		m.WorkerApplications = fromApplications(server.WorkerApplications)
	}
	if !m.MaintenanceWindows.IsNull() || all && server.MaintenanceWindows != nil {
		prior := window.Models(ctx, m.MaintenanceWindows, diags)
		m.MaintenanceWindows = window.List(ctx, window.Keep(prior, server.MaintenanceWindows), diags)
	}
}

func fromApplications(list []v1.WorkerApplication) types.Set {
	names := make([]attr.Value, 0, len(list))
	for _, application := range list {
		name := types.StringValue(application.Name)
		if !slices.ContainsFunc(names, name.Equal) {
			names = append(names, name)
		}
	}
	return types.SetValueMust(types.StringType, names)
}

// Claims are the lists that the model manages.
func (m *model) Claims() map[string]path.Path {
	owned := map[string]path.Path{}
	if !m.WorkerApplications.IsNull() {
		owned[applications] = path.Root(applications)
	}
	if !m.MaintenanceWindows.IsNull() {
		owned[windows] = path.Root(windows)
	}
	return owned
}

// Loss tells that without the lists no run starts by itself.
func (m *model) Loss(tenant string) (summary, detail string) {
	if len(m.MaintenanceWindows.Elements())+len(m.WorkerApplications.Elements()) == 0 {
		return "", ""
	}
	return "Hosts are no longer upgraded",
		"When " + TypeName + " of tenant " + tenant + " is deleted, its maintenance windows and worker applications that are managed here go. " +
			"From then on no run starts by itself. A run that is under way ends first, within timeouts.delete."
}
