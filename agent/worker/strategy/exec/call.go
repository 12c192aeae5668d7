package exec

import (
	"context"
	"encoding/json"
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

	"github.com/osupgrade/terraform-provider-osupgrade/agent/script"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy"
)

// call runs one script: it waits for the lock, starts the script, supervises it
// and interprets its end. parse parses the output of versions; it is nil for other
// actions.
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
			out.reportMissed(err)
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
	return fmt.Errorf("%s exceeded its time limit of %s and was ended%s, output in %s", a, limit, said, out.log.Name())
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

// action is an action of a host and the name of its script.
type action string

const (
	actionVersions action = "versions"
	actionPrepare  action = "prepare"
	actionUpgrade  action = "upgrade"
	actionResume   action = "resume"
	actionVerify   action = "verify"
	actionRollback action = "rollback"
)

// required are the actions that must have a script.
var required = []action{actionVersions, actionUpgrade, actionResume}

var optional = []action{actionPrepare, actionVerify, actionRollback}

// The exit statuses with a meaning.
const (
	statusDone           = 0
	statusRebootRequired = 10
	statusNotDone        = 11
)

// request is the JSON object on a script's standard input.
type request struct {
	Action   action    `json:"action"`
	Tenant   string    `json:"tenant,omitzero"`
	Host     string    `json:"host,omitzero"`
	Run      uint64    `json:"run,omitzero"`
	NotAfter time.Time `json:"not-after,omitzero"`
	BootID   string    `json:"boot-id,omitzero"`
}

func requestOf(a action, job strategy.Job) request {
	return request{a, job.Tenant, job.Host, job.Run, job.NotAfter.UTC(), job.BootID}
}

// outcome returns the meaning of an exit status for an action. ok is false if the
// script failed. An error means a status that only other actions may return.
func outcome(a action, status int) (result strategy.Outcome, ok bool, err error) {
	switch {
	case status == statusDone:
		return strategy.Done, true, nil
	case status == statusRebootRequired && (a == actionUpgrade || a == actionResume):
		return strategy.RebootRequired, true, nil
	case status == statusNotDone && a == actionResume:
		return strategy.NotDone, true, nil
	case status == statusRebootRequired:
		return 0, false, fmt.Errorf("exit status %d means that a reboot is required, which only upgrade and resume may return, not %s", status, a)
	case status == statusNotDone:
		return 0, false, fmt.Errorf("exit status %d means not done, which only resume may return, not %s", status, a)
	default:
		return 0, false, nil
	}
}

const (
	terminate = syscall.SIGTERM
	kill      = syscall.SIGKILL
)

// maxRequest is the size that a pipe buffers on every system. The request is
// written before the script starts, so it is complete even if the worker dies.
const maxRequest = 4096

// start starts a script with the lock and its request.
func (s *Strategy) start(a action, job strategy.Job, lock *os.File, out *output) (p *script.Process, err error) {
	stdin, err := requestPipe(requestOf(a, job))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stdin.Close()) }()
	inherited := make([]*os.File, lockFD-2)
	inherited[lockFD-3] = lock
	return script.Start(&osexec.Cmd{
		Path:       s.script(a),
		Args:       []string{s.script(a)},
		Dir:        s.dir,
		Env:        slices.Concat(s.env, jobEnvironment(a, job)),
		Stdin:      stdin,
		Stdout:     out.stdout(),
		Stderr:     out.log,
		ExtraFiles: inherited,
	})
}

// requestPipe returns the read end of a pipe that contains the request.
func requestPipe(r request) (*os.File, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	if len(data) >= maxRequest {
		return nil, fmt.Errorf("its input is %d bytes; at most %d", len(data), maxRequest-1)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	_, err = writer.Write(append(data, '\n'))
	if err := errors.Join(err, writer.Close()); err != nil {
		return nil, errors.Join(err, reader.Close())
	}
	return reader, nil
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
	return env
}

// checkAll checks the folder and its scripts.
func (s *Strategy) checkAll() error {
	var problems []error
	if err := s.checkFolder(); err != nil {
		return err
	}
	for _, a := range slices.Concat(required, optional) {
		has, err := s.has(a)
		if err == nil && (has || slices.Contains(required, a)) {
			err = s.checkScript(a)
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

func (s *Strategy) checkFolder() error { return script.CheckFolder(s.dir) }

// checkScript is repeated before each start, because the script may have been
// replaced since Detect.
func (s *Strategy) checkScript(a action) error { return script.CheckFile(s.script(a)) }

func (s *Strategy) script(a action) string { return filepath.Join(s.dir, string(a)) }

// has reports whether a file with the script's name exists.
func (s *Strategy) has(a action) (bool, error) {
	_, err := os.Lstat(s.script(a))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// ended returns the outcome of a script that has ended, or the error of a failure.
func ended(a action, state *os.ProcessState, out *output) (strategy.Outcome, error) {
	where := "output in " + out.log.Name()
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		number := status.Signal()
		return 0, fmt.Errorf("%s was ended by signal %d (%s), %s", a, int(number), number, where)
	}
	status := state.ExitCode()
	result, ok, err := outcome(a, status)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%w, %s", err, where)
	case ok:
		return result, nil
	case out.tail.last == "":
		return 0, fmt.Errorf("%s failed and printed nothing: exit status %d, %s", a, status, where)
	default:
		return 0, fmt.Errorf("%s: exit status %d, %s", out.tail.last, status, where)
	}
}
