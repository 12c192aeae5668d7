package check

import (
	"context"
	"fmt"
	"syscall"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// space tries a disk check. Its error does not say why a path cannot be examined:
// the author of a rollout must not find out which files exist. A file system that
// does not answer, such as a network file system, does not block it beyond ctx.
func (r *Runner) space(ctx context.Context, c rollout.Check) error {
	statfs := r.statfs
	if statfs == nil {
		statfs = syscall.Statfs
	}
	answer := make(chan error, 1)
	go func() {
		var s syscall.Statfs_t
		if err := statfs(c.Path, &s); err != nil {
			answer <- fmt.Errorf("cannot examine %s; use a folder of this machine that the agent can access", c.Path)
			return
		}
		answer <- enough(s, c)
	}()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return errNoAnswer
	}
}

// enough checks the space that is free for everybody, as df(1) does. The space
// reserved for root does not count.
func enough(s syscall.Statfs_t, c rollout.Check) error {
	free, total := s.Bavail*uint64(s.Bsize), (s.Blocks-s.Bfree+s.Bavail)*uint64(s.Bsize)
	bytes, percent := c.MinFree.Least()
	if free < bytes {
		return fmt.Errorf("%s has %d bytes free; it should be %d", c.Path, free, bytes)
	}
	if share := 100 * float64(free) / float64(max(1, total)); share < float64(percent) {
		return fmt.Errorf("%s has %.1f%% free; it should be %d%%", c.Path, share, percent)
	}
	return nil
}
