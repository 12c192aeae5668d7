package v1

// Rollout is the policy of a tenant's runs, the object at
// /v1/config/tenants/{tenant}/os-upgrade/rollout (design.md 7). A member that
// is absent has its default; docs/guides/rollout.md lists them. Counts are a
// number or a percentage, as text: "2", "10%".
type Rollout struct {
	// Stages go one after the other; none is one stage of all hosts. A host is
	// in the first stage that matches it.
	Stages []Stage `json:"stages,omitzero"`
	// MaxFailures is the number of failed hosts at which OnFailure happens,
	// default "1". A percentage is of the run's hosts, rounded down, at least 1.
	MaxFailures string `json:"max-failures,omitempty"`
	// OnFailure is stop (default), pause or continue (AV-77).
	OnFailure string `json:"on-failure,omitempty"`
	// MinPrepared is how many hosts must have prepared before the first is
	// upgraded, default "100%". A percentage is rounded up (AV-79).
	MinPrepared string `json:"min-prepared,omitempty"`
	// Overrun is what happens to hosts under way when the time is up:
	// finish-host (default) or stop.
	Overrun string `json:"overrun,omitempty"`
	// Reserve is how long before the end of its window a run ends, default "0s"
	// (AV-78).
	Reserve string `json:"reserve,omitempty"`
	// Splay is the span at a stage's beginning over which its hosts start,
	// default "0s".
	Splay string `json:"splay,omitempty"`
	// Paused holds up all runs of the tenant, the one under way included.
	Paused bool `json:"paused,omitempty"`
	// Exempt matches hosts that are not upgraded, ExemptReboot hosts that are
	// not rebooted; nil matches none.
	Exempt       *Match         `json:"exempt,omitempty"`
	ExemptReboot *Match         `json:"exempt-reboot,omitempty"`
	Checks       *RolloutChecks `json:"checks,omitempty"`
	Hooks        *RolloutHooks  `json:"hooks,omitempty"`
	Timeouts     *StepTimeouts  `json:"timeouts,omitempty"`
}

// Stage is a group of hosts that goes before the next one.
type Stage struct {
	Name string `json:"name"`
	// Match is which hosts; nil is all that no earlier stage has.
	Match *Match `json:"match,omitempty"`
	// MaxUnavailable is how many of the stage's hosts may be out of service at
	// once, default "1". A percentage is rounded down, at least 1.
	MaxUnavailable string `json:"max-unavailable,omitempty"`
	// Soak is the wait after the stage, default "0s".
	Soak string `json:"soak,omitempty"`
	// Approval has the stage wait for somebody to approve it, at most for
	// ApprovalTimeout, default "1d".
	Approval        bool   `json:"approval,omitempty"`
	ApprovalTimeout string `json:"approval-timeout,omitempty"`
}

// Match chooses hosts: those that fit each member that is given. A list fits
// when one entry does, labels when all do.
type Match struct {
	Hosts        []string          `json:"hosts,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`
	Roles        []string          `json:"roles,omitempty"`
	Applications []string          `json:"applications,omitempty"`
}

// RolloutChecks are the checks of a rollout.
type RolloutChecks struct {
	BeforeHost []Check `json:"before-host,omitempty"`
	AfterHost  []Check `json:"after-host,omitempty"`
	// Fleet are run at the site, between hosts.
	Fleet []Check `json:"fleet,omitempty"`
}

// Check is one check. Which members it takes depends on Type: exec takes
// script and args; http url and status; tcp address; systemd unit; disk path
// and min-free.
type Check struct {
	// Name is for people; default is the type and what it looks at.
	Name   string   `json:"name,omitempty"`
	Type   string   `json:"type"`
	Script string   `json:"script,omitempty"`
	Args   []string `json:"args,omitempty"`
	URL    string   `json:"url,omitempty"`
	// Status is the one that passes; 0 is any of 200 to 299.
	Status  int    `json:"status,omitempty"`
	Address string `json:"address,omitempty"`
	Unit    string `json:"unit,omitempty"`
	Path    string `json:"path,omitempty"`
	// MinFree is such as "500MB", "2GiB" or "10%".
	MinFree string `json:"min-free,omitempty"`
	// Passes is how often in a row it must pass, default 1; Interval the wait
	// between tries, default "5s"; Timeout the longest time until it has passed
	// so often, default "1m".
	Passes   int    `json:"passes,omitempty"`
	Interval string `json:"interval,omitempty"`
	Timeout  string `json:"timeout,omitempty"`
}

// RolloutHooks take a host out of service and put it back.
type RolloutHooks struct {
	Drain   *Hook `json:"drain,omitempty"`
	Undrain *Hook `json:"undrain,omitempty"`
}

// Hook is one hook: exec takes script and args, http url and method. The
// script finds the host's name in OSUPGRADE_HOST, a URL has it for {host}.
type Hook struct {
	Type   string   `json:"type"`
	Script string   `json:"script,omitempty"`
	Args   []string `json:"args,omitempty"`
	URL    string   `json:"url,omitempty"`
	// Method is POST (default) or another method of HTTP.
	Method string `json:"method,omitempty"`
	// On is where it runs: host (default) or site.
	On string `json:"on,omitempty"`
	// Timeout bounds one try, default "1m"; Retries (default 2) more follow a
	// failed one, RetryInterval (default "10s") apart.
	Timeout       string `json:"timeout,omitempty"`
	Retries       *int   `json:"retries,omitempty"`
	RetryInterval string `json:"retry-interval,omitempty"`
}

// StepTimeouts bound the wait for the reply to each command; default "1h",
// "1h" and "15m".
type StepTimeouts struct {
	Prepare string `json:"prepare,omitempty"`
	Upgrade string `json:"upgrade,omitempty"`
	Reboot  string `json:"reboot,omitempty"`
}
