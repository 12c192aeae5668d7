package check

import (
	"context"
	"fmt"
	"syscall"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/policy"
)

// space tries a disk check. Of a path that it cannot look at it does not tell
// why: whoever writes a rollout is not to learn by it which files there are. It
// does not wait longer than ctx for a file system
// that does not answer, as one over the network may do.
func (r *Runner) space(ctx context.Context, c policy.Check) error {
	statfs := r.statfs
	if statfs == nil {
		statfs = syscall.Statfs
	}
	answer := make(chan error, 1)
	go func() {
		var s syscall.Statfs_t
		if err := statfs(c.Path, &s); err != nil {
			answer <- fmt.Errorf("cannot look at %s; use a folder of this machine that its agent may look into", c.Path)
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

// enough counts what everybody may use, as df(1) does: some of a file system
// is kept for root.
func enough(s syscall.Statfs_t, c policy.Check) error {
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
