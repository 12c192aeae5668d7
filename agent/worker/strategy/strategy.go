// Package strategy defines how a host is upgraded: a Strategy prepares, upgrades,
// verifies and rolls back one host, and finds out after a crash what really
// happened. Each folder below contains one strategy.
//
// A strategy acts on its host. It never talks to the controller, keeps no journal
// and never decides the order of steps: the worker does.
package strategy

import (
	"context"
	"errors"
	"time"
)

// Job describes the run and host of a step.
type Job struct {
	Tenant string
	Host   string
	// Run is the id of the run.
	Run uint64
	// NotAfter is when the run ends at the latest.
	NotAfter time.Time
	// BootID is the kernel's boot id at the time of the call.
	BootID string
	// Progress reports progress for people; it is never nil. percent is 0 to 100,
	// or negative if unknown.
	Progress func(percent int, message string)
}

// Outcome is the result of an upgrade without an error.
type Outcome int

const (
	// Done means that no further step is needed (AV-67).
	Done Outcome = iota + 1
	// RebootRequired means that the upgrade takes effect after a reboot (AV-67).
	RebootRequired
	// NotDone is returned only by Resume: the interrupted upgrade had no effect
	// that matters, so Upgrade may be called again.
	NotDone
)

// Strategy upgrades one host. Each call returns when ctx ends. The text of an
// error becomes the host's reply, so it says what failed.
type Strategy interface {
	// Detect returns an error when this host cannot be upgraded this way.
	Detect(ctx context.Context) error
	// Versions returns each relevant package and its version (AV-74).
	Versions(ctx context.Context) (map[string]string, error)
	// Prepare does everything that needs no downtime. It may be called again after
	// a crash, and must leave the host able to run and boot as before (AV-62).
	Prepare(ctx context.Context, job Job) error
	// Upgrade upgrades the host. The worker calls it at most once per run, unless
	// Resume returns NotDone.
	Upgrade(ctx context.Context, job Job) (Outcome, error)
	// Resume returns the outcome of Upgrade after a crash or a boot during it. It
	// waits for an upgrade that still runs.
	Resume(ctx context.Context, job Job) (Outcome, error)
	// Verify checks the upgraded host, after the reboot if there was one.
	Verify(ctx context.Context, job Job) error
	// Rollback undoes a failed upgrade; it may be called again after a crash. It
	// returns ErrNoRollback if the strategy has no rollback.
	Rollback(ctx context.Context, job Job) error
}

// Watcher is implemented by a Strategy that knows which files change with the
// versions.
type Watcher interface {
	// VersionPaths returns the files and folders to watch: after a change of one of
	// them Versions is called again. Reading the versions should not change them.
	VersionPaths() []string
}

// Printer is implemented by a Strategy whose steps print text.
type Printer interface {
	// Output returns the end of what a step of a run has printed so far: at most limit
	// bytes, and whether there was more before them. A step that has printed nothing
	// has no text and no error.
	Output(run uint64, step string, limit int) (printed []byte, cut bool, err error)
}

// ErrNoRollback is returned by Rollback if the strategy has no rollback.
var ErrNoRollback = errors.New("this strategy has no rollback")
