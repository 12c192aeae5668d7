package promotion

import "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"

// Host is the release that a host has, and the one that it had before its last run; zero for none, or if
// it has had a run without a release since.
type Host struct {
	Release, Was release.Ref
}

// Upgraded returns what a host has after a run to a release in which it was upgraded; zero is a run
// without one.
func (h Host) Upgraded(to release.Ref) Host {
	if to == h.Release && !to.IsZero() {
		return h
	}
	return Host{Release: to, Was: h.Release}
}

// TakenBack returns what a host has after a rollback: what it had before the run that was taken back. A
// rollback of the rollback gives it back what it has now.
func (h Host) TakenBack() Host { return Host{Release: h.Was, Was: h.Release} }
