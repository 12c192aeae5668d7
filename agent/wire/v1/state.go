package v1

import "time"

// State is Avassa's object at /v1/state/tenants/{tenant}/os-upgrade: the applied
// configuration and the current state.
type State struct {
	OSUpgrade
	Situation
	// ConfigETag is the ETag of the configuration that is applied; absent when there is
	// none, or when it cannot be read.
	ConfigETag string `json:"config-etag,omitempty"`
	// NextUpgradeIn is the time until NextUpgradeAt, such as "1d4h18s"; "0s" while
	// a window is open whose run has not ended, absent when none will open.
	NextUpgradeIn string `json:"next-upgrade-in,omitempty"`
	// ScheduledWorkers lists the hosts that would take part now.
	ScheduledWorkers []ScheduledWorker `json:"scheduled-workers"`
	// IntentWarnings are the parts of the configuration and of the rollout that match no
	// known host; none before the first host is known.
	IntentWarnings []IntentWarning `json:"intent-warnings,omitempty"`
	// LastUpgradeInfo describes the last run that has ended.
	LastUpgradeInfo *LastUpgradeInfo `json:"last-upgrade-info,omitempty"`
	// Certificates are those that the site presents.
	Certificates []Certificate `json:"certificates,omitempty"`
	// WaitingHosts counts the hosts that wait for approval, FirstWaiting are those that came first.
	WaitingHosts int           `json:"waiting-hosts,omitempty"`
	FirstWaiting []WaitingHost `json:"first-waiting,omitempty"`
}

// Certificate is the certificate of a listener of the site.
type Certificate struct {
	// Listener is api, which serves the REST API, or nats, which serves the workers. It is
	// client-ca for the authority whose client certificates the REST API takes, if it does; of
	// several, the last one to end.
	Listener string `json:"listener"`
	// NotAfter is the end of its validity, DaysLeft the number of whole days until
	// then; it is negative after that.
	NotAfter time.Time `json:"not-after"`
	DaysLeft int       `json:"days-left"`
}

// Situation is the state of a tenant at one moment, without hosts and runs. It changes
// with events and with time alone; the event stream sends each change.
type Situation struct {
	// Environment is the environment that Status, NextUpgradeAt, Overdue, OpenWindow, WaitingFor,
	// LastMissed and Promotion describe; absent for the default one. It is the default one if that has hosts or
	// windows; otherwise the one that is furthest from idle.
	Environment string `json:"environment,omitempty"`
	// Status is one of idle, waiting, preparing, upgrading, rebooting,
	// verifying, paused, aborting. Other systems may say others.
	Status string `json:"status"`
	// NextUpgradeAt is when the next window opens or, while one is open whose run
	// has not ended, when that did: it stands still between two runs, so that
	// Terraform sees no change where there is none. It is absent when none will.
	NextUpgradeAt *time.Time `json:"next-upgrade-at,omitempty"`
	// Hosts counts the hosts that would take part now, Silent how many of them are silent;
	// SilentHosts are the first ten of these by name.
	Hosts       int      `json:"hosts"`
	Silent      int      `json:"silent,omitempty"`
	SilentHosts []string `json:"silent-hosts,omitempty"`
	// Environments counts the environments, with the default one; absent if there is no other.
	Environments int `json:"environments,omitempty"`
	// Unplaced counts the hosts that are in no environment, because several match them: no run
	// upgrades them. UnplacedHosts are the first ten of them by name.
	Unplaced      int      `json:"unplaced,omitempty"`
	UnplacedHosts []string `json:"unplaced-hosts,omitempty"`
	// Overdue counts the hosts of the current run that take unusually long in their status;
	// OverdueHosts are the first ten of them. See RunHost.
	Overdue      int      `json:"overdue,omitempty"`
	OverdueHosts []string `json:"overdue-hosts,omitempty"`
	// OpenWindow is the window that is open; absent while none is.
	OpenWindow *OpenWindow `json:"open-window,omitempty"`
	// SkippedWindow is the window that is open or opens next, if somebody has skipped it.
	SkippedWindow *SkippedWindow `json:"skipped-window,omitempty"`
	// WaitingFor says why the open window has no run, why no window opens one, or why the log is not
	// trusted; absent otherwise.
	WaitingFor *WaitingFor `json:"waiting-for,omitempty"`
	// LastMissed is the last window that closed without a run.
	LastMissed *MissedWindow `json:"last-missed,omitempty"`
	// Promotion is how far the environment has come to a release; absent if no run of it has gone to
	// one.
	Promotion *Promotion `json:"promotion,omitempty"`
	// LastClockJump is when the clock of the site was last set by more than a minute;
	// absent if it was not since the agent started.
	LastClockJump *ClockJump `json:"last-clock-jump,omitempty"`
	// Frozen is the freeze that is in force; absent while none is.
	Frozen *WindowCut `json:"frozen,omitempty"`
	// Warnings are problems of hosts outside of runs, oldest first. Only the first are
	// listed; WarningCount counts all.
	Warnings     []Warning `json:"warnings,omitempty"`
	WarningCount int       `json:"warning-count,omitempty"`
	// Calendars tell what the site fetched of each calendar with a URL, by name.
	Calendars []CalendarState `json:"calendars,omitempty"`
	// Budgets are the parts of disruption budgets that have hosts out of service, the fullest
	// first; at most 100.
	Budgets []BudgetState `json:"budgets,omitempty"`
	// BudgetRefusals are the queries of disruption budgets that keep hosts in service now, by budget.
	BudgetRefusals []BudgetRefusal `json:"budget-refusals,omitempty"`
	// Locks are the hosts that reboot by themselves and are locked, those locked longest first;
	// at most ten. LockCount counts all.
	Locks     []LockState `json:"locks,omitempty"`
	LockCount int         `json:"lock-count,omitempty"`
	// SiteTimezone is the zone of the site, such as Europe/Stockholm, in which its
	// people read times.
	SiteTimezone string `json:"site-timezone,omitempty"`
}

// OpenWindow is a window that is open now.
type OpenWindow struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
	// Run is the run of this window; 0 when there has been none yet.
	Run uint64 `json:"run,omitempty"`
	// UpToDate says why it opens no run though nothing hinders it: all hosts have the release to which
	// their environment goes. It is absent otherwise.
	UpToDate string `json:"up-to-date,omitempty"`
}

// Snapshot is what is shown at one moment: the situation of a tenant, and the run that was opened
// last, both of the environment that the situation names.
type Snapshot struct {
	Situation Situation
	// Run is nil when there was none yet. Its hosts are shared by all who asked for
	// the snapshot: nobody may change them.
	Run *Run
	// Others are the newest runs of the other environments, the one with the highest id first.
	Others []*Run
	// Seq is the sequence of the log that the snapshot is as of, Log the identity of the
	// log.
	Seq uint64
	Log string
}

// StreamReset is the data of the event "reset" of an event stream: what the client was
// told before it came back has no connection with what it is told from now on.
type StreamReset struct {
	Reason string `json:"reason"`
}

// ClockJump is a jump of the clock of a site: it showed From and was set to To, or the
// machine was suspended in between.
type ClockJump struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
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

// LastUpgradeInfo tells how the last run ended.
type LastUpgradeInfo struct {
	StartTime time.Time `json:"start-time"`
	EndTime   time.Time `json:"end-time"`
	// Result is completed, partial, failed, aborted or timed-out.
	Result string         `json:"result"`
	Hosts  []UpgradedHost `json:"hosts"`
}

// UpgradedHost is the result of one host in the last run.
type UpgradedHost struct {
	Hostname string `json:"hostname"`
	Status   string `json:"status"`
	Error    string `json:"error,omitempty"`
}
