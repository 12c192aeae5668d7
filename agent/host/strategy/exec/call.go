package exec

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/script"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// call is one call of an action.
type call struct {
	action action
	job    strategy.Job
	// boot is what is confirmed; of confirm alone.
	boot strategy.Boot
	// parse reads the result that the action prints; nil for one that prints none.
	parse func([]byte) error
	// planned gets the plan that prepare told, if it told one; nil for other actions.
	planned func(message.ChangeSet)
}

// call runs one action: it waits for the lock, starts the script, supervises it and
// interprets its end.
func (s *Strategy) call(ctx context.Context, c call) (result strategy.Outcome, err error) {
	a := c.action
	cannot := func(err error) error { return fmt.Errorf("cannot run %s: %w", a, err) }
	if c.job.Progress == nil {
		c.job.Progress = func(int, string) {}
	}
	if err := s.checkCommand(a); err != nil {
		return 0, cannot(err)
	}
	lock, err := s.acquire(ctx, a, c.job.Progress)
	if err != nil {
		return 0, cannot(err)
	}
	defer func() { err = errors.Join(err, ignoreClosed(lock.Close())) }()
	out, err := s.openOutput(c, lock)
	if err != nil {
		return 0, cannot(err)
	}
	defer func() { err = errors.Join(err, out.close()) }()
	folder, err := s.givenOutputs(ctx, c)
	if err != nil {
		return 0, cannot(err)
	}
	p, err := s.start(c, folder, lock, out)
	if err != nil {
		return 0, cannot(err)
	}
	s.started(string(a), p.Group())
	err = s.supervise(ctx, a, p, lock, out)
	if folder != "" && p.Ended() {
		err = errors.Join(err, os.RemoveAll(folder))
	}
	if err != nil {
		return 0, err
	}
	result, err = s.ended(a, p.State, out)
	if err == nil {
		err = c.results(out)
	}
	return result, err
}

// results reads what an action that has succeeded told.
func (c call) results(out *output) error {
	if c.parse != nil {
		return out.parse(c.action, c.parse)
	}
	if c.planned == nil || out.tail.plan == nil && out.tail.planErr == nil {
		return nil
	}
	if out.tail.planErr != nil {
		return fmt.Errorf("%s is done, and its plan cannot be used: %w%s", c.action, out.tail.planErr, out.where)
	}
	c.planned(*out.tail.plan)
	return nil
}

// supervise waits for the end of a script, follows its output, and stops the
// script if it exceeds its timeout or output limit. When ctx ends the script
// continues. A script that has ended never counts as overdue.
func (s *Strategy) supervise(ctx context.Context, a action, p *script.Process, lock *os.File, out *output) error {
	expired := s.after(s.limits[a])
	for {
		select {
		case <-p.Exited:
			return errors.Join(out.finish(), p.Err)
		case <-ctx.Done():
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) || !p.Ended() {
				return fmt.Errorf("%s continues without the worker: %w", a, ctx.Err())
			}
		case <-expired:
			if !p.Ended() {
				s.stop(p, lock)
				return errors.Join(out.finish(), overdue(a, s.limits[a], out))
			}
		case <-out.changed():
		case err := <-out.missed():
			out.tail.fail(err)
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
		said = fmt.Sprintf(" after it said %q", text.Fit(out.tail.last, script.MaxText/2, "..."))
	}
	return strategy.Fail(a.class(), fmt.Errorf("%s exceeded its time limit of %s and was ended%s%s", a, limit, said, out.where))
}

// stop stops a script and its process group: with SIGTERM, and with SIGKILL after
// the grace period or as soon as the script and all processes that hold its lock
// have ended.
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

// awaitRelease releases the lock and waits until no process holds it.
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
		_ = errors.Join(err, probe.Close()) // With or without an error the wait is over.
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

const (
	terminate = syscall.SIGTERM
	kill      = syscall.SIGKILL
)

// start starts an action with the lock, its request and the folder with the outputs of steps, if there
// is one.
func (s *Strategy) start(c call, outputs string, lock *os.File, out *output) (p *script.Process, err error) {
	stdin, err := requestOf(c, s.options).open(s.stateDir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stdin.Close()) }()
	inherited := make([]*os.File, lockFD-2)
	inherited[lockFD-3] = lock
	command := slices.Concat(s.wrap, s.commandOf(c.action))
	return script.Start(&osexec.Cmd{
		Path:       command[0],
		Args:       command,
		Dir:        s.workDir(),
		Env:        slices.Concat(s.env, jobEnvironment(c.action, c.job), releaseEnvironment(s.stateDir, c.job), script.OutputsEnvironment(outputs)),
		Stdin:      stdin,
		Stdout:     out.stdout(),
		Stderr:     out.log,
		ExtraFiles: inherited,
	})
}

// commandOf returns the program and the arguments of an action.
func (s *Strategy) commandOf(a action) []string {
	if s.program != nil {
		return append(slices.Clone(s.program), string(a))
	}
	return []string{s.script(a)}
}

// workDir is the folder in which an action runs.
func (s *Strategy) workDir() string {
	if s.program != nil {
		return s.stateDir
	}
	return s.dir
}

// lockFD is the descriptor at which a script inherits the lock. Every shell can
// close a descriptor of one digit, and scripts often use the lowest ones.
const lockFD = 8

// jobEnvironment returns the variables that describe the job. Variables that do
// not apply are absent.
func jobEnvironment(a action, job strategy.Job) []string {
	env := []string{"OSUPGRADE_ACTION=" + string(a), "OSUPGRADE_LOCK_FD=" + strconv.Itoa(lockFD)}
	if job.Tenant != "" {
		env = append(env, "OSUPGRADE_TENANT="+job.Tenant)
	}
	if job.Host != "" {
		env = append(env, "OSUPGRADE_HOST="+job.Host)
	}
	if job.Run != 0 {
		env = append(env, "OSUPGRADE_RUN="+strconv.FormatUint(job.Run, 10))
	}
	if job.RollbackOf != 0 {
		env = append(env, "OSUPGRADE_ROLLBACK_OF="+strconv.FormatUint(job.RollbackOf, 10))
	}
	return env
}

// releaseEnvironment returns the variables that describe the release of a job: its name, its digest
// and the file with its text.
func releaseEnvironment(stateDir string, job strategy.Job) []string {
	if job.Release == nil {
		return nil
	}
	return []string{
		"OSUPGRADE_RELEASE=" + job.ReleaseName, "OSUPGRADE_RELEASE_DIGEST=" + job.Release.Digest(),
		"OSUPGRADE_RELEASE_JSON=" + filepath.Join(stateDir, releaseFile),
	}
}

// checkAll checks the program, or the folder and its scripts.
func (s *Strategy) checkAll() error {
	if s.program != nil {
		return s.checkCommand("")
	}
	if err := s.checkFolder(); err != nil {
		return err
	}
	var problems []error
	for _, a := range slices.Concat(required, optional) {
		has, err := s.has(a)
		if err == nil && (has || slices.Contains(required, a)) {
			err = s.checkScript(a)
		}
		problems = append(problems, err)
	}
	return errors.Join(append(problems, s.checkPair(actionBooted, actionConfirm))...)
}

// checkPair refuses one of two scripts without the other.
func (s *Strategy) checkPair(a, b action) error {
	hasA, errA := s.has(a)
	hasB, errB := s.has(b)
	if err := errors.Join(errA, errB); err != nil || hasA == hasB {
		return err
	}
	if hasB {
		a, b = b, a
	}
	return fmt.Errorf("there is the script %s without the script %s; a host that tells which system has started also confirms it: write both or neither", a, b)
}

// checkCommand is repeated before each start, because what is to be started may have
// been replaced since Detect.
func (s *Strategy) checkCommand(a action) error {
	if s.program != nil {
		return script.CheckFile(s.program[0])
	}
	return errors.Join(s.checkFolder(), s.checkScript(a))
}

func (s *Strategy) checkFolder() error { return script.CheckFolder(s.dir) }

func (s *Strategy) checkScript(a action) error { return script.CheckFile(s.script(a)) }

func (s *Strategy) script(a action) string { return filepath.Join(s.dir, string(a)) }

// has reports whether there is an action: a program has all, and decides what each is.
func (s *Strategy) has(a action) (bool, error) {
	if s.program != nil {
		return true, nil
	}
	_, err := os.Lstat(s.script(a))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// ended returns the outcome of a script that has ended, or the error of a failure.
func (s *Strategy) ended(a action, state *os.ProcessState, out *output) (strategy.Outcome, error) {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		number := status.Signal()
		return 0, strategy.Fail(s.endedBy(a, number), fmt.Errorf("%s was ended by signal %d (%s)%s", a, int(number), number, out.where))
	}
	status := state.ExitCode()
	result, ok, err := outcome(a, status)
	switch {
	case errors.Is(err, strategy.ErrNoPlan), errors.Is(err, strategy.ErrNoRollback):
		return 0, err
	case err != nil:
		return 0, fmt.Errorf("%w%s", err, out.where)
	case ok:
		return result, nil
	}
	said := out.tail.last
	if said == "" {
		said = string(a) + " failed and printed nothing"
	}
	err = fmt.Errorf("%s: exit status %d%s", said, status, out.where)
	if s.program != nil && out.tail.last != "" && (status == statusFailed || status == statusTransient) {
		// It ended in order, see Serve: its last line is the whole error, made for people.
		err = errors.New(said)
	}
	switch {
	case out.tail.class != "":
		return 0, strategy.Fail(out.tail.class, err)
	case status == statusTransient:
		return 0, strategy.Fail(message.Transient, err)
	}
	return 0, err
}

// endedBy returns the class of an action that a signal has ended. SIGTERM is what systemd
// sends when somebody reboots this host: the action is resumed after the boot. A strategy of
// this program is also resumed if it was killed, as when memory was short.
func (s *Strategy) endedBy(a action, number syscall.Signal) message.Class {
	if number == terminate || number == kill && s.program != nil {
		return message.Transient
	}
	return a.class()
}
