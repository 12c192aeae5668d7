package config

import (
	"cmp"
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/release"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/window"
)

// model is the Terraform model of the resource.
type model struct {
	tenantobject.Common
	WorkerApplications types.Set  `tfsdk:"worker_applications"`
	MaintenanceWindows types.List `tfsdk:"maintenance_windows"`
	release.Target
}

// ToAPI returns what is owned. A list that is not managed is nil; a managed
// list without elements is empty but not nil. All values must be known.
func (m *model) ToAPI(ctx context.Context, diags *diag.Diagnostics) v1.OSUpgrade {
	var owned v1.OSUpgrade
	if !m.WorkerApplications.IsNull() {
		var names []string
		diags.Append(m.WorkerApplications.ElementsAs(ctx, &names, false)...)
		owned.WorkerApplications = toApplications(names)
	}
	owned.MaintenanceWindows = window.ToAPI(ctx, m.MaintenanceWindows, diags)
	owned.Target = m.Target.ToAPI(ctx, diags)
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

// FromAPI sets the managed lists to the server's, and keeps order and form where
// the meaning is the same. If all is set, as after an import, it sets every list
// that the server has.
func (m *model) FromAPI(ctx context.Context, server v1.OSUpgrade, all bool, diags *diag.Diagnostics) {
	if !m.WorkerApplications.IsNull() || all && server.WorkerApplications != nil {
		m.WorkerApplications = fromApplications(server.WorkerApplications)
	}
	if !m.MaintenanceWindows.IsNull() || all && server.MaintenanceWindows != nil {
		prior := window.Models(ctx, m.MaintenanceWindows, diags)
		m.MaintenanceWindows = window.List(ctx, window.Keep(prior, server.MaintenanceWindows), diags)
	}
	if to := server.Target; !m.IsNull() || all && to.Decides() {
		m.Target.FromAPI(ctx, to, diags)
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

// Claims returns what is managed.
func (m *model) Claims() map[string]path.Path {
	owned := map[string]path.Path{}
	if !m.WorkerApplications.IsNull() {
		owned[applications] = path.Root(applications)
	}
	if !m.MaintenanceWindows.IsNull() {
		owned[windows] = path.Root(windows)
	}
	if !m.IsNull() {
		owned[releases] = path.Root(releases)
	}
	return owned
}

// Loss warns that without the lists no run starts by itself.
func (m *model) Loss(tenant string) (summary, detail string) {
	if len(m.MaintenanceWindows.Elements())+len(m.WorkerApplications.Elements()) == 0 {
		return "", ""
	}
	return "Hosts are no longer upgraded",
		"Deleting " + TypeName + " of tenant " + tenant + " removes the maintenance windows and worker applications that it manages. " +
			"From then on no run starts by itself. The deletion waits for a run in progress, up to timeouts.delete."
}
