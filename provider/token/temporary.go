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

// defaultValid is how long a token is good that is not withdrawn, as after a killed Terraform.
const defaultValid = "1h"

// limit bounds each request.
const limit = 2 * time.Minute

// temporary is what both ephemeral resources of this package share: a token that exists while
// Terraform needs it.
type temporary struct {
	typeName string
	// withdraw ends it. What has ended already is no error.
	withdraw func(ctx context.Context, api *client.Client, tenant, id string) error
	// command is what withdraws it by hand, without its id.
	command string
	data    *providerdata.Data
}

// Metadata sets the type name.
func (t *temporary) Metadata(_ context.Context, _ ephemeral.MetadataRequest, resp *ephemeral.MetadataResponse) {
	resp.TypeName = t.typeName
}

// Configure gets the connection from the provider.
func (t *temporary) Configure(_ context.Context, req ephemeral.ConfigureRequest, resp *ephemeral.ConfigureResponse) {
	t.data = providerdata.From(req.ProviderData, &resp.Diagnostics)
}

// kept is what Terraform keeps until the end.
type kept struct {
	Tenant string `json:"tenant"`
	ID     string `json:"id"`
}

// key is where it is kept.
const key = "token"

// errNoToken means that the answer to a request for a token has none.
var errNoToken = errors.New("the answer has no token or no id of it")

// open makes the token with create, and keeps its id for Close. It reports success.
func (t *temporary) open(ctx context.Context, tenant *types.String, resp *ephemeral.OpenResponse, create func(ctx context.Context, api *client.Client, tenant string) (id string, err error)) bool {
	operation := "Unable to make " + t.typeName
	*tenant = t.data.TenantOr(*tenant)
	name := providerdata.NeedTenant(&resp.Diagnostics, *tenant)
	api := t.data.Client(&resp.Diagnostics, operation)
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
	body, err := json.Marshal(kept{name, id})
	if err != nil {
		resp.Diagnostics.AddError(operation, "cannot keep the id of the token: "+err.Error())
	}
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, key, body)...)
	return true
}

// Close withdraws it. A failure is a warning: what Terraform did with it is done, and it ends by
// itself.
func (t *temporary) Close(ctx context.Context, req ephemeral.CloseRequest, resp *ephemeral.CloseResponse) {
	operation := "Unable to withdraw " + t.typeName
	token := keptOf(ctx, req, operation, &resp.Diagnostics)
	api := t.data.Client(&resp.Diagnostics, operation)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	if err := t.withdraw(ctx, api, token.Tenant, token.ID); err != nil {
		diagnostics.Failure{Operation: operation, Tenant: token.Tenant, Err: err}.Warn(&resp.Diagnostics,
			"The token with the id "+token.ID+" is good until its end. To withdraw it now: "+t.command+" "+token.ID+".")
	}
}

// keptOf returns what was kept.
func keptOf(ctx context.Context, req ephemeral.CloseRequest, operation string, diags *diag.Diagnostics) (token kept) {
	body, problems := req.Private.GetKey(ctx, key)
	diags.Append(problems...)
	if err := json.Unmarshal(body, &token); err != nil {
		diags.AddError(operation, "cannot read the id of the token: "+err.Error())
	}
	return token
}
