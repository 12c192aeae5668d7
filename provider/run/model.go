package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/conversion"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/wayback"
)

// common are the attributes that the resource and the action osupgrade_start have in common.
type common struct {
	Tenant         types.String `tfsdk:"tenant"`
	Triggers       types.Map    `tfsdk:"triggers"`
	OverrideWindow types.Bool   `tfsdk:"override_window"`
	Reason         types.String `tfsdk:"reason"`
	Duration       types.String `tfsdk:"duration"`
	RetryOf        types.Int64  `tfsdk:"retry_of"`
	Environment    types.String `tfsdk:"environment"`
	OverrideAfter  types.String `tfsdk:"override_after"`
	HostNames      types.Set    `tfsdk:"host_names"`
	Labels         types.Map    `tfsdk:"labels"`
	Roles          types.Set    `tfsdk:"roles"`
	Until          types.String `tfsdk:"until"`
	Release        types.String `tfsdk:"release"`
	Accept         types.Set    `tfsdk:"accept"`
	Timeouts       types.Object `tfsdk:"timeouts"`
}

// request is what somebody asks of a run that is to start.
type request struct {
	common
	// RollbackOf is null in the action: osupgrade_rollback_run rolls back a run.
	RollbackOf types.Int64 `tfsdk:"rollback_of"`
}

// model is the Terraform model of the resource.
type model struct {
	request
	Wait     types.Bool   `tfsdk:"wait"`
	RunID    types.Int64  `tfsdk:"run_id"`
	Result   types.String `tfsdk:"result"`
	OpenedAt types.String `tfsdk:"opened_at"`
	EndedAt  types.String `tfsdk:"ended_at"`
	Hosts    types.List   `tfsdk:"hosts"`
	WayBack  types.Object `tfsdk:"way_back"`
}

// start returns the request to the server.
func (m request) start() v1.Start {
	selector := m.selector()
	return v1.Start{
		Environment: m.Environment.ValueString(), OverrideAfter: m.OverrideAfter.ValueString(),
		Hosts: selector.Hosts, Labels: selector.Labels, Roles: selector.Roles,
		OverrideWindow: m.OverrideWindow.ValueBool(),
		Reason:         m.Reason.ValueString(),
		Duration:       m.Duration.ValueString(),
		RetryOf:        uint64(m.RetryOf.ValueInt64()),
		RollbackOf:     uint64(m.RollbackOf.ValueInt64()),
		Until:          m.Until.ValueString(),
		Release:        m.Release.ValueString(),
	}
}

// selector returns what the run's hosts are chosen by. A value that is unknown chooses all.
func (m request) selector() v1.Selector {
	s := v1.Selector{Hosts: texts(m.HostNames.Elements()), Roles: texts(m.Roles.Elements())}
	for key, value := range m.Labels.Elements() {
		if text, ok := value.(types.String); ok && !text.IsUnknown() {
			if s.Labels == nil {
				s.Labels = map[string]string{}
			}
			s.Labels[key] = text.ValueString()
		}
	}
	return s
}

// texts returns the known texts of a set, in order.
func texts(values []attr.Value) (all []string) {
	for _, value := range values {
		if text, ok := value.(types.String); ok && !text.IsUnknown() {
			all = append(all, text.ValueString())
		}
	}
	slices.Sort(all)
	return all
}

// purpose is what the run is for, as the beginning of the id of its request: a run under
// way that the same resource or action has started for the same purpose is that of an apply
// that did not see its end.
func (m request) purpose(typeName string) string {
	triggers := map[string]string{}
	for name, value := range m.Triggers.Elements() {
		triggers[name] = value.String()
	}
	// Maps are written in the order of their keys.
	parts := []any{typeName, m.Tenant.ValueString(), triggers, m.RetryOf.ValueInt64()}
	if selector := m.selector(); !selector.IsZero() {
		parts = append(parts, selector)
	}
	if name := m.Environment.ValueString(); name != "" {
		parts = append(parts, "environment "+name)
	}
	if stage := m.Until.ValueString(); stage != "" {
		parts = append(parts, "until "+stage)
	}
	if id := m.RollbackOf.ValueInt64(); id != 0 {
		parts = append(parts, fmt.Sprintf("rollback of %d", id))
	}
	if name := m.Release.ValueString(); name != "" {
		parts = append(parts, "release "+name)
	}
	text, err := json.Marshal(parts)
	if err != nil {
		panic("run: cannot write the purpose of a run as JSON: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return "tf-" + hex.EncodeToString(sum[:8]) + "-"
}

// accepted reports whether an apply succeeds with a result; a null accept is ["completed"].
func accepted(accept types.Set, result string) bool {
	if accept.IsNull() {
		return result == "completed"
	}
	return slices.ContainsFunc(accept.Elements(), types.StringValue(result).Equal)
}

// waits reports whether an apply waits for the end of the run.
func (m *model) waits() bool { return m.Wait.IsNull() || m.Wait.ValueBool() }

// starter is what starts the run. A resource that does not wait and has a run in the state is not
// heard in an apply that does not change it, so no resource that waits shares its run.
func (m *model) starter() string {
	if m.waits() {
		return TypeName
	}
	return TypeName + " without a wait"
}

// notEnded sets the attributes of a result that nobody waits for. They stay null until the end,
// so that a run that goes on is no drift.
func (m *model) notEnded() {
	m.Result, m.EndedAt, m.Hosts, m.WayBack = types.StringNull(), types.StringNull(), types.ListNull(hostType()), types.ObjectNull(wayback.Types())
}

// releaseOf is the release of a run. A rollback has none: each host goes back to what it had, which may be
// the release that was asked for.
func releaseOf(asked types.String, r v1.Run) types.String {
	switch {
	case r.Release != nil:
		return types.StringValue(r.Release.Name)
	case r.RollbackOf != 0 && !asked.IsUnknown():
		return asked
	}
	return types.StringNull()
}

// fromAPI sets the computed attributes from a run of the API.
func (m *model) fromAPI(ctx context.Context, r v1.Run, diags *diag.Diagnostics) {
	m.RunID = types.Int64Value(int64(r.ID))
	m.OpenedAt = conversion.Time(&r.OpenedAt)
	m.Release = releaseOf(m.Release, r)
	if !m.waits() && !r.Finished() {
		m.notEnded()
		return
	}
	m.Result, m.EndedAt = conversion.Text(r.Result), conversion.Time(r.EndedAt)
	hosts := make([]member, 0, len(r.Hosts))
	for _, h := range r.Hosts {
		hosts = append(hosts, member{HostOf(h.Hostname, h.Status, h.Error), types.BoolValue(h.UpToDate)})
	}
	list, problems := types.ListValueFrom(ctx, hostType(), hosts)
	diags.Append(problems...)
	m.Hosts, m.WayBack = list, wayback.Object(ctx, r.WayBack, diags)
}
