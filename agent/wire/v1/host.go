package v1

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/inventory"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
)

// Host is a machine that is upgraded, an entry of
// /v1/state/tenants/{tenant}/os-upgrade/hosts.
type Host struct {
	Hostname    string `json:"hostname"`
	Application string `json:"application"`
	// Online reports whether its worker has sent a heartbeat recently.
	Online bool `json:"online"`
	// LastSeen is when its worker last sent something; absent if it has not since the agent
	// started.
	LastSeen     *time.Time `json:"last-seen,omitempty"`
	AgentVersion string     `json:"agent-version,omitempty"`
	// Protocol is the newest protocol that its worker speaks.
	Protocol int `json:"protocol,omitempty"`
	// Strategy is how its worker upgrades it, such as apt; absent until the worker is heard of.
	Strategy string `json:"strategy,omitempty"`
	// Role and Labels are reported by the host's worker; a rollout selects hosts by them.
	Role   string            `json:"role,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	// Environment is the environment whose runs upgrade the host; absent while the tenant has no
	// other than default.
	Environment string `json:"environment,omitempty"`
	// Assigned means that somebody has moved the host to its environment, whatever matches it.
	Assigned bool `json:"assigned,omitempty"`
	// Unplaced means that no run upgrades the host, because several environments match it.
	Unplaced bool `json:"unplaced,omitempty"`
	// Versions maps each package to its version, as the host last reported.
	Versions map[string]string `json:"versions,omitempty"`
	// VersionsAt is when Versions was reported.
	VersionsAt *time.Time `json:"versions-at,omitempty"`
	// LastRun is the last run that the host was a member of; absent when there is none.
	LastRun *HostRun `json:"last-run,omitempty"`
	// Release is the name of the release that the host has, and Was of the one that it had before: it got
	// them from the last runs that upgraded it. They are absent for a run without a release.
	Release string `json:"release,omitempty"`
	Was     string `json:"was,omitempty"`
	// OutdatedSince is since when an upgrade would change something on the host: when the
	// site first heard that its offer is not empty. It is absent when its newest offer is
	// empty, or it has none.
	OutdatedSince *time.Time `json:"outdated-since,omitempty"`
	// MissedSince is when the first run ended that should have upgraded the host and
	// did not; absent when the last such run upgraded it. A run whose start checks failed does not count.
	MissedSince *time.Time `json:"missed-since,omitempty"`
	// Busy says why the host must not be upgraded now; absent otherwise.
	Busy *HostBusy `json:"busy,omitempty"`
	// LockedSince is since when the host may reboot by itself, and so is out of service; absent
	// when it is not locked.
	LockedSince *time.Time `json:"locked-since,omitempty"`
	// Inventory is what the machine consists of; only in the answer for one host or to
	// inventory=true.
	Inventory *HostInventory `json:"inventory,omitempty"`
	// Warnings are problems of the host outside of runs.
	Warnings []Warning `json:"warnings,omitempty"`
	// Lease says which worker works for the host; only in the answer for one host.
	Lease *HostLease `json:"lease,omitempty"`
	// Reports are the last reports of versions, newest first; only in the answer for one
	// host.
	Reports []VersionReport `json:"reports,omitempty"`
}

// InEnvironment is the name of the environment whose runs upgrade the host; empty for none.
func (h Host) InEnvironment() string {
	if h.Unplaced {
		return ""
	}
	return cmp.Or(h.Environment, DefaultEnvironment)
}

// MaxHosts is the largest HostFilter.Limit.
const MaxHosts = 1000

// HostFilter chooses a part of the hosts, by name; the zero value chooses all. Its members
// are query parameters of GET .../hosts.
type HostFilter struct {
	Selector
	// After is a name, known or not: hosts up to it are left out. So hosts that come and go
	// between the parts move no other from one part to the next.
	After string
	// Limit is how many there are at most; 0 is all.
	Limit int
}

// Validate returns everything that is wrong with the values, and nothing when all is right.
func (f HostFilter) Validate() Problems {
	var found Problems
	if f.After != "" && !names.ValidHost(f.After) {
		found = append(found, document.Wrong("after", f.After, "is not the name of a host; use the last one of the part before"))
	}
	if f.Limit < 0 || f.Limit > MaxHosts {
		found = append(found, document.OutOfRange("limit", f.Limit, 1, MaxHosts))
	}
	return append(found, f.validateQuery()...)
}

// IsPart reports whether the filter chooses a page of the hosts that its selector chooses.
func (f HostFilter) IsPart() bool { return f.After != "" || f.Limit != 0 }

// Query returns the filter as a query.
func (f HostFilter) Query() url.Values {
	query := url.Values{}
	f.AddTo(query)
	if f.After != "" {
		query.Set("after", f.After)
	}
	if f.Limit != 0 {
		query.Set("limit", strconv.Itoa(f.Limit))
	}
	return query
}

// Warning is a problem of a host outside of runs, and what to do about it.
type Warning struct {
	Host string `json:"host"`
	// Kind is key-refused, second-worker, clone, clock, protocol, flood or rolled-back.
	Kind string `json:"kind"`
	Text string `json:"text"`
	// Since is when it was first noticed.
	Since time.Time `json:"since"`
}

// HostBusy says that a program on the host does not allow an upgrade now.
type HostBusy struct {
	Reason string `json:"reason"`
	// Until is when the host is idle at the latest, by its own clock.
	Until time.Time `json:"until"`
}

// HostInventory is what the machine of a host consists of, as its worker reported it.
type HostInventory struct {
	At time.Time `json:"at"`
	inventory.Inventory
}

// HostRun is the progress or the result of a host in a run.
type HostRun struct {
	ID uint64 `json:"id"`
	// Phase and Result are of the run; Result is absent until it is finished.
	Phase  string `json:"phase"`
	Result string `json:"result,omitempty"`
	// Status is the host's own, as in RunHost.
	Status string `json:"status"`
	// Class, RolledBack and UpToDate are as in RunHost.
	Class      string `json:"class,omitempty"`
	RolledBack bool   `json:"rolled-back,omitempty"`
	UpToDate   bool   `json:"up-to-date,omitempty"`
	// Release is the name of the release that the run installs; absent for a run without one.
	Release string `json:"release,omitempty"`
	// RollbackOf is the newest run that the run rolls back; absent if it is no rollback.
	RollbackOf uint64     `json:"rollback-of,omitempty"`
	EndedAt    *time.Time `json:"ended-at,omitempty"`
}

// HostLease is the right of one worker to work for a host.
type HostLease struct {
	// Worker identifies the worker by its state directory, Incarnation its process.
	Worker      string `json:"worker"`
	Incarnation string `json:"incarnation,omitempty"`
	// Epoch grows each time the lease passes to another worker.
	Epoch uint64 `json:"epoch"`
	// Since is when the worker got the lease or, if Vacant, gave it back.
	Since  time.Time `json:"since"`
	Vacant bool      `json:"vacant,omitempty"`
}

// VersionReport is one report of a host's versions.
type VersionReport struct {
	// At is when it was made, and Changed the number of packages that differ from the
	// previous report; the first report of a host has none.
	At      time.Time `json:"at"`
	Changed int       `json:"changed,omitempty"`
	// Changes are the first packages that differ, as many as are kept.
	Changes []VersionChange `json:"changes,omitempty"`
}

// VersionChange is a package whose version differs between two reports.
type VersionChange struct {
	Package string `json:"package"`
	// From is absent for a new package, To for a removed one.
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
