package view

import (
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// HostRun shows how a member fares in a run.
func HostRun(r *run.State, member run.Host) v1.HostRun {
	release := ""
	if r.Release != nil {
		release = r.Release.Name
	}
	return v1.HostRun{
		Release: release, ID: r.Key(), Phase: string(r.Phase), Result: string(r.Result), Status: string(member.Status), Class: class(member), RolledBack: rolledBack(member),
		UpToDate: member.UpToDate, RollbackOf: r.RollsBack.Of, EndedAt: OptionalTime(r.EndedAt),
	}
}

// class is the kind of a member's failure; empty for a member that did not fail.
func class(member run.Host) string {
	if member.Status != run.HostFailed {
		return ""
	}
	return string(member.Class)
}

// rolledBack tells that the upgrade of a member failed and was rolled back.
func rolledBack(member run.Host) bool {
	return member.Status == run.HostFailed && member.RolledBack
}
