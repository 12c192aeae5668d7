package run

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostics"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/providerdata"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/validators"
)

// This file has the actions that ask something of the run in progress: a table with a row for
// each of them, and what the rows have in common.

// Actions returns all actions: what a person may ask of runs and windows.
func Actions() []func() action.Action {
	all := []func() action.Action{func() action.Action { return &startAction{} }, func() action.Action { return &skipAction{} }, func() action.Action { return &rollbackAction{} }}
	for _, row := range asks {
		all = append(all, func() action.Action { return &askAction{ask: row} })
	}
	return all
}

// ask is what an action asks of the run in progress.
type ask struct {
	// what is the operation of the API, and send its call.
	what string
	send func(c *client.Client, ctx context.Context, tenant string, ask v1.Ask) (v1.Run, error)
	// sendAll is the call for the runs of all environments; nil if there is none.
	sendAll func(c *client.Client, ctx context.Context, tenant string, ask v1.Ask) ([]v1.Run, error)
	// does says what the action does, and did what was done to the run.
	does, did string
	// refused is the advice if the server refuses as things are.
	refused string
	// finds ends the description of environment: how else the run is found. Empty means in no other way.
	finds string
	// own are the attributes beside tenant, environment and reason.
	own map[string]schema.Attribute
	// waits is set if the action waits for the end of the run unless told otherwise, and
	// never if it cannot wait.
	waits, never bool
	// takes is set if any result of the run is as good as another.
	takes bool
}

var asks = []ask{
	{
		what: "pause", does: "Pauses the run in progress: no other host begins, and those in progress finish.", did: "was paused",
		send:    (*client.Client).Pause,
		refused: "Nothing was paused. A run can be paused while it is in progress and not paused already.",
		never:   true,
	},
	{
		what: "resume", does: "Continues the run in progress that is paused, by a person or because it waits for a decision.", did: "was resumed",
		send:    (*client.Client).Resume,
		refused: "Nothing was resumed. A run can be resumed while it is in progress and paused.",
		own: map[string]schema.Attribute{"reset_failures": schema.BoolAttribute{
			Optional: true, MarkdownDescription: "Whether the hosts that have failed so far no longer count against `max_failures`; `false` by default.",
		}},
	},
	{
		what: "abort", does: "Aborts the run in progress: no other host begins, and the run ends when those in progress have finished.", did: "was aborted",
		send: (*client.Client).Abort, sendAll: (*client.Client).AbortAll, finds: ", but with `all`",
		refused: "Nothing was aborted. A run can be aborted while it is in progress, and once; now = true ends also one that is aborting.",
		own: map[string]schema.Attribute{
			"now": schema.BoolAttribute{
				Optional: true, MarkdownDescription: "Whether the run ends at once, without waiting for hosts in progress; `false` by default.",
			},
			"all": schema.BoolAttribute{
				Optional: true, MarkdownDescription: "Whether to abort the runs of all environments; `false` by default. Not with `environment`. If no run is in progress, nothing happens.",
			},
		},
		waits: true, takes: true,
	},
	{
		what: "approve", does: "Approves a stage of the run in progress that waits for approval.", did: "was approved",
		send:    (*client.Client).Approve,
		refused: "Nothing was approved. A stage can be approved while the run waits for that; osupgrade-agent status names the stage.",
		own: map[string]schema.Attribute{"stage": schema.StringAttribute{
			Required: true, MarkdownDescription: "The name of the stage to approve.",
			Validators: []validator.String{validators.Name()},
		}},
	},
	{
		what: "release", does: "Frees the slot of a host by force: the run no longer waits for the host, which may be out of service.", did: "continues",
		send: (*client.Client).Release, finds: "; by default the run of the host",
		refused: "Nothing was released. A host can be released while it holds a slot or is out of service; osupgrade-agent hosts shows those.",
		own: map[string]schema.Attribute{"host": schema.StringAttribute{
			Required: true, MarkdownDescription: "The name of the host whose slot is to be freed.",
			Validators: []validator.String{validators.Text()},
		}},
	},
}

// askAction is one of the actions.
type askAction struct {
	connected
	ask ask
}

var (
	_ action.ActionWithConfigure      = (*askAction)(nil)
	_ action.ActionWithModifyPlan     = (*askAction)(nil)
	_ action.ActionWithValidateConfig = (*askAction)(nil)
)

func (a *askAction) typeName() string { return "osupgrade_" + a.ask.what }

// Metadata sets the type name.
func (a *askAction) Metadata(_ context.Context, _ action.MetadataRequest, resp *action.MetadataResponse) {
	resp.TypeName = a.typeName()
}

// Schema defines the action.
func (a *askAction) Schema(_ context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: a.ask.does + " Supported by `osupgrade-agent` only.",
		Attributes: map[string]schema.Attribute{
			"tenant": tenantActionAttribute(),
			"environment": schema.StringAttribute{
				Optional: true, MarkdownDescription: "The environment of the run; `default` has the hosts that are in no other. Needed if runs of several environments are in progress" + a.ask.finds + ".",
				Validators: []validator.String{validators.Name()},
			},
			"reason": schema.StringAttribute{
				Required: true, MarkdownDescription: "The reason, kept in the history of the run; at most 1,000 characters.",
				Validators: []validator.String{validators.Text()},
			},
		},
	}
	for name, attribute := range a.ask.own {
		resp.Schema.Attributes[name] = attribute
	}
	if !a.ask.never {
		for name, attribute := range waitAttributes(a.ask.waits) {
			resp.Schema.Attributes[name] = attribute
		}
	}
	if a.ask.takes {
		delete(resp.Schema.Attributes, "accept")
	}
}

// askModel is a configuration of one of the actions. What its schema does not have is null.
type askModel struct {
	Tenant, Environment, Reason, Stage, Host types.String
	Now, All, ResetFailures, Wait            types.Bool
	Accept                                   types.Set
	Timeouts                                 types.Object
}

func (a *askAction) read(ctx context.Context, config tfsdk.Config, diags *diag.Diagnostics) askModel {
	m := askModel{Accept: types.SetNull(types.StringType)}
	for name, into := range map[string]any{
		"tenant": &m.Tenant, "environment": &m.Environment, "reason": &m.Reason, "stage": &m.Stage, "host": &m.Host,
		"now": &m.Now, "all": &m.All, "reset_failures": &m.ResetFailures, "wait": &m.Wait, "accept": &m.Accept, "timeouts": &m.Timeouts,
	} {
		if _, has := config.Schema.GetAttributes()[name]; has {
			diags.Append(config.GetAttribute(ctx, path.Root(name), into)...)
		}
	}
	return m
}

func (m askModel) request() v1.Ask {
	return v1.Ask{
		Environment: m.Environment.ValueString(), Reason: m.Reason.ValueString(), Stage: m.Stage.ValueString(), Host: m.Host.ValueString(),
		Now: m.Now.ValueBool(), All: m.All.ValueBool(), ResetFailures: m.ResetFailures.ValueBool(),
	}
}

// ValidateConfig applies the API's rules. It waits until all values are known.
func (a *askAction) ValidateConfig(ctx context.Context, req action.ValidateConfigRequest, resp *action.ValidateConfigResponse) {
	m := a.read(ctx, req.Config, &resp.Diagnostics)
	if resp.Diagnostics.HasError() || m.Environment.IsUnknown() || m.All.IsUnknown() || m.Reason.IsUnknown() || m.Stage.IsUnknown() || m.Host.IsUnknown() {
		return
	}
	invalid(a.typeName(), m.request().Validate(a.ask.what), &resp.Diagnostics)
}

// ModifyPlan tells that there is no tenant.
func (a *askAction) ModifyPlan(ctx context.Context, req action.ModifyPlanRequest, resp *action.ModifyPlanResponse) {
	a.plannedTenant(a.read(ctx, req.Config, &resp.Diagnostics).Tenant, &resp.Diagnostics)
}

// Invoke asks, and waits for the end of the run if it is to.
func (a *askAction) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	operation := "Unable to invoke " + a.typeName()
	m := a.read(ctx, req.Config, &resp.Diagnostics)
	tenant := providerdata.NeedTenant(&resp.Diagnostics, a.data.TenantOr(m.Tenant))
	api := a.data.Client(&resp.Diagnostics, operation)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, invokeLimit(m.Timeouts))
	defer cancel()
	runs, err := a.ask.invoke(ctx, api, tenant, m.request())
	if err != nil {
		diagnostics.Failure{
			Operation: operation, Tenant: tenant, Err: err, Refused: a.ask.refused,
			NotFound: "Check the name of the tenant and the provider's endpoint. Only osupgrade-agent has this operation.",
		}.Add(&resp.Diagnostics, diagnostics.Field)
		return
	}
	w := waiter{
		typeName: a.typeName(), did: a.ask.did, limit: invokeLimitName,
		retry: "set retry_of = %d in " + startTypeName, again: "invoke " + startTypeName, send: sender(resp),
		interrupted: "osupgrade-agent watch shows it.",
	}
	w.anyResult = a.ask.takes
	if len(runs) == 0 {
		w.tell(ctx, "no run is in progress")
	}
	for _, run := range runs {
		w.done(ctx, run)
	}
	if wait := m.Wait.ValueBool() || m.Wait.IsNull() && a.ask.waits; !wait || a.ask.never {
		return
	}
	for _, run := range runs {
		w.await(ctx, api, tenant, run, m.Accept, &resp.Diagnostics)
	}
}

// invoke asks, and returns the runs that it was about.
func (a ask) invoke(ctx context.Context, api *client.Client, tenant string, body v1.Ask) ([]v1.Run, error) {
	if body.All {
		return a.sendAll(api, ctx, tenant, body)
	}
	run, err := a.send(api, ctx, tenant, body)
	return []v1.Run{run}, err
}

// connected is the part of an action that has the provider's data.
type connected struct{ data *providerdata.Data }

// Configure gets the connection from the provider.
func (c *connected) Configure(_ context.Context, req action.ConfigureRequest, resp *action.ConfigureResponse) {
	c.data = providerdata.From(req.ProviderData, &resp.Diagnostics)
}

// plannedTenant returns the tenant of an action, which may be unknown until the apply. It
// adds an error if there is none.
func (c *connected) plannedTenant(own types.String, diags *diag.Diagnostics) types.String {
	tenant := c.data.TenantOr(own)
	if !own.IsUnknown() && !tenant.IsUnknown() {
		providerdata.NeedTenant(diags, tenant)
	}
	if own.IsUnknown() {
		return own
	}
	return tenant
}

func tenantActionAttribute() schema.Attribute {
	return schema.StringAttribute{
		Optional: true, MarkdownDescription: "The tenant; the provider's `tenant` by default.",
		Validators: []validator.String{validators.Name()},
	}
}

// invokeLimitName is the attribute that bounds an invocation.
const invokeLimitName = "timeouts.invoke"

// waitAttributes are the attributes of an action that may wait for the end of the run.
func waitAttributes(usually bool) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"wait": schema.BoolAttribute{
			Optional: true,
			MarkdownDescription: fmt.Sprintf("Whether to wait until the run has ended, and to fail if its result is not good; `%t` by default. "+
				"Terraform shows the progress meanwhile.", usually),
		},
		"accept": schema.SetAttribute{
			ElementType: types.StringType, Optional: true,
			MarkdownDescription: aboutAccept, Validators: acceptValidators(),
		},
		"timeouts": schema.SingleNestedAttribute{
			Optional: true, MarkdownDescription: tenantobject.AboutTimeouts,
			Attributes: map[string]schema.Attribute{"invoke": schema.StringAttribute{
				Optional: true, MarkdownDescription: "For the action, with the wait; `50m` by default, so that a job of one hour ends in order. The run continues.",
				Validators: tenantobject.TimeoutValidators(),
			}},
		},
	}
}

// invokeLimit returns the timeout of an invocation.
func invokeLimit(timeouts types.Object) time.Duration {
	return tenantobject.Timeout(timeouts, "invoke", createLimit)
}

// sender returns what shows a line of progress.
func sender(resp *action.InvokeResponse) func(line string) {
	return func(line string) { resp.SendProgress(action.InvokeProgressEvent{Message: line}) }
}
