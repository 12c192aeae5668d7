package environment

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/validators"
)

// DataSource is the data source osupgrade_environment: one environment by its name, as it is
// declared and what it is doing.
type DataSource struct {
	tenantobject.DataSource[one, *one]
}

var _ datasource.DataSourceWithConfigure = (*DataSource)(nil)

// NewDataSource returns the data source.
func NewDataSource() datasource.DataSource {
	return &DataSource{tenantobject.DataSource[one, *one]{TypeName: TypeName}}
}

// one is the Terraform model of the data source.
type one struct {
	tenantobject.Tenanted
	Declaration
	Status
	Declared types.Bool `tfsdk:"declared"`
}

// Fetch reads the status, and the declaration if there is one: default has none, and neither has an
// environment that was deleted while its run was in progress.
func (o *one) Fetch(ctx context.Context, api *client.Client, tenant string) error {
	name := o.Name.ValueString()
	status, err := api.EnvironmentStatus(ctx, tenant, name)
	if err != nil {
		return err
	}
	o.Status = StatusFromAPI(status)
	if name == v1.DefaultEnvironment {
		return o.declare(ctx, nil)
	}
	stored, err := client.EnvironmentNamed(name).Get(ctx, api, tenant)
	switch {
	case client.Missing(err):
		return o.declare(ctx, nil)
	case err != nil:
		return err
	}
	return o.declare(ctx, &stored.Value)
}

// declare sets the attributes of the declaration; nil is none.
func (o *one) declare(ctx context.Context, declared *v1.Environment) error {
	var diags diag.Diagnostics
	if o.Declared = types.BoolValue(declared != nil); declared == nil {
		kind.Declare(ctx, &o.Declaration, map[string]any{}, &diags)
		return problem(diags)
	}
	var m model
	m.FromAPI(ctx, *declared, true, &diags)
	o.Declaration = m.Declaration
	return problem(diags)
}

// problem returns the first error among diagnostics as an error.
func problem(diags diag.Diagnostics) error {
	for _, d := range diags.Errors() {
		return errors.New(d.Summary() + ": " + d.Detail())
	}
	return nil
}

// Schema defines the data source.
func (*DataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	all := tenantobject.ComputedLike(kind.Attributes())
	for name, attribute := range StatusAttributes() {
		all[name] = attribute
	}
	all["tenant"] = tenantobject.TenantDataAttribute()
	all["name"] = schema.StringAttribute{
		Required: true, MarkdownDescription: "The name of the environment; `default` has the hosts that are in no other.",
		Validators: []validator.String{validators.Name()},
	}
	all["declared"] = tenantobject.ComputedBool("Whether the environment is declared: not `default`, and not one that was deleted while its run was in progress. " +
		"If it is not, the attributes of the declaration are null.")
	resp.Schema = schema.Schema{
		MarkdownDescription: "One environment of a tenant: its declaration, with the attributes of the resource `osupgrade_environment`, and what it is doing. " +
			"An environment that does not exist is an error. Supported by `osupgrade-agent` only.\n\n" +
			"What it is doing changes by itself, so do not use that as a value of a resource. The data source `osupgrade_state` lists all environments.",
		Attributes: all,
	}
}
