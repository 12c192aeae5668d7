package maintenancewindow

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"pgregory.net/rapid"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// TestKeepForm_plansThePriorValueExactlyWhenItMeansTheSame checks that the plan is
// either the prior value or the configured value, because Terraform accepts no other.
func TestKeepForm_plansThePriorValueExactlyWhenItMeansTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var diags diag.Diagnostics
		prior := rapid.SliceOfN(drawn(), 0, 3).Draw(rt, "prior")
		config := rapid.OneOf(rapid.SliceOfN(drawn(), 0, 3), rapid.Permutation(prior)).Draw(rt, "config")
		state, plan := List(t.Context(), models(prior), &diags), List(t.Context(), models(config), &diags)
		resp := planmodifier.ListResponse{PlanValue: plan}
		KeepForm().PlanModifyList(t.Context(), planmodifier.ListRequest{StateValue: state, PlanValue: plan}, &resp)
		want := plan
		if Same(windows(models(prior)), windows(models(config))) {
			want = state
		}
		if !resp.PlanValue.Equal(want) {
			rt.Fatalf("planned %v, want %v", resp.PlanValue, want)
		}
	})
}

func TestKeepForm_leavesNullAndUnknownAlone(t *testing.T) {
	t.Parallel()
	var diags diag.Diagnostics
	some := List(t.Context(), models([]v1.MaintenanceWindow{w("Friday", "01:00", "", "4h")}), &diags)
	for name, row := range map[string]struct{ state, plan types.List }{
		"creation":        {types.ListNull(Type()), some},
		"no more managed": {some, types.ListNull(Type())},
		"not known yet":   {some, types.ListUnknown(Type())},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp := planmodifier.ListResponse{PlanValue: row.plan}
			KeepForm().PlanModifyList(t.Context(), planmodifier.ListRequest{StateValue: row.state, PlanValue: row.plan}, &resp)
			if !resp.PlanValue.Equal(row.plan) {
				t.Errorf("planned %v, want %v", resp.PlanValue, row.plan)
			}
		})
	}
}
