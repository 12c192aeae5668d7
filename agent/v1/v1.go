// Package v1 holds the types of the REST API under /v1, as they stand on the
// wire in JSON and YAML, and the rules that a body must meet. The server, the
// client and the provider share it, so that all three mean the same thing.
//
// It decides whether a body is right and says what is wrong with it. It never
// talks to a network, a store or a clock.
package v1

import "time"

// MaxBody is the largest request body that the API reads, in bytes. A larger
// one is answered with 413.
const MaxBody = 1 << 20

// OSUpgrade is a tenant's os-upgrade configuration, Avassa's object at
// /v1/config/tenants/{tenant}/os-upgrade (AV-1). A nil list is absent from the
// body; an empty one is there and empty.
type OSUpgrade struct {
	// WorkerApplications lists the applications whose hosts take part (AV-13).
	WorkerApplications []WorkerApplication `json:"worker-applications,omitzero"`
	// MaintenanceWindows lists the spans in which a run may be under way; they
	// count together (AV-20).
	MaintenanceWindows []MaintenanceWindow `json:"maintenance-windows,omitzero"`
}

// WorkerApplication names one application that carries out upgrades (AV-13).
type WorkerApplication struct {
	Name string `json:"name"`
}

// MaintenanceWindow is a weekly recurring span (AV-16 to AV-19).
type MaintenanceWindow struct {
	// DaysOfWeek is one string of English day names, such as
	// "Friday, Saturday": the days on which the window starts.
	DaysOfWeek string `json:"days-of-week"`
	// StartTime is the wall-clock time at which it starts, HH:MM.
	StartTime string `json:"start-time"`
	// Timezone is "site-local", "UTC" or an IANA name; empty means site-local.
	Timezone string `json:"timezone,omitempty"`
	// Duration is its length in elapsed time, such as "4h" or "1d4h18s".
	Duration string `json:"duration"`
}

// State is Avassa's object at /v1/state/tenants/{tenant}/os-upgrade (AV-30 to
// AV-39): the configuration as applied, and what is.
type State struct {
	OSUpgrade
	// Status is one of idle, waiting, preparing, upgrading, rebooting,
	// verifying, paused, aborting (AV-34). Other systems may say others.
	Status string `json:"status"`
	// NextUpgradeIn is the time until the next window opens, such as
	// "1d4h18s"; "0s" while one is open whose run has not ended, absent when
	// none will (AV-35).
	NextUpgradeIn string `json:"next-upgrade-in,omitempty"`
	// NextUpgradeAt is when that window opens or, while it is open, when it
	// did: it stands still between two runs, so that Terraform sees no change
	// where there is none.
	NextUpgradeAt *time.Time `json:"next-upgrade-at,omitempty"`
	// ScheduledWorkers lists the hosts that would take part now (AV-36).
	ScheduledWorkers []ScheduledWorker `json:"scheduled-workers"`
	// WaitingFor tells why a window that is open has no run; absent otherwise.
	WaitingFor *WaitingFor `json:"waiting-for,omitempty"`
	// LastMissed is the window that was missed last: it closed without a run.
	LastMissed *MissedWindow `json:"last-missed,omitempty"`
	// Frozen is the freeze that is on now; absent while none is.
	Frozen *WindowCut `json:"frozen,omitempty"`
	// LastUpgradeInfo tells of the last run that has ended (AV-37).
	LastUpgradeInfo *LastUpgradeInfo `json:"last-upgrade-info,omitempty"`
}

// MissedWindow is a window that closed without a run, and why.
type MissedWindow struct {
	Start  time.Time `json:"start"`
	End    time.Time `json:"end"`
	Reason string    `json:"reason"`
}

// ScheduledWorker is a host that takes part, and its worker application.
type ScheduledWorker struct {
	Host        string `json:"host"`
	Application string `json:"application"`
}

// LastUpgradeInfo tells how the last run ended (AV-37).
type LastUpgradeInfo struct {
	StartTime time.Time `json:"start-time"`
	EndTime   time.Time `json:"end-time"`
	// Result is completed, partial, failed, aborted or timed-out (AV-38).
	Result string         `json:"result"`
	Hosts  []UpgradedHost `json:"hosts"`
}

// UpgradedHost tells how one host came out of the last run (AV-39).
type UpgradedHost struct {
	Hostname string `json:"hostname"`
	Status   string `json:"status"`
	Error    string `json:"error,omitempty"`
}

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
}

// Start is the body of POST .../os-upgrade/start (AV-81).
type Start struct {
	// OverrideWindow starts the run though no maintenance window is open.
	OverrideWindow bool `json:"override-window,omitempty"`
	// Reason is kept with the run; required with OverrideWindow.
	Reason string `json:"reason,omitempty"`
	// Duration bounds a run that overrides the windows, also while one is
	// open; empty means to the end of the open window, or 4h when none is.
	Duration string `json:"duration,omitempty"`
	// RetryOf is the id of an ended run: the new one is of the hosts alone that
	// failed or were skipped there.
	RetryOf uint64 `json:"retry-of,omitempty"`
}

// Ask is the body of POST .../os-upgrade/{pause,resume,abort,approve,release}:
// what somebody asks of the run under way.
type Ask struct {
	// Reason is kept with the run; required.
	Reason string `json:"reason"`
	// Stage is the name of the stage to approve; of approve alone, required.
	Stage string `json:"stage,omitempty"`
	// Host is the host whose slot is freed by force; of release alone, required.
	Host string `json:"host,omitempty"`
}

// Run is one pass over the hosts of a tenant, an entry of
// /v1/state/tenants/{tenant}/os-upgrade/runs.
type Run struct {
	// ID is the log sequence of the run's prepare command.
	ID uint64 `json:"id"`
	// Phase is open, preparing, upgrading or finished.
	Phase string `json:"phase"`
	// Result is empty until the run is finished, then completed, partial,
	// failed, aborted or timed-out.
	Result string `json:"result,omitempty"`
	// Reason tells why the run ended as it did, or why it does not go on.
	Reason string `json:"reason,omitempty"`
	// Trigger is window or manual.
	Trigger string `json:"trigger"`
	// RequestedBy and RequestReason are who started it by hand, and why.
	RequestedBy   string `json:"requested-by,omitempty"`
	RequestReason string `json:"request-reason,omitempty"`
	// RetryOf is the run whose failed and skipped hosts these are.
	RetryOf  uint64    `json:"retry-of,omitempty"`
	OpenedAt time.Time `json:"opened-at"`
	// NotAfter is when the run ends at the latest.
	NotAfter time.Time  `json:"not-after"`
	EndedAt  *time.Time `json:"ended-at,omitempty"`
	// Paused is who holds the run up, and why; absent when nobody does.
	Paused string `json:"paused,omitempty"`
	// ExpectedEnd is when the run ends if the hosts to come take as long as
	// those before; absent while nothing is known of that, or it waits for what
	// nobody can foresee.
	ExpectedEnd *time.Time `json:"expected-end,omitempty"`
	// Forecast says in words when the rest does not fit before not-after, or why
	// the end cannot be foreseen.
	Forecast   string      `json:"forecast,omitempty"`
	WaitingFor *WaitingFor `json:"waiting-for,omitempty"`
	Stages     []RunStage  `json:"stages,omitempty"`
	Hosts      []RunHost   `json:"hosts"`
	// Events tell what happened, oldest first; only where one run is asked for.
	Events []RunEvent `json:"events,omitempty"`
}

// RunStage is one stage of a run.
type RunStage struct {
	Name string `json:"name"`
	// Phase is pending, waiting-for-approval, running, soaking or done.
	Phase          string `json:"phase"`
	Hosts          int    `json:"hosts"`
	MaxUnavailable int    `json:"max-unavailable"`
	// OutOfService counts the hosts that are, for the sake of the upgrade or
	// because they are silent or unhealthy.
	OutOfService int `json:"out-of-service"`
	Upgraded     int `json:"upgraded"`
	Failed       int `json:"failed"`
}

// RunEvent is one fact of a run.
type RunEvent struct {
	At    time.Time `json:"at"`
	Event string    `json:"event"`
	Host  string    `json:"host,omitempty"`
	By    string    `json:"by,omitempty"`
	// Text says it in words.
	Text string `json:"text,omitempty"`
}

// Finished reports whether the run has ended.
func (r Run) Finished() bool { return r.Phase == "finished" }

// WaitingFor names what a run waits for now, and since when.
type WaitingFor struct {
	// What is window, slot, check, hook, host, approval, resume, soak or splay.
	What string `json:"what"`
	// Detail says it in words, such as "h02 to answer upgrade".
	Detail string    `json:"detail"`
	Since  time.Time `json:"since"`
}

// RunHost is one host of a run.
type RunHost struct {
	Hostname string `json:"hostname"`
	// Status is pending, preparing, prepared, draining, upgrading,
	// reboot-pending, rebooting, checking, upgraded, failed, skipped or
	// unreachable.
	Status string     `json:"status"`
	Since  *time.Time `json:"since,omitempty"`
	// Error is the host's own words, or why it was skipped.
	Error string `json:"error,omitempty"`
	// Stage is the name of the host's stage.
	Stage string `json:"stage,omitempty"`
	// Note tells what is to be known of a host that did not fail, such as that
	// its reboot was skipped.
	Note string `json:"note,omitempty"`
	// Slot is since when the host is out of service, and SlotReason why;
	// absent while it is not.
	Slot       *time.Time `json:"slot,omitempty"`
	SlotReason string     `json:"slot-reason,omitempty"`
	// ExpectedEnd is when the host is done if it takes as long as those before.
	ExpectedEnd *time.Time `json:"expected-end,omitempty"`
	// Seconds is how long it was out of service for its upgrade, once done.
	Seconds int `json:"seconds,omitempty"`
	// Progress is what the host last told of its work, for people.
	Progress string `json:"progress,omitempty"`
}

// ErrorBody is the body of every answer with a status of 400 and above.
type ErrorBody struct {
	Errors []Error `json:"errors"`
}

// Error is one problem. Official Avassa clients need both members.
type Error struct {
	Message string    `json:"error-message"`
	Info    ErrorInfo `json:"error-info"`
}

// ErrorInfo points a program at what is wrong.
type ErrorInfo struct {
	// Field is the path of the field, such as
	// "maintenance-windows[0].start-time"; empty when the problem is not one
	// of a field.
	Field string `json:"field,omitempty"`
	// Value is what the field held, as text.
	Value string `json:"value,omitempty"`
	// Run is the id of the run that stands in the way, if one does.
	Run uint64 `json:"run,omitempty"`
}
