package provider_test

import (
	"context"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

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
	setAccess(api)
	run := api.AddRun(acctest.Tenant, v1.Run{Phase: "finished", Result: "completed"})
	p := configured(t, server)
	rows := map[string]map[string]tftypes.Value{
		"osupgrade_config":            {},
		"osupgrade_rollout":           {},
		"osupgrade_calendar":          {"name": text("christmas")},
		"osupgrade_policy":            {"name": text("night-shift")},
		"osupgrade_user":              {"name": text("ann")},
		"osupgrade_tenant":            {"name": text("beta")},
		"osupgrade_webhook":           {"name": text("chat")},
		"osupgrade_approle":           {"name": text("deploy")},
		"osupgrade_disruption_budget": {"name": text("racks")},
		"osupgrade_environment":       {"name": text("basel")},
		"osupgrade_release":           {"name": text("nov")},
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
			if name != "osupgrade_tenant" {
				attributes["tenant"] = text(acctest.Tenant)
			}
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
