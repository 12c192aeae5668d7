package client

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// same reports whether two configurations mean the same. The order of their
// entries has no meaning, and servers may change it as they may the spelling.
func same(a, b v1.OSUpgrade) bool {
	a, b = a.Canonical(), b.Canonical()
	return slices.Equal(applications(a), applications(b)) && slices.Equal(windows(a), windows(b))
}

func applications(c v1.OSUpgrade) []v1.WorkerApplication {
	return slices.SortedFunc(slices.Values(c.WorkerApplications), func(a, b v1.WorkerApplication) int {
		return cmp.Compare(a.Name, b.Name)
	})
}

func windows(c v1.OSUpgrade) []v1.MaintenanceWindow {
	return slices.SortedFunc(slices.Values(c.MaintenanceWindows), func(a, b v1.MaintenanceWindow) int {
		return cmp.Or(
			cmp.Compare(a.DaysOfWeek, b.DaysOfWeek), cmp.Compare(a.StartTime, b.StartTime),
			cmp.Compare(a.Timezone, b.Timezone), cmp.Compare(a.Duration, b.Duration))
	})
}

// sameRollout reports whether two rollouts mean the same, whatever is left to
// its default in one and written out in the other.
func sameRollout(a, b v1.Rollout) bool {
	textA, errA := json.Marshal(a.WithDefaults().Canonical())
	textB, errB := json.Marshal(b.WithDefaults().Canonical())
	return errA == nil && errB == nil && bytes.Equal(textA, textB)
}
