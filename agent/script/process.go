package script

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Process is a program that was started. State and Err count once Exited is
// closed.
type Process struct {
	pid    int
	Exited chan struct{}
	State  *os.ProcessState
	// Err is why it is not known how the program ended.
	Err error
}

// Start starts a program with a session, and so a process group, of its own: a
// signal to our terminal or group does not reach it.
func Start(cmd *exec.Cmd) (*Process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, explainStart(err)
	}
	p := &Process{pid: cmd.Process.Pid, Exited: make(chan struct{})}
	go p.wait(cmd)
	return p, nil
}

// wait reaps the program, also when nobody waits for it any more.
func (p *Process) wait(cmd *exec.Cmd) {
	defer close(p.Exited)
	var status *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &status) {
		p.Err = fmt.Errorf("cannot learn how the script ended: %w", err)
	}
	p.State = cmd.ProcessState
}

// Notice is how long to wait for news that may be there already. After a pause
// of this process (SIGSTOP, a frozen machine) the end of its time is known at
// once, but that of a program only when somebody has asked the system.
const Notice = time.Second

// Ended reports whether the program has ended, also where nobody has taken
// note of that yet.
func (p *Process) Ended() bool {
	select {
	case <-p.Exited:
		return true
	case <-time.After(Notice):
		return false
	}
}

// Kill ends the program and its group, and reports whether the program was
// ended by it: one that had ended before keeps its status.
func (p *Process) Kill() bool {
	p.Signal(syscall.SIGKILL)
	<-p.Exited
	if p.Err != nil {
		return false
	}
	status, ok := p.State.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// Signal reaches every process of the group. Its only error for a child of
// ours is that there is none any more, which is what it is for.
func (p *Process) Signal(number syscall.Signal) {
	_ = syscall.Kill(-p.pid, number)
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
