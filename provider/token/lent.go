package token

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostics"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/providerdata"
)

// usual is how long a token is good that is not withdrawn, as after a killed Terraform.
const usual = "1h"

// limit bounds each request.
const limit = 2 * time.Minute

// lent is what an ephemeral resource of this package is, but for its attributes: something that
// is made for as long as Terraform needs it.
type lent struct {
	typeName string
	// withdraw ends it. What has ended already is no error.
	withdraw func(ctx context.Context, api *client.Client, tenant, id string) error
	// command is what withdraws it by hand, without its id.
	command string
	data    *providerdata.Data
}

// Metadata sets the type name.
func (l *lent) Metadata(_ context.Context, _ ephemeral.MetadataRequest, resp *ephemeral.MetadataResponse) {
	resp.TypeName = l.typeName
}

// Configure gets the connection from the provider.
func (l *lent) Configure(_ context.Context, req ephemeral.ConfigureRequest, resp *ephemeral.ConfigureResponse) {
	l.data = providerdata.From(req.ProviderData, &resp.Diagnostics)
}

// made is what is kept until the end.
type made struct {
	Tenant string `json:"tenant"`
	ID     string `json:"id"`
}

// key is where it is kept.
const key = "token"

// errNoToken means that the answer to a request for a token has none.
var errNoToken = errors.New("the answer has no token or no id of it")

// open makes it in a tenant, by create, which returns its id. It reports whether that had success.
func (l *lent) open(ctx context.Context, tenant *types.String, resp *ephemeral.OpenResponse, create func(ctx context.Context, api *client.Client, tenant string) (id string, err error)) bool {
	operation := "Unable to make " + l.typeName
	*tenant = l.data.TenantOr(*tenant)
	name := providerdata.NeedTenant(&resp.Diagnostics, *tenant)
	api := l.data.Client(&resp.Diagnostics, operation)
	if resp.Diagnostics.HasError() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	id, err := create(ctx, api, name)
	if err != nil {
		diagnostics.Failure{Operation: operation, Tenant: name, Err: err}.Add(&resp.Diagnostics, diagnostics.Field)
		return false
	}
	kept, err := json.Marshal(made{name, id})
	if err != nil {
		resp.Diagnostics.AddError(operation, "cannot keep the id of the token: "+err.Error())
	}
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, key, kept)...)
	return true
}

// Close withdraws it. A failure is a warning: what Terraform did with it is done, and it ends by
// itself.
func (l *lent) Close(ctx context.Context, req ephemeral.CloseRequest, resp *ephemeral.CloseResponse) {
	operation := "Unable to withdraw " + l.typeName
	token := keptOf(ctx, req, operation, &resp.Diagnostics)
	api := l.data.Client(&resp.Diagnostics, operation)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	if err := l.withdraw(ctx, api, token.Tenant, token.ID); err != nil {
		diagnostics.Failure{Operation: operation, Tenant: token.Tenant, Err: err}.Warn(&resp.Diagnostics,
			"The token with the id "+token.ID+" is good until its end. To withdraw it now: "+l.command+" "+token.ID+".")
	}
}

// keptOf returns what was kept.
func keptOf(ctx context.Context, req ephemeral.CloseRequest, operation string, diags *diag.Diagnostics) (token made) {
	kept, problems := req.Private.GetKey(ctx, key)
	diags.Append(problems...)
	if err := json.Unmarshal(kept, &token); err != nil {
		diags.AddError(operation, "cannot read the id of the token: "+err.Error())
	}
	return token
}
