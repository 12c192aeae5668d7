package exec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/script"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy"
)

// call runs one script from the wait for the lock to what its end means. parse
// takes what versions printed; it is nil for the others.
func (s *Strategy) call(ctx context.Context, a action, job strategy.Job, parse func([]byte) error) (result strategy.Outcome, err error) {
	if err := errors.Join(s.checkFolder(), s.checkScript(a)); err != nil {
		return 0, fmt.Errorf("cannot run %s: %w", a, err)
	}
	lock, err := s.acquire(ctx, a, job.Progress)
	if err != nil {
		return 0, fmt.Errorf("cannot run %s: %w", a, err)
	}
	defer func() { err = errors.Join(err, ignoreClosed(lock.Close())) }()
	out, err := s.openOutput(a, job, lock)
	if err != nil {
		return 0, fmt.Errorf("cannot run %s: %w", a, err)
	}
	defer func() { err = errors.Join(err, out.close()) }()
	p, err := s.start(a, job, lock, out)
	if err != nil {
		return 0, fmt.Errorf("cannot run %s: %w", a, err)
	}
	if err := s.supervise(ctx, a, p, lock, out); err != nil {
		return 0, err
	}
	result, err = ended(a, p.State, out)
	if err == nil && parse != nil {
		err = out.parse(parse)
	}
	return result, err
}

// supervise waits for the end of a script, follows its output and ends it when
// it exceeds its bounds. When ctx ends the script goes on. A script that has
// ended is never overdue: its end is the next that is heard of.
func (s *Strategy) supervise(ctx context.Context, a action, p *script.Process, lock *os.File, out *output) error {
	expired := s.after(s.limits[a])
	for {
		select {
		case <-p.Exited:
			return errors.Join(out.finish(), p.Err)
		case <-ctx.Done():
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) || !p.Ended() {
				return fmt.Errorf("%s goes on without the worker: %w", a, ctx.Err())
			}
		case <-expired:
			if !p.Ended() {
				s.stop(p, lock)
				return errors.Join(out.finish(), overdue(a, s.limits[a], out))
			}
		case <-out.changed():
		case err := <-out.missed():
			out.blame(err)
		}
		if err := out.follow(); err != nil {
			s.stop(p, lock)
			return err
		}
	}
}

func overdue(a action, limit time.Duration, out *output) error {
	said := ""
	if out.tail.last != "" {
		said = fmt.Sprintf(" after it said %q", script.Shortened(out.tail.last, script.MaxText/2))
	}
	return fmt.Errorf("%s exceeded its time limit of %s and was ended%s, output in %s", a, limit, said, out.log.Name())
}

// stop ends a script and its process group: SIGTERM, and SIGKILL once the grace
// has passed or, for what is left of the group, the script and all that hold
// its lock have ended.
func (s *Strategy) stop(p *script.Process, lock *os.File) {
	p.Signal(terminate)
	grace := s.after(s.grace)
	select {
	case <-p.Exited:
		s.awaitRelease(lock, grace)
	case <-grace:
	}
	p.Signal(kill)
	<-p.Exited
}

// awaitRelease gives the lock up and waits until nobody has it.
func (s *Strategy) awaitRelease(lock *os.File, grace <-chan time.Time) {
	if lock.Close() != nil {
		return
	}
	probe, err := s.openLock()
	if err != nil {
		return
	}
	got, abandon := lockLater(probe)
	select {
	case err := <-got:
		_ = errors.Join(err, probe.Close()) // Either way there is nothing more to wait for.
	case <-grace:
		abandon()
	}
}

func ignoreClosed(err error) error {
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}
