// Package view shows runs as the REST API has them: it turns what package run
// knows into the objects of package v1, and records of the log into the story of
// a run.
//
// It decides nothing and reads no clock.
package view

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Status values of a tenant.
const (
	StatusIdle      = "idle"
	StatusWaiting   = "waiting"
	StatusPreparing = "preparing"
	StatusUpgrading = "upgrading"
	StatusRebooting = "rebooting"
	StatusVerifying = "verifying"
	StatusPaused    = "paused"
	StatusAborting  = "aborting"
)

// Status is the status of a tenant whose run under way is current; nil is none. kept means that the query
// of a disruption budget keeps its hosts in service.
func Status(current *run.State, kept bool, now time.Time) string {
	switch {
	case current == nil:
		return StatusIdle
	case current.IsAborting():
		return StatusAborting
	case current.Paused != nil:
		return StatusPaused
	case current.Phase != run.Upgrading && current.Phase != run.Preparing:
		return StatusPreparing
	case current.Count(run.Rebooting)+current.Count(run.RebootPending) > 0:
		return StatusRebooting
	case current.Count(run.HostUpgrading)+current.Count(run.Draining) > 0:
		return StatusUpgrading
	case current.Count(run.Checking) > 0:
		return StatusVerifying
	case !current.Prepared():
		return StatusPreparing
	}
	if _, waits := current.Waiting(now); waits || kept {
		return StatusWaiting
	}
	return StatusUpgrading
}

// LastUpgrade shows the last run that has ended; nil when ended is.
func LastUpgrade(ended *run.State) *v1.LastUpgradeInfo {
	if ended == nil {
		return nil
	}
	info := &v1.LastUpgradeInfo{
		StartTime: Time(ended.OpenedAt), EndTime: Time(ended.EndedAt), Result: string(ended.Result), Hosts: []v1.UpgradedHost{},
	}
	for _, h := range ended.Hosts() {
		info.Hosts = append(info.Hosts, v1.UpgradedHost{Hostname: h.Name, Status: string(h.Status), Error: h.Error})
	}
	return info
}

// Missed shows the window that was missed last; nil when m is.
func Missed(m *message.Missed) *v1.MissedWindow {
	if m == nil {
		return nil
	}
	return &v1.MissedWindow{Start: Time(m.Window), End: Time(m.WindowEnd), Reason: m.Reason}
}

// Time is a time as the API has it: in whole seconds, because some clients read
// only certain numbers of decimals.
func Time(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// OptionalTime is Time for a member that is left out when the time is zero.
func OptionalTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	at := Time(t) // The address of t would put each time in the heap, also a zero one.
	return &at
}
