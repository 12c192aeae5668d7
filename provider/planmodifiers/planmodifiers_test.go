package planmodifiers

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// TestKeep: a plan is the prior text exactly if the configured text has the same meaning.
func TestKeep(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		modifier     planmodifier.String
		prior, plan  types.String
		keepsItsForm bool
	}{
		"another form of a duration": {KeepDuration(), types.StringValue("4h"), types.StringValue("240m"), true},
		"another duration":           {KeepDuration(), types.StringValue("4h"), types.StringValue("5h"), false},
		"no duration":                {KeepDuration(), types.StringValue("x"), types.StringValue("y"), false},
		"another time of day":        {KeepTimeOfDay(), types.StringValue("01:00"), types.StringValue("01:01"), false},
		"the same zone":              {KeepZone(), types.StringValue("UTC"), types.StringValue("UTC"), true},
		"another zone":               {KeepZone(), types.StringValue("UTC"), types.StringValue("site-local"), false},
		"another form of a time":     {KeepTime(), types.StringValue("2026-12-24T18:00"), types.StringValue("2026-12-24T18:00:00"), true},
		"nothing before":             {KeepDuration(), types.StringNull(), types.StringValue("4h"), false},
		"not known yet":              {KeepDuration(), types.StringValue("4h"), types.StringUnknown(), false},
		"no longer there":            {KeepDuration(), types.StringValue("4h"), types.StringNull(), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp := planmodifier.StringResponse{PlanValue: row.plan}
			row.modifier.PlanModifyString(t.Context(), planmodifier.StringRequest{StateValue: row.prior, PlanValue: row.plan}, &resp)
			want := row.plan
			if row.keepsItsForm {
				want = row.prior
			}
			if !resp.PlanValue.Equal(want) {
				t.Errorf("planned %s, want %s", resp.PlanValue, want)
			}
		})
	}
}
