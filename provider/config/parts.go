package config

import (
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/path"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/window"
)

// parts are the lists of a configuration, and what runs install. A list that is nil is not owned; see
// model.ToAPI.
var parts = tenantobject.Parts[v1.OSUpgrade]{
	listOf(applications, func(c *v1.OSUpgrade) *[]v1.WorkerApplication { return &c.WorkerApplications }, names),
	listOf(windows, func(c *v1.OSUpgrade) *[]v1.MaintenanceWindow { return &c.MaintenanceWindows }, window.Keys),
	target,
}

// listOf returns the part that is a list. keys returns what the elements mean, sorted.
func listOf[E any](attribute string, in func(*v1.OSUpgrade) *[]E, keys func([]E) []string) tenantobject.Part[v1.OSUpgrade] {
	of := func(c v1.OSUpgrade) []E { return *in(&c) }
	return tenantobject.Part[v1.OSUpgrade]{
		Owned: func(c v1.OSUpgrade) bool { return of(c) != nil },
		Same:  func(a, b v1.OSUpgrade) bool { return slices.Equal(keys(of(a)), keys(of(b))) },
		Copy:  func(to *v1.OSUpgrade, from v1.OSUpgrade) { *in(to) = of(from) },
		Clear: func(c *v1.OSUpgrade) { *in(c) = []E{} },
		Conflicts: func(prior, server, want v1.OSUpgrade) []tenantobject.Conflict {
			return []tenantobject.Conflict{{
				At: path.Root(attribute), Unowned: of(prior) == nil,
				Was: keys(of(prior)), Server: keys(of(server)), Want: keys(of(want)),
			}}
		},
	}
}

// names returns the sorted names of applications without duplicates.
func names(applications []v1.WorkerApplication) []string {
	list := make([]string, 0, len(applications))
	for _, application := range applications {
		list = append(list, application.Name)
	}
	slices.Sort(list)
	return slices.Compact(list)
}
