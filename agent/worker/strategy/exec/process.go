package exec

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	osexec "os/exec"
	"slices"
	"syscall"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy"
)

const (
	terminate = syscall.SIGTERM
	kill      = syscall.SIGKILL
)

// maxRequest is what a pipe takes at once on every system: the request is
// written before the script starts, so that it is whole though the worker dies.
const maxRequest = 4096

// process is a script that was started. state and err count once exited is
// closed.
type process struct {
	pid    int
	exited chan struct{}
	state  *os.ProcessState
	err    error
}

// start starts a script with a session, and so a process group, of its own: a
// signal to the worker's terminal or group does not reach it.
func (s *Strategy) start(a action, job strategy.Job, lock *os.File, out *output) (p *process, err error) {
	stdin, err := requestPipe(ask(a, job))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stdin.Close()) }()
	inherited := make([]*os.File, lockFD-2)
	inherited[lockFD-3] = lock
	cmd := &osexec.Cmd{
		Path:        s.script(a),
		Args:        []string{s.script(a)},
		Dir:         s.dir,
		Env:         slices.Concat(s.env, jobEnvironment(a, job)),
		Stdin:       stdin,
		Stdout:      out.stdout(),
		Stderr:      out.log,
		ExtraFiles:  inherited,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		return nil, explainStart(err)
	}
	p = &process{pid: cmd.Process.Pid, exited: make(chan struct{})}
	go p.wait(cmd)
	return p, nil
}

// wait reaps the script, also when the call has long returned.
func (p *process) wait(cmd *osexec.Cmd) {
	defer close(p.exited)
	var status *osexec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &status) {
		p.err = fmt.Errorf("cannot learn how the script ended: %w", err)
	}
	p.state = cmd.ProcessState
}

// signal reaches every process of the group. Its only error for a child of
// ours is that there is none any more, which is what it is for.
func (p *process) signal(number syscall.Signal) {
	_ = syscall.Kill(-p.pid, number)
}

// requestPipe returns the reading end of a pipe that holds the request.
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

// explainStart says what would be right where the system's word is misleading.
func explainStart(err error) error {
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("%w; a script's first line names its interpreter, such as #!/bin/sh", err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w; the interpreter that its first line names is missing, or that line ends with a carriage return", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w; the script, its interpreter or the mount (noexec) forbids it", err)
	default:
		return err
	}
}
