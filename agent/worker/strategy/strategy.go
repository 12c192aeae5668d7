// Package strategy says how a host is upgraded: a Strategy prepares, upgrades,
// verifies and rolls back one host, and tells after a crash what really
// happened. Its folders hold one strategy each.
//
// A strategy acts on the host. It never talks to the controller, keeps no
// journal and decides nothing about the order of steps: that is the worker's.
package strategy

import (
	"context"
	"time"
)

// Job is what a strategy is told about the step that it carries out.
type Job struct {
	Tenant string
	Host   string
	// Run is the id of the run that the step belongs to.
	Run uint64
	// NotAfter is when the run ends at the latest.
	NotAfter time.Time
	// BootID is the kernel's boot id at the time of the call.
	BootID string
	// Progress, never nil, takes word of how the work goes on, for people:
	// percent is 0 to 100, or negative when unknown.
	Progress func(percent int, message string)
}

// Outcome is how an upgrade went when it did not fail.
type Outcome int

const (
	// Done means that no further step is needed (AV-67).
	Done Outcome = iota + 1
	// RebootRequired means that the upgrade is in place after a reboot
	// (AV-67).
	RebootRequired
	// NotDone is an answer of Resume alone: the interrupted upgrade had no
	// effect that matters, so Upgrade may be called again.
	NotDone
)

// Strategy upgrades one host. Each call ends when ctx does. An error's text
// becomes the host's reply, so it says in words what failed.
type Strategy interface {
	// Detect returns an error when this host cannot be upgraded this way.
	Detect(ctx context.Context) error
	// Versions returns each relevant package and its version (AV-74).
	Versions(ctx context.Context) (map[string]string, error)
	// Prepare does whatever needs no downtime; it may be called again after a
	// crash, and must leave the host able to run and boot as before (AV-62).
	Prepare(ctx context.Context, job Job) error
	// Upgrade upgrades the host. The worker calls it at most once per run,
	// unless Resume answers NotDone.
	Upgrade(ctx context.Context, job Job) (Outcome, error)
	// Resume tells, after a crash or a boot in the middle of Upgrade, what
	// Upgrade came to. It waits for work that still goes on.
	Resume(ctx context.Context, job Job) (Outcome, error)
	// Verify checks the upgraded host, after the reboot if there was one.
	Verify(ctx context.Context, job Job) error
	// Rollback undoes a failed upgrade; it may be called again after a crash.
	// It returns ErrNoRollback when this strategy has none.
	Rollback(ctx context.Context, job Job) error
}
