package provider_test

import (
	"context"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

// protocol is a provider that is configured for a server, without a CLI.
type protocol struct {
	tfprotov6.ProviderServer
	schemas    *tfprotov6.GetProviderSchemaResponse
	identities *tfprotov6.GetResourceIdentitySchemasResponse
}

func configured(t *testing.T, server acctest.Server) protocol {
	t.Helper()
	p := protocol{ProviderServer: providerserver.NewProtocol6(provider.New("test")())()}
	var err error
	if p.schemas, err = p.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{}); err != nil {
		t.Fatal(err)
	}
	if p.identities, err = p.GetResourceIdentitySchemas(t.Context(), &tfprotov6.GetResourceIdentitySchemasRequest{}); err != nil {
		t.Fatal(err)
	}
	config := object(t, p.schemas.Provider.ValueType(), map[string]tftypes.Value{
		"endpoint": tftypes.NewValue(tftypes.String, server.Endpoint), "token": tftypes.NewValue(tftypes.String, server.Token),
	})
	resp, err := p.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{TerraformVersion: "1.14.0", Config: config})
	healthy(t, resp.Diagnostics, err)
	return p
}

// object returns an object with these attributes; the others are null.
func object(t *testing.T, of tftypes.Type, attributes map[string]tftypes.Value) *tfprotov6.DynamicValue {
	t.Helper()
	kind, ok := of.(tftypes.Object)
	if !ok {
		t.Fatalf("%s is no object", of)
	}
	values := map[string]tftypes.Value{}
	for name, attribute := range kind.AttributeTypes {
		if values[name] = tftypes.NewValue(attribute, nil); attributes[name].Type() != nil {
			values[name] = attributes[name]
		}
	}
	value, err := tfprotov6.NewDynamicValue(of, tftypes.NewValue(of, values))
	if err != nil {
		t.Fatal(err)
	}
	return &value
}

func healthy(t *testing.T, found []*tfprotov6.Diagnostic, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range found {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			t.Fatalf("%s: %s", d.Summary, d.Detail)
		}
	}
}

// TestIdentity_import: each resource is imported by its identity, as Terraform 1.12 does,
// and a read returns the same identity and the object.
func TestIdentity_import(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	api.SetConfig(acctest.Tenant, v1.OSUpgrade{
		WorkerApplications: []v1.WorkerApplication{{Name: "a"}},
		MaintenanceWindows: []v1.MaintenanceWindow{{DaysOfWeek: "Friday, Saturday", StartTime: "22:30", Timezone: "Europe/Stockholm", Duration: "2h"}},
	})
	api.SetCalendar(acctest.Tenant, "christmas", v1.Calendar{Kind: "freeze"})
	api.SetRollout(acctest.Tenant, v1.Rollout{OnFailure: "pause"})
	run := api.AddRun(acctest.Tenant, v1.Run{Phase: "finished", Result: "completed"})
	p := configured(t, server)
	text := func(value string) tftypes.Value { return tftypes.NewValue(tftypes.String, value) }
	rows := map[string]map[string]tftypes.Value{
		"osupgrade_config":   {},
		"osupgrade_rollout":  {},
		"osupgrade_calendar": {"name": text("christmas")},
		"osupgrade_maintenance_window": {
			"days_of_week": text("Friday, Saturday"), "start_time": text("22:30"), "timezone": text("Europe/Stockholm"), "duration": text("2h"),
		},
		"osupgrade_run": {"run_id": tftypes.NewValue(tftypes.Number, run)},
	}
	for name := range p.schemas.ResourceSchemas {
		attributes, ok := rows[name]
		if !ok {
			t.Errorf("%s has no row", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			attributes["tenant"] = text(acctest.Tenant)
			p.imports(t.Context(), t, name, attributes)
		})
	}
}

func (p protocol) imports(ctx context.Context, t *testing.T, name string, attributes map[string]tftypes.Value) {
	t.Helper()
	kind := p.identities.IdentitySchemas[name].ValueType()
	identity := object(t, kind, attributes)
	imported, err := p.ImportResourceState(ctx, &tfprotov6.ImportResourceStateRequest{
		TypeName: name, Identity: &tfprotov6.ResourceIdentityData{IdentityData: identity},
	})
	healthy(t, imported.Diagnostics, err)
	read, err := p.ReadResource(ctx, &tfprotov6.ReadResourceRequest{
		TypeName: name, CurrentState: imported.ImportedResources[0].State,
		Private: imported.ImportedResources[0].Private, CurrentIdentity: imported.ImportedResources[0].Identity,
	})
	healthy(t, read.Diagnostics, err)
	want, err := identity.Unmarshal(kind)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := read.NewIdentity.IdentityData.Unmarshal(kind); err != nil || !got.Equal(want) {
		t.Errorf("the identity is %s, %v, want %s", got, err, want)
	}
	if state, err := read.NewState.Unmarshal(p.schemas.ResourceSchemas[name].ValueType()); err != nil || state.IsNull() {
		t.Errorf("the state is %s, %v", state, err)
	}
}
