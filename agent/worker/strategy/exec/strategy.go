package exec

import (
	"context"
	"fmt"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy"
)

// Detect checks the folder and every script that it needs or has.
func (s *Strategy) Detect(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.checkAll(); err != nil {
		return fmt.Errorf("cannot upgrade by scripts: %w", err)
	}
	return nil
}

// Versions runs the script versions and returns what it prints.
func (s *Strategy) Versions(ctx context.Context) (map[string]string, error) {
	silent := strategy.Job{Progress: func(int, string) {}}
	var versions map[string]string
	_, err := s.call(ctx, actionVersions, silent, func(printed []byte) (err error) {
		versions, err = parseVersions(printed)
		return err
	})
	return versions, err
}

// Prepare runs the script prepare, if there is one.
func (s *Strategy) Prepare(ctx context.Context, job strategy.Job) error {
	return s.callOptional(ctx, actionPrepare, job, nil)
}

// Upgrade runs the script upgrade. When ctx ends the script goes on.
func (s *Strategy) Upgrade(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	return s.call(ctx, actionUpgrade, job, nil)
}

// Resume waits for a script that still runs, and then runs the script resume.
func (s *Strategy) Resume(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	return s.call(ctx, actionResume, job, nil)
}

// Verify runs the script verify, if there is one.
func (s *Strategy) Verify(ctx context.Context, job strategy.Job) error {
	return s.callOptional(ctx, actionVerify, job, nil)
}

// Rollback runs the script rollback. Without one it returns ErrNoRollback.
func (s *Strategy) Rollback(ctx context.Context, job strategy.Job) error {
	return s.callOptional(ctx, actionRollback, job, strategy.ErrNoRollback)
}

// callOptional runs a script, or returns the error for a missing one.
func (s *Strategy) callOptional(ctx context.Context, a action, job strategy.Job, missing error) error {
	has, err := s.has(a)
	if err != nil {
		return fmt.Errorf("cannot run %s: %w", a, err)
	}
	if !has {
		return missing
	}
	_, err = s.call(ctx, a, job, nil)
	return err
}
