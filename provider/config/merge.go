package config

import (
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/path"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/window"
)

// In this file a nil list of prior or want is not owned; see model.ToAPI. On the
// server, a nil list is an empty list.

// merged returns the complete object to write: the owned lists, and the server's
// other lists.
func merged(want, server v1.OSUpgrade) v1.OSUpgrade {
	if want.WorkerApplications == nil {
		want.WorkerApplications = server.WorkerApplications
	}
	if want.MaintenanceWindows == nil {
		want.MaintenanceWindows = server.MaintenanceWindows
	}
	return want
}

// inSync reports whether the server has the owned lists.
func inSync(want, server v1.OSUpgrade) bool {
	return (want.WorkerApplications == nil || sameApplications(want, server)) &&
		(want.MaintenanceWindows == nil || sameWindows(want, server))
}

// unchanged reports whether a change from prior to want needs no write. A list
// that is no longer owned stays as it is.
func unchanged(prior, want v1.OSUpgrade) bool {
	begins := want.WorkerApplications != nil && prior.WorkerApplications == nil ||
		want.MaintenanceWindows != nil && prior.MaintenanceWindows == nil
	return !begins && inSync(want, prior)
}

// ownsAll reports whether both lists are owned.
func ownsAll(want v1.OSUpgrade) bool {
	return want.WorkerApplications != nil && want.MaintenanceWindows != nil
}

// empty reports whether both lists are empty.
func empty(c v1.OSUpgrade) bool {
	return len(c.WorkerApplications) == 0 && len(c.MaintenanceWindows) == 0
}

// restricted returns the owned lists of c. An owned list that c does not have is
// empty.
func restricted(c, owned v1.OSUpgrade) v1.OSUpgrade {
	part := emptied(owned)
	if owned.WorkerApplications != nil && c.WorkerApplications != nil {
		part.WorkerApplications = c.WorkerApplications
	}
	if owned.MaintenanceWindows != nil && c.MaintenanceWindows != nil {
		part.MaintenanceWindows = c.MaintenanceWindows
	}
	return part
}

// emptied returns the owned lists after a deletion: empty.
func emptied(owned v1.OSUpgrade) v1.OSUpgrade {
	if owned.WorkerApplications != nil {
		owned.WorkerApplications = []v1.WorkerApplication{}
	}
	if owned.MaintenanceWindows != nil {
		owned.MaintenanceWindows = []v1.MaintenanceWindow{}
	}
	return owned
}

// conflicts is a three-way comparison of what the resource owned, what the
// server has and what is wanted. A list that was not
// owned before counts as empty.
func conflicts(prior, server, want v1.OSUpgrade) []tenantobject.Conflict {
	var found []tenantobject.Conflict
	if want.WorkerApplications != nil && !sameApplications(server, prior) && !sameApplications(server, want) {
		found = append(found, tenantobject.Conflict{
			At: path.Root(applications), Unowned: prior.WorkerApplications == nil,
			Was: names(prior), Server: names(server), Want: names(want),
		})
	}
	if want.MaintenanceWindows != nil && !sameWindows(server, prior) && !sameWindows(server, want) {
		found = append(found, tenantobject.Conflict{
			At: path.Root(windows), Unowned: prior.MaintenanceWindows == nil,
			Was: window.Keys(prior.MaintenanceWindows), Server: window.Keys(server.MaintenanceWindows), Want: window.Keys(want.MaintenanceWindows),
		})
	}
	return found
}

func sameApplications(a, b v1.OSUpgrade) bool { return slices.Equal(names(a), names(b)) }

func sameWindows(a, b v1.OSUpgrade) bool {
	return window.Same(a.MaintenanceWindows, b.MaintenanceWindows)
}

// names returns the sorted names of the applications without duplicates.
func names(c v1.OSUpgrade) []string {
	list := make([]string, 0, len(c.WorkerApplications))
	for _, application := range c.WorkerApplications {
		list = append(list, application.Name)
	}
	slices.Sort(list)
	return slices.Compact(list)
}
