package state

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/attribute"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/maintenancewindow"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantdatasource"
)

// model is the Terraform model of the data source.
type model struct {
	tenantdatasource.Common
	Site               types.String              `tfsdk:"site"`
	WorkerApplications []string                  `tfsdk:"worker_applications"`
	MaintenanceWindows []maintenancewindow.Model `tfsdk:"maintenance_windows"`
	Status             types.String              `tfsdk:"status"`
	NextUpgradeIn      types.String              `tfsdk:"next_upgrade_in"`
	NextUpgradeAt      types.String              `tfsdk:"next_upgrade_at"`
	ScheduledWorkers   []worker                  `tfsdk:"scheduled_workers"`
	LastUpgradeInfo    *last                     `tfsdk:"last_upgrade_info"`
}

type worker struct {
	Host        types.String `tfsdk:"host"`
	Application types.String `tfsdk:"application"`
}

type last struct {
	StartTime types.String `tfsdk:"start_time"`
	EndTime   types.String `tfsdk:"end_time"`
	Result    types.String `tfsdk:"result"`
	Hosts     []host       `tfsdk:"hosts"`
}

type host struct {
	Hostname types.String `tfsdk:"hostname"`
	Status   types.String `tfsdk:"status"`
	Error    types.String `tfsdk:"error"`
}

// Fetch reads the state.
func (m *model) Fetch(ctx context.Context, api *client.Client, tenant string) error {
	s, err := api.State(ctx, tenant, m.Site.ValueString())
	m.fromAPI(s)
	return err
}

// fromAPI sets the attributes from the server's answer.
func (m *model) fromAPI(s v1.State) {
	m.WorkerApplications = []string{}
	for _, a := range s.WorkerApplications {
		m.WorkerApplications = append(m.WorkerApplications, a.Name)
	}
	m.MaintenanceWindows = []maintenancewindow.Model{}
	for _, w := range s.MaintenanceWindows {
		m.MaintenanceWindows = append(m.MaintenanceWindows, maintenancewindow.FromAPI(w))
	}
	m.Status = attribute.Text(s.Status)
	m.NextUpgradeIn = attribute.Text(s.NextUpgradeIn)
	m.NextUpgradeAt = attribute.Time(s.NextUpgradeAt)
	m.ScheduledWorkers = []worker{}
	for _, w := range s.ScheduledWorkers {
		m.ScheduledWorkers = append(m.ScheduledWorkers, worker{attribute.Text(w.Host), attribute.Text(w.Application)})
	}
	m.LastUpgradeInfo = lastFromAPI(s.LastUpgradeInfo)
}

func lastFromAPI(info *v1.LastUpgradeInfo) *last {
	if info == nil {
		return nil
	}
	result := &last{
		StartTime: attribute.Time(&info.StartTime),
		EndTime:   attribute.Time(&info.EndTime),
		Result:    attribute.Text(info.Result),
		Hosts:     []host{},
	}
	for _, h := range info.Hosts {
		result.Hosts = append(result.Hosts, host{attribute.Text(h.Hostname), attribute.Text(h.Status), attribute.Text(h.Error)})
	}
	return result
}
