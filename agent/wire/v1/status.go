package v1

import "time"

// TenantStatus is the state of a tenant at a glance, an entry of /v1/state/status.
type TenantStatus struct {
	Tenant string `json:"tenant"`
	// Trouble says why the state of the tenant is not known; the other members are then absent.
	Trouble   string     `json:"trouble,omitempty"`
	Situation *Situation `json:"situation,omitempty"`
	// Run is the newest run; absent if there was none. Of its hosts it has only those about
	// which somebody may have to do something, and it has no events.
	Run *Run `json:"run,omitempty"`
	// Counts is how many of the hosts that the run upgrades have each status.
	Counts map[string]int `json:"counts,omitempty"`
	// Environments sums up the environments of the tenant; absent if it has none but the default one.
	Environments *EnvironmentSummary `json:"environments,omitempty"`
}

// EnvironmentSummary sums up the environments of a tenant.
type EnvironmentSummary struct {
	// All counts the environments, UnderWay those of which a run is in progress, and NeedPerson those
	// that need a person.
	All        int `json:"all"`
	UnderWay   int `json:"under-way"`
	NeedPerson int `json:"need-person"`
	// Counts is how many of the hosts of the runs in progress have each status.
	Counts map[string]int `json:"counts,omitempty"`
	// NextUpgradeAt is the earliest of all, OpenWindow the window that is open and ends first.
	NextUpgradeAt *time.Time  `json:"next-upgrade-at,omitempty"`
	OpenWindow    *OpenWindow `json:"open-window,omitempty"`
	// First is the most urgent environment.
	First EnvironmentStatus `json:"first"`
}

// SumUp sums up environments; nil if there are none.
func SumUp(all []EnvironmentStatus) *EnvironmentSummary {
	if len(all) == 0 {
		return nil
	}
	sum := EnvironmentSummary{All: len(all), First: all[0], Counts: map[string]int{}}
	for _, e := range all {
		if e.Compare(sum.First) < 0 {
			sum.First = e
		}
		if len(e.Needs) > 0 {
			sum.NeedPerson++
		}
		if e.UnderWay() {
			sum.UnderWay++
			for status, n := range e.Counts {
				sum.Counts[status] += n
			}
		}
		if at := e.NextUpgradeAt; at != nil && (sum.NextUpgradeAt == nil || at.Before(*sum.NextUpgradeAt)) {
			sum.NextUpgradeAt = at
		}
		if w := e.OpenWindow; w != nil && (sum.OpenWindow == nil || w.End.Before(sum.OpenWindow.End)) {
			sum.OpenWindow = w
		}
	}
	return &sum
}

// StatusOf returns the status of a tenant from what is shown of it.
func StatusOf(tenant string, shown Snapshot) TenantStatus {
	status := TenantStatus{Tenant: tenant, Situation: &shown.Situation}
	if shown.Run != nil {
		status.Run, status.Counts = shown.Run.glance()
	}
	return status
}

// glance returns the run without its events and with only those of its hosts about which somebody
// may have to do something, and how many of the hosts that it upgrades have each status.
func (r Run) glance() (*Run, map[string]int) {
	all, counts := r.Hosts, map[string]int{}
	r.Events, r.Hosts = nil, []RunHost{}
	for _, h := range all {
		if h.Stage != "" {
			counts[h.Status]++
		}
		if !h.goesWell() {
			r.Hosts = append(r.Hosts, h)
		}
	}
	return &r, counts
}

// goesWell reports whether nobody has to look at a host: it waits for its turn, is at work, or is
// upgraded.
func (h RunHost) goesWell() bool {
	switch h.Status {
	case "failed", "unreachable", "skipped":
		return false
	}
	return h.Error == "" && h.Failing == "" && h.Unanswered == "" && h.SlotReason == "" && h.OverdueSince == nil && h.SilentSince == nil
}
