package plan

import (
	"fmt"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestSmallerBudget checks that a budget and a rollout which limit each other are compared, whichever
// of the two is written.
func TestSmallerBudget(t *testing.T) {
	t.Parallel()
	k := Known{}
	for n := range 4 {
		k.Hosts = append(k.Hosts, Host{Name: fmt.Sprintf("h%d", n), Application: "app", Labels: map[string]string{"rack": "r1"}})
	}
	racks := Budgets{{"racks", v1.Budget{Per: "rack", MaxUnavailable: "1"}}}
	half := &v1.Rollout{Stages: []v1.Stage{{Name: "all", MaxUnavailable: "50%"}}}
	for what, row := range map[string]struct {
		written, inForce Intent
		want             string
	}{
		"a budget":                    {Intent{Budgets: racks}, Intent{Rollout: half}, "[budgets.racks: stage all lets 2 hosts leave service at once, and disruption budget racks lets 1 of 4 hosts with rack=r1; the smaller number counts]"},
		"a rollout":                   {Intent{Rollout: half}, Intent{Budgets: racks}, "[rollout.stages[0].max-unavailable: the stage lets 2 hosts leave service at once, and disruption budget racks lets 1 of 4 hosts with rack=r1; the smaller number counts]"},
		"a budget, one host a stage":  {Intent{Budgets: racks}, Intent{}, "[]"},
		"a rollout, one host a stage": {Intent{Rollout: &v1.Rollout{}}, Intent{Budgets: racks}, "[]"},
	} {
		k.InForce = &row.inForce
		if got := fmt.Sprint(Unmatched(row.written, k)); got != row.want {
			t.Errorf("%s: %s, want %s", what, got, row.want)
		}
	}
	k.InForce = nil
	if got := Unmatched(Intent{Rollout: half, Budgets: racks}, k); got != nil {
		t.Errorf("status warns of what is meant: %v", got)
	}
}
