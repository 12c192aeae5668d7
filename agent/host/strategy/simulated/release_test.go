package simulated

import (
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// TestPlanOfRelease checks that a host with a release goes where that says, and to no next version.
func TestPlanOfRelease(t *testing.T) {
	t.Parallel()
	h, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	job := strategy.Job{ReleaseName: "spring", Release: &release.Release{Data: []byte("{}"), Installs: map[string]string{"base-os": "3.0", "kernel": "6.1.0", "new": "1"}}}
	plan, err := h.Plan(t.Context(), job)
	want := []message.Change{{Name: "base-os", From: "1.0", To: "3.0"}, {Name: "new", To: "1"}}
	if err != nil || len(plan.Changes) != 2 || plan.Changes[0] != want[0] || plan.Changes[1] != want[1] || plan.Reboot != "" {
		t.Errorf("the plan is %+v, %v", plan, err)
	}
	job.Release.Installs = map[string]string{"base-os": "1.0"}
	if plan, err = h.Plan(t.Context(), job); err != nil || !plan.Empty() {
		t.Errorf("a host that has the release plans %+v, %v", plan, err)
	}
}
