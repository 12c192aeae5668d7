package run

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	rules "github.com/osupgrade/terraform-provider-osupgrade/agent/window"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/attribute"
)

// model is the Terraform model of the resource.
type model struct {
	Tenant         types.String   `tfsdk:"tenant"`
	Triggers       types.Map      `tfsdk:"triggers"`
	OverrideWindow types.Bool     `tfsdk:"override_window"`
	Reason         types.String   `tfsdk:"reason"`
	Duration       types.String   `tfsdk:"duration"`
	RetryOf        types.Int64    `tfsdk:"retry_of"`
	Timeouts       timeouts.Value `tfsdk:"timeouts"`
	RunID          types.Int64    `tfsdk:"run_id"`
	Result         types.String   `tfsdk:"result"`
	OpenedAt       types.String   `tfsdk:"opened_at"`
	EndedAt        types.String   `tfsdk:"ended_at"`
	Hosts          types.List     `tfsdk:"hosts"`
}

type host struct {
	Hostname types.String `tfsdk:"hostname"`
	Status   types.String `tfsdk:"status"`
	Error    types.String `tfsdk:"error"`
}

func hostType() types.ObjectType {
	return types.ObjectType{AttrTypes: map[string]attr.Type{
		"hostname": types.StringType, "status": types.StringType, "error": types.StringType,
	}}
}

// start returns the request to the server.
func (m model) start() v1.Start {
	return v1.Start{
		OverrideWindow: m.OverrideWindow.ValueBool(),
		Reason:         m.Reason.ValueString(),
		Duration:       m.Duration.ValueString(),
		RetryOf:        uint64(m.RetryOf.ValueInt64()),
	}
}

// createLimit is the default timeout of the creation: the longest duration of
// the run, and a margin.
func (m model) createLimit() time.Duration {
	if length, err := rules.ParseDuration(m.Duration.ValueString()); err == nil {
		return length + margin
	}
	return usualLength + margin
}

// fromAPI sets the computed attributes from a run of the API.
func (m *model) fromAPI(ctx context.Context, r v1.Run, diags *diag.Diagnostics) {
	m.RunID = types.Int64Value(int64(r.ID))
	m.Result = attribute.Text(r.Result)
	m.OpenedAt = attribute.Time(&r.OpenedAt)
	m.EndedAt = attribute.Time(r.EndedAt)
	hosts := make([]host, 0, len(r.Hosts))
	for _, h := range r.Hosts {
		hosts = append(hosts, host{attribute.Text(h.Hostname), attribute.Text(h.Status), attribute.Text(h.Error)})
	}
	list, problems := types.ListValueFrom(ctx, hostType(), hosts)
	diags.Append(problems...)
	m.Hosts = list
}
