package plan

import (
	"fmt"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestCells divides six hosts of two racks, of which one was silent before, into cells.
func TestCells(t *testing.T) {
	t.Parallel()
	var hosts []Host
	for n := range 6 {
		h := Host{Name: fmt.Sprintf("h%d", 6-n), Application: "appliance", Labels: map[string]string{"rack": fmt.Sprintf("r%d", n%2)}}
		hosts = append(hosts, h)
	}
	hosts[0].Labels = nil // h6
	hosts[2].Silent = true
	for _, row := range []struct {
		budget v1.Budget
		absent string
		want   string
	}{
		{v1.Budget{MaxUnavailable: "1"}, rollout.Skip, "budget b 1 [h1 h2 h3 h4 h5 h6]"},
		{v1.Budget{MaxUnavailable: "40%"}, rollout.Skip, "budget b 2 [h1 h2 h3 h4 h5 h6]"},
		{v1.Budget{MinAvailable: "50%"}, rollout.Skip, "budget b 2 [h1 h2 h3 h4 h5 h6]"},
		{v1.Budget{MinAvailable: "50%"}, rollout.CountAbsent, "budget b 3 [h1 h2 h3 h4 h5 h6]"},
		{v1.Budget{MinAvailable: "7"}, rollout.Skip, "budget b 0 [h1 h2 h3 h4 h5 h6]"},
		{v1.Budget{Per: "rack", MaxUnavailable: "10%"}, rollout.Skip, "budget b, no rack 1 [h6]; budget b, rack r0 1 [h2 h4]; budget b, rack r1 1 [h1 h3 h5]"},
		{v1.Budget{Per: "rack", MinAvailable: "1"}, rollout.Skip, "budget b, no rack 0 [h6]; budget b, rack r0 0 [h2 h4]; budget b, rack r1 2 [h1 h3 h5]"},
		{v1.Budget{Match: &v1.Match{Labels: map[string]string{"rack": "r1"}}, MaxUnavailable: "2"}, rollout.Skip, "budget b 2 [h1 h3 h5]"},
		{v1.Budget{Match: &v1.Match{Hosts: []string{"nobody"}}, MaxUnavailable: "2"}, rollout.Skip, ""},
	} {
		var got string
		for _, c := range (Budgets{{"b", row.budget}}).Cells(hosts, row.absent) {
			got += fmt.Sprintf("; %s %d %v", c.Name(), c.MaxUnavailable, c.Hosts)
		}
		if got = got[min(2, len(got)):]; got != row.want {
			t.Errorf("%+v, absent %s: %s, want %s", row.budget, row.absent, got, row.want)
		}
	}
	if a, b := (Budgets{{"b", v1.Budget{MaxUnavailable: "1"}}}).ID(), (Budgets{{"b", v1.Budget{MaxUnavailable: "2"}}}).ID(); a == b || a == "" || (Budgets{}).ID() != "" {
		t.Errorf("the budgets are %q and %q", a, b)
	}
}
