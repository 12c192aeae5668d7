package config

import (
	"slices"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantresource"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/window"
)

// In this file a nil list is one that the resource does not own; see
// model.ToAPI. The server's lists are compared as what they mean: nil and
// empty are the same there.

// merged is the whole object to write: the owned lists, and the server's for
// the rest.
func merged(want, server v1.OSUpgrade) v1.OSUpgrade {
	if want.WorkerApplications == nil {
		want.WorkerApplications = server.WorkerApplications
	}
	if want.MaintenanceWindows == nil {
		want.MaintenanceWindows = server.MaintenanceWindows
	}
	return want
}

// settled reports whether the server has what is owned.
func settled(want, server v1.OSUpgrade) bool {
	return (want.WorkerApplications == nil || sameApplications(want, server)) &&
		(want.MaintenanceWindows == nil || sameWindows(want, server))
}

// unchanged reports whether a resource that owned prior has nothing to write
// to own want. A list that it gives up is left as it is.
func unchanged(prior, want v1.OSUpgrade) bool {
	begins := want.WorkerApplications != nil && prior.WorkerApplications == nil ||
		want.MaintenanceWindows != nil && prior.MaintenanceWindows == nil
	return !begins && settled(want, prior)
}

// ownsAll reports whether nothing of the object is somebody else's.
func ownsAll(want v1.OSUpgrade) bool {
	return want.WorkerApplications != nil && want.MaintenanceWindows != nil
}

// empty reports whether nothing is configured.
func empty(c v1.OSUpgrade) bool {
	return len(c.WorkerApplications) == 0 && len(c.MaintenanceWindows) == 0
}

// restricted is the part of c that is owned; a list of it that c does not have
// is empty.
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

// emptied is what is left of the owned lists when they are given up.
func emptied(owned v1.OSUpgrade) v1.OSUpgrade {
	if owned.WorkerApplications != nil {
		owned.WorkerApplications = []v1.WorkerApplication{}
	}
	if owned.MaintenanceWindows != nil {
		owned.MaintenanceWindows = []v1.MaintenanceWindow{}
	}
	return owned
}

// conflicts compares three ways (terraform.md 4.5 rule 5): what the resource
// knew, what the server has, and what is wanted. A list that it begins to own
// is expected to be empty.
func conflicts(prior, server, want v1.OSUpgrade) []tenantresource.Conflict {
	var found []tenantresource.Conflict
	if want.WorkerApplications != nil && !sameApplications(server, prior) && !sameApplications(server, want) {
		found = append(found, tenantresource.Conflict{
			Attribute: applications, Taken: prior.WorkerApplications == nil,
			Was: names(prior), Server: names(server), Want: names(want),
		})
	}
	if want.MaintenanceWindows != nil && !sameWindows(server, prior) && !sameWindows(server, want) {
		found = append(found, tenantresource.Conflict{
			Attribute: windows, Taken: prior.MaintenanceWindows == nil,
			Was: window.Keys(prior.MaintenanceWindows), Server: window.Keys(server.MaintenanceWindows), Want: window.Keys(want.MaintenanceWindows),
		})
	}
	return found
}

func sameApplications(a, b v1.OSUpgrade) bool { return slices.Equal(names(a), names(b)) }

func sameWindows(a, b v1.OSUpgrade) bool {
	return window.Same(a.MaintenanceWindows, b.MaintenanceWindows)
}

// names are the applications as a set: sorted, each once.
func names(c v1.OSUpgrade) []string {
	list := make([]string, 0, len(c.WorkerApplications))
	for _, application := range c.WorkerApplications {
		list = append(list, application.Name)
	}
	slices.Sort(list)
	return slices.Compact(list)
}
