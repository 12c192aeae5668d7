package message

import (
	"fmt"
	"time"
)

// What a run does once too many of its hosts have failed (AV-77).
const (
	// Stop finishes the hosts that are under way and starts no further one.
	Stop = "stop"
	// Pause does the same and waits for somebody to resume the run.
	Pause = "pause"
	// Continue goes on whatever fails.
	Continue = "continue"
)

// What happens to hosts that are under way when a run's time is up.
const (
	// FinishHost waits for them, sends them no further command, and undrains
	// them.
	FinishHost = "finish-host"
	// StopHost leaves them behind at once.
	StopHost = "stop"
)

// Policy is how a run goes about its hosts: the rollout as it was resolved for
// the fleet when the run was opened. All counts are of hosts.
type Policy struct {
	Stages []Stage `json:"stages"`
	// MaxFailures is the number of failed hosts at which OnFailure happens;
	// at least 1.
	MaxFailures int    `json:"max-failures"`
	OnFailure   string `json:"on-failure"`
	// MinPrepared is how many hosts must have prepared before the first is
	// upgraded (AV-79).
	MinPrepared int    `json:"min-prepared"`
	Overrun     string `json:"overrun"`
	// Splay is the span at a stage's beginning over which the starts of its
	// hosts are spread.
	Splay Span `json:"splay,omitzero"`
	// Paused opens the run paused.
	Paused bool `json:"paused,omitempty"`
	// NoReboot are members that are not rebooted, each with the reason.
	NoReboot []Exempt `json:"no-reboot,omitempty"`
	Checks   Checks   `json:"checks,omitzero"`
	Hooks    Hooks    `json:"hooks,omitzero"`
	Timeouts Timeouts `json:"timeouts"`
}

// Stage is a group of hosts that goes before the next one. The members of a
// run stand in the order of its stages, so a stage needs to say only how many
// are its own.
type Stage struct {
	Name string `json:"name"`
	// Size is how many of the members, after those of the stages before, are
	// of this stage; at least 1.
	Size int `json:"size"`
	// MaxUnavailable is how many of them may be out of service; at least 1.
	MaxUnavailable int `json:"max-unavailable"`
	// Soak is the wait after its last host, before the next stage.
	Soak Span `json:"soak,omitzero"`
	// Approval has the stage wait for somebody to approve it, at most for
	// ApprovalTimeout.
	Approval        bool `json:"approval,omitempty"`
	ApprovalTimeout Span `json:"approval-timeout,omitzero"`
	// Aside are hosts of the stage that are no members, as those that a retry
	// leaves alone: they count while they are out of service.
	Aside []string `json:"aside,omitempty"`
}

// Exempt is a host that is left out, or its reboot, and why.
type Exempt struct {
	Host   string `json:"host"`
	Reason string `json:"reason"`
}

// Timeouts bound the wait for the reply to each command.
type Timeouts struct {
	Prepare Span `json:"prepare"`
	Upgrade Span `json:"upgrade"`
	Reboot  Span `json:"reboot"`
}

// Checks tell whether a host, or the fleet, is well. All of a list must pass.
type Checks struct {
	BeforeHost []Check `json:"before-host,omitempty"`
	AfterHost  []Check `json:"after-host,omitempty"`
	// Fleet are run at the site, between hosts.
	Fleet []Check `json:"fleet,omitempty"`
}

// Hooks take a host out of service and put it back.
type Hooks struct {
	Drain   *Hook `json:"drain,omitempty"`
	Undrain *Hook `json:"undrain,omitempty"`
}

// The kinds of checks and hooks; a hook is exec or http.
const (
	ExecCheck    = "exec"
	HTTPCheck    = "http"
	TCPCheck     = "tcp"
	SystemdCheck = "systemd"
	DiskCheck    = "disk"
)

// Check is one check. Which members count depends on Type.
type Check struct {
	Name string `json:"name"`
	Type string `json:"type"`
	// Script is the name of a script that is installed where the check runs,
	// and Args its arguments (exec).
	Script string   `json:"script,omitempty"`
	Args   []string `json:"args,omitempty"`
	// URL is fetched; it passes with Status, or any of 200 to 299 when that is
	// 0 (http).
	URL    string `json:"url,omitempty"`
	Status int    `json:"status,omitempty"`
	// Address is host:port that must accept a connection (tcp).
	Address string `json:"address,omitempty"`
	// Unit must be active (systemd).
	Unit string `json:"unit,omitempty"`
	// Path is on a file system with at least MinFree bytes and MinFreePercent
	// percent free (disk).
	Path           string `json:"path,omitempty"`
	MinFree        uint64 `json:"min-free,omitempty"`
	MinFreePercent int    `json:"min-free-percent,omitempty"`
	// Passes is how often in a row it must pass, Interval the wait between two
	// tries, Timeout the longest time until it has passed so often.
	Passes   int  `json:"passes"`
	Interval Span `json:"interval"`
	Timeout  Span `json:"timeout"`
}

// Where a hook runs.
const (
	OnHost = "host"
	OnSite = "site"
)

// Hook is one hook.
type Hook struct {
	// Type is ExecCheck or HTTPCheck; a script gets the name of the host in
	// OSUPGRADE_HOST, a URL in place of {host}.
	Type   string   `json:"type"`
	Script string   `json:"script,omitempty"`
	Args   []string `json:"args,omitempty"`
	// URL is sent a request of Method, POST when empty.
	URL    string `json:"url,omitempty"`
	Method string `json:"method,omitempty"`
	// On is OnHost or OnSite.
	On string `json:"on"`
	// Timeout bounds one try; Retries more follow a failed one, RetryInterval
	// apart.
	Timeout       Span `json:"timeout"`
	Retries       int  `json:"retries,omitempty"`
	RetryInterval Span `json:"retry-interval,omitzero"`
}

// Span is a length of time, written such as "1h30m0s".
type Span time.Duration

// MarshalText implements encoding.TextMarshaler.
func (s Span) MarshalText() ([]byte, error) { return []byte(time.Duration(s).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Span) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil || d < 0 {
		return fmt.Errorf("%q is not a length of time", text)
	}
	*s = Span(d)
	return nil
}

// DefaultPolicy is that of a tenant without a rollout, for so many hosts: one
// host at a time, stop at the first that fails.
func DefaultPolicy(hosts int) Policy {
	return Policy{
		Stages:      []Stage{{Name: DefaultStage, Size: hosts, MaxUnavailable: 1}},
		MaxFailures: 1, OnFailure: Stop, MinPrepared: hosts, Overrun: FinishHost,
		Timeouts: Timeouts{Prepare: Span(time.Hour), Upgrade: Span(time.Hour), Reboot: Span(15 * time.Minute)},
	}
}

// DefaultStage is the name of the one stage of a rollout that names none.
const DefaultStage = "all"

// check tells what is wrong with a policy for so many members.
func (p Policy) check(members int) error {
	size := 0
	for i, s := range p.Stages {
		if s.Name == "" || s.Size < 1 || s.MaxUnavailable < 1 {
			return fmt.Errorf("stages[%d]: %q has %d hosts of which %d may be unavailable; each must be at least 1", i, s.Name, s.Size, s.MaxUnavailable)
		}
		// The sum of sizes as large as this could overflow.
		if s.Size > members {
			return fmt.Errorf("stages[%d]: %q has %d hosts, the run has %d", i, s.Name, s.Size, members)
		}
		size += s.Size
	}
	switch {
	case size != members:
		return fmt.Errorf("stages: they have %d hosts, the run has %d", size, members)
	case p.MaxFailures < 1:
		return fmt.Errorf("max-failures: %d is not possible; use at least 1", p.MaxFailures)
	case p.OnFailure != Stop && p.OnFailure != Pause && p.OnFailure != Continue:
		return fmt.Errorf("on-failure: %q is none of stop, pause, continue", p.OnFailure)
	case p.Overrun != FinishHost && p.Overrun != StopHost:
		return fmt.Errorf("overrun: %q is none of finish-host, stop", p.Overrun)
	case p.Timeouts.Prepare <= 0 || p.Timeouts.Upgrade <= 0 || p.Timeouts.Reboot <= 0:
		return fmt.Errorf("timeouts: each must be above 0s")
	}
	return nil
}
