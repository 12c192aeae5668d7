package v1

import (
	"cmp"
	"slices"
	"time"
)

// EnvironmentStatus is what an environment is doing, an entry of
// /v1/state/tenants/{tenant}/os-upgrade/environments.
type EnvironmentStatus struct {
	Name string `json:"name"`
	// Removed tells that the environment was deleted while its run was in progress.
	Removed bool `json:"removed,omitempty"`
	// Status is one of those of Situation.
	Status string `json:"status"`
	// Needs is what needs a person, the most urgent first: log, resume, approval, hosts, budget,
	// check, overdue, opening, failed, missed, silent, busy, abort, no-host or no-window.
	Needs []string `json:"needs,omitempty"`
	// Hosts counts its hosts that would take part now, Outdated those of them on which an upgrade
	// would change something, Missed those that missed an upgrade, and Silent those that are
	// silent; SilentHosts are the first ten of these by name.
	Hosts       int      `json:"hosts"`
	Outdated    int      `json:"outdated,omitempty"`
	Missed      int      `json:"missed,omitempty"`
	Silent      int      `json:"silent,omitempty"`
	SilentHosts []string `json:"silent-hosts,omitempty"`
	// NextUpgradeAt, OpenWindow, SkippedWindow, WaitingFor, LastMissed and Frozen are as in Situation.
	NextUpgradeAt *time.Time     `json:"next-upgrade-at,omitempty"`
	OpenWindow    *OpenWindow    `json:"open-window,omitempty"`
	SkippedWindow *SkippedWindow `json:"skipped-window,omitempty"`
	WaitingFor    *WaitingFor    `json:"waiting-for,omitempty"`
	LastMissed    *MissedWindow  `json:"last-missed,omitempty"`
	Frozen        *WindowCut     `json:"frozen,omitempty"`
	// Promotion is as in Situation.
	Promotion *Promotion `json:"promotion,omitempty"`
	// Run is the newest run; absent if there was none. Of its hosts it has only those about
	// which somebody may have to do something, and it has no events and no forecast.
	Run *Run `json:"run,omitempty"`
	// Counts is how many of the hosts that the run upgrades have each status.
	Counts map[string]int `json:"counts,omitempty"`
	// LastUpgrade is the last run that has ended.
	LastUpgrade *EnvironmentUpgrade `json:"last-upgrade,omitempty"`
}

// EnvironmentUpgrade tells how the last run of an environment ended.
type EnvironmentUpgrade struct {
	Run       uint64    `json:"run"`
	StartTime time.Time `json:"start-time"`
	EndTime   time.Time `json:"end-time"`
	Result    string    `json:"result"`
}

// EnvironmentStatusOf returns the status of an environment from its situation and its newest run;
// nil is none.
func EnvironmentStatusOf(name string, s Situation, r *Run) EnvironmentStatus {
	status := EnvironmentStatus{
		Name: name, Status: s.Status, Hosts: s.Hosts, Silent: s.Silent, SilentHosts: s.SilentHosts,
		NextUpgradeAt: s.NextUpgradeAt, OpenWindow: s.OpenWindow, SkippedWindow: s.SkippedWindow, WaitingFor: s.WaitingFor, LastMissed: s.LastMissed, Frozen: s.Frozen, Promotion: s.Promotion,
	}
	if r != nil {
		status.Run, status.Counts = r.glance()
	}
	status.Needs = needs(s, status.Run)
	return status
}

// Situation is the part of a tenant's situation that is of the environment.
func (e EnvironmentStatus) Situation() Situation {
	environment := e.Name
	if environment == DefaultEnvironment {
		environment = ""
	}
	return Situation{
		Environment: environment, Status: e.Status, NextUpgradeAt: e.NextUpgradeAt, Hosts: e.Hosts, Silent: e.Silent, SilentHosts: e.SilentHosts,
		OpenWindow: e.OpenWindow, SkippedWindow: e.SkippedWindow, WaitingFor: e.WaitingFor, LastMissed: e.LastMissed, Frozen: e.Frozen, Promotion: e.Promotion,
	}
}

// UnderWay reports whether a run of the environment is in progress.
func (e EnvironmentStatus) UnderWay() bool { return e.Run != nil && !e.Run.Finished() }

// IsQuiet reports whether no run of the environment is in progress, and nobody is needed.
func (e EnvironmentStatus) IsQuiet() bool { return !e.UnderWay() && len(e.Needs) == 0 }

// Compare is negative for the environment that is more urgent: first by what needs a person, then
// those with a run in progress, then by the next window, then by name.
func (e EnvironmentStatus) Compare(other EnvironmentStatus) int {
	return cmp.Or(
		cmp.Compare(e.urgency(), other.urgency()),
		cmp.Compare(e.opensIn(), other.opensIn()),
		cmp.Compare(e.Name, other.Name),
	)
}

// urgency is lower for what is more urgent.
func (e EnvironmentStatus) urgency() int {
	switch {
	case len(e.Needs) > 0:
		return slices.Index(byUrgency, e.Needs[0])
	case e.UnderWay():
		return len(byUrgency)
	}
	return len(byUrgency) + 1
}

// opensIn is the time of the next window, or later than any.
func (e EnvironmentStatus) opensIn() int64 {
	if e.NextUpgradeAt == nil {
		return 1<<63 - 1
	}
	return e.NextUpgradeAt.UnixNano()
}

// NeedsNoHost is that of Needs for an environment without hosts.
const NeedsNoHost = "no-host"

// What needs a person.
const (
	needsLog      = "log"
	needsResume   = "resume"
	needsApproval = "approval"
	needsHosts    = "hosts"
	needsBudget   = "budget"
	needsCheck    = "check"
	needsOverdue  = "overdue"
	needsOpening  = "opening"
	needsFailed   = "failed"
	needsMissed   = "missed"
	needsSilent   = "silent"
	needsBusy     = "busy"
	needsAbort    = "abort"
	needsNoWindow = "no-window"
)

// byUrgency is what needs a person, in the order of its urgency: what stops a run, what slows it
// down, what a run has left, what is to be declared.
var byUrgency = []string{
	needsLog, needsResume, needsApproval, needsHosts, needsBudget, needsCheck, needsOverdue, needsOpening,
	needsFailed, needsMissed, needsSilent, needsBusy, needsAbort, NeedsNoHost, needsNoWindow,
}

// needs returns what of a situation and of the newest run needs a person, the most urgent first.
func needs(s Situation, r *Run) (found []string) {
	if r != nil && !r.Finished() {
		found = r.needs()
	} else {
		found = s.needs(r)
	}
	slices.SortFunc(found, func(a, b string) int { return slices.Index(byUrgency, a) - slices.Index(byUrgency, b) })
	return slices.Compact(found)
}

// needs returns what the run in progress needs of a person.
func (r Run) needs() (found []string) {
	w := r.WaitingFor
	switch {
	case r.Reason != "":
		found = append(found, needsLog)
	case r.Aborted != "":
		found = append(found, needsAbort)
	case w == nil:
	case w.What == needsApproval || w.What == needsResume:
		found = append(found, w.What)
	case w.ForPerson(), w.LacksHost():
		found = append(found, needsHosts)
	case w.What == needsBudget && w.Until == nil && !w.Sending:
		found = append(found, needsBudget)
	case w.What == "idle" && len(w.Hosts) > 0:
		found = append(found, needsBusy)
	case w.What == needsCheck && w.Until == nil && len(w.Hosts) == 0:
		found = append(found, needsCheck)
	}
	if r.Paused != "" && r.Aborted == "" {
		found = append(found, needsResume)
	}
	if slices.ContainsFunc(r.Hosts, func(h RunHost) bool { return h.OverdueSince != nil || h.Failing != "" || h.Unanswered != "" }) {
		found = append(found, needsOverdue)
	}
	return found
}

// ForPerson reports whether the wait is for hosts about which a person has to do something.
func (w WaitingFor) ForPerson() bool {
	return (w.What == "slot" || w.What == needsBudget || w.What == "host") && w.Until == nil && len(w.Hosts) > 0 && !w.Sending
}

// LacksHost reports whether a step waits for a host that it matches, and none is present.
func (w WaitingFor) LacksHost() bool {
	return w.What == "host" && w.Stage != "" && w.Until == nil && len(w.Hosts) == 0
}

// needs returns what needs a person while no run is in progress; last is the one that has ended, nil
// if there was none.
func (s Situation) needs(last *Run) (found []string) {
	switch {
	case s.WaitingFor != nil && s.WaitingFor.What == needsLog:
		return []string{needsLog}
	case s.Hosts == 0:
		found = append(found, NeedsNoHost)
	case s.WaitingFor != nil:
		found = append(found, needsOpening)
	case s.NextUpgradeAt == nil && s.OpenWindow == nil && s.Frozen == nil:
		found = append(found, needsNoWindow)
	}
	if m := s.MissedSince(last); m != nil && s.Frozen == nil && s.OpenWindow == nil {
		found = append(found, needsMissed)
	}
	if last != nil && slices.ContainsFunc(last.Hosts, s.isLeftBehind) {
		found = append(found, needsFailed)
	}
	if s.Silent > 0 {
		found = append(found, needsSilent)
	}
	return found
}

// isLeftBehind reports whether a host came out of the last run in a way that a person should look
// at: it failed, is out of service, may still be at work, or can be upgraded now and was not.
func (s Situation) isLeftBehind(h RunHost) bool {
	switch {
	case h.Status == "failed" || h.SlotReason != "" || h.Unanswered != "":
		return true
	case h.Status == "unreachable":
		return s.Silent <= len(s.SilentHosts) && !slices.Contains(s.SilentHosts, h.Hostname)
	}
	return h.Status == "skipped" && h.Stage != "" && s.NextUpgradeAt == nil && s.OpenWindow == nil
}

// MissedSince is the window that was missed last, if no run was opened since; nil when there is
// none. newest is the newest run, nil if there was none.
func (s Situation) MissedSince(newest *Run) *MissedWindow {
	if m := s.LastMissed; m != nil && (newest == nil || m.Start.After(newest.OpenedAt)) {
		return m
	}
	return nil
}
