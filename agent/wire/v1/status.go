package v1

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
