package v1

import (
	"cmp"
	"slices"
	"time"
)

// Host is a machine that is upgraded, an entry of
// /v1/state/tenants/{tenant}/os-upgrade/hosts (AV-40).
type Host struct {
	Hostname    string `json:"hostname"`
	Application string `json:"application"`
	// Online tells whether its worker has been heard of lately.
	Online bool `json:"online"`
	// LastSeen is when its worker was last heard of; absent when not since the
	// agent started.
	LastSeen     *time.Time `json:"last-seen,omitempty"`
	AgentVersion string     `json:"agent-version,omitempty"`
	// Role and Labels are what the host's worker says of itself; a rollout
	// chooses hosts by them.
	Role   string            `json:"role,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	// Versions maps each package to its version, as the host last reported.
	Versions map[string]string `json:"versions,omitempty"`
	// VersionsAt is when Versions was reported.
	VersionsAt *time.Time `json:"versions-at,omitempty"`
	// Reports are the last reports of versions, newest first; only where one host is
	// asked for.
	Reports []VersionReport `json:"reports,omitempty"`
}

// VersionReport is one report of a host's versions.
type VersionReport struct {
	// At is when it was made, Changed the number of packages that differ from the
	// report before; the first report of a host has none.
	At      time.Time `json:"at"`
	Changed int       `json:"changed,omitempty"`
	// Changes are the first packages that differ, as many as are kept.
	Changes []VersionChange `json:"changes,omitempty"`
}

// VersionChange is a package whose version differs between two reports.
type VersionChange struct {
	Package string `json:"package"`
	// From is absent for a package that is new, To for one that is gone.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// CompareVersions returns the differences between two reports, by package.
func CompareVersions(from, to map[string]string) []VersionChange {
	var changes []VersionChange
	for name, version := range to {
		if before, known := from[name]; !known || before != version {
			changes = append(changes, VersionChange{Package: name, From: before, To: version})
		}
	}
	for name, version := range from {
		if _, kept := to[name]; !kept {
			changes = append(changes, VersionChange{Package: name, From: version})
		}
	}
	slices.SortFunc(changes, func(a, b VersionChange) int { return cmp.Compare(a.Package, b.Package) })
	return changes
}

// VersionsEvent is the event "versions" of the event stream: a host has reported
// other versions.
type VersionsEvent struct {
	Hostname string `json:"hostname"`
	VersionReport
}
