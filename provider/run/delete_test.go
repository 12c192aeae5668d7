package run

import (
	"net/http"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/providerdata"
)

// deleted deletes a resource in this state and returns its diagnostics.
func deleted(t *testing.T, c *providerdata.Data, run v1.Run) resource.DeleteResponse {
	t.Helper()
	r := &Resource{data: c}
	var described resource.SchemaResponse
	r.Schema(t.Context(), resource.SchemaRequest{}, &described)
	var resp resource.DeleteResponse
	state := tfsdk.State{Schema: described.Schema, Raw: tftypes.NewValue(described.Schema.Type().TerraformType(t.Context()), nil)}
	m := model{request: request{common: common{Tenant: types.StringValue("acme"), Triggers: types.MapNull(types.StringType)}}}
	resp.Diagnostics.Append(state.SetAttribute(t.Context(), path.Root("tenant"), m.Tenant)...)
	m.fromAPI(t.Context(), run, &resp.Diagnostics)
	resp.Diagnostics.Append(state.SetAttribute(t.Context(), path.Root("run_id"), m.RunID)...)
	resp.Diagnostics.Append(state.SetAttribute(t.Context(), path.Root("ended_at"), m.EndedAt)...)
	r.Delete(t.Context(), resource.DeleteRequest{State: state}, &resp)
	return resp
}

func TestDelete_warnsOnlyOfARunThatGoesOn(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	access, err := client.New(client.Options{Endpoint: api.URL, Token: api.Token})
	if err != nil {
		t.Fatal(err)
	}
	known := providerdata.New(access, nil)
	run := v1.Run{ID: api.AddRun("acme", v1.Run{Phase: "upgrading"}), Phase: "upgrading"}
	if resp := deleted(t, known, run); resp.Diagnostics.WarningsCount() != 1 || resp.Diagnostics.HasError() {
		t.Errorf("got %v, want one warning", resp.Diagnostics)
	}
	if resp := deleted(t, providerdata.New(nil, []string{"endpoint"}), run); len(resp.Diagnostics) != 0 {
		t.Errorf("got %v, want nothing when the provider is not known", resp.Diagnostics)
	}
	api.FinishRun("acme", run.ID, "failed", "")
	if resp := deleted(t, known, run); len(resp.Diagnostics) != 0 {
		t.Errorf("got %v, want nothing when the run is over", resp.Diagnostics)
	}
	for _, r := range api.Requests() {
		if r.Method != http.MethodGet {
			t.Errorf("deleting asked for %s %s, want GET only", r.Method, r.Path)
		}
	}
}
