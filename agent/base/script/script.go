// Package script runs programs that an operator has installed on a machine. It
// decides whether a program may be run: nobody but root and the agent's user may
// be able to write the file. It starts the program in a session of its own with a
// small environment, keeps the last line of its output, and kills its process
// group at the end.
//
// The package never chooses the program and never interprets its result.
package script

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"
)

// drainTime is how long to wait for the end of the output after the program and
// its group have ended: a process that left the group may hold the pipe open.
const drainTime = time.Second

// Run runs a program to its end and returns the last line of its standard output
// and standard error. If ctx ends first, the program is killed. In both cases its
// process group is killed; a child process survives only if it has left the
// group, as with setsid(1).
func Run(ctx context.Context, cmd *exec.Cmd) (said string, err error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, ignoreClosed(reader.Close())) }()
	cmd.Stdout, cmd.Stderr = writer, writer
	p, err := Start(cmd)
	if err := errors.Join(err, writer.Close()); err != nil {
		return "", err
	}
	output := readOutput(reader)
	select {
	case <-p.Exited:
	case <-ctx.Done():
		err = ctx.Err()
	}
	// The group's number cannot belong to another group: either the group ended
	// this instant, or a process that the program left behind is still in it.
	killed := p.Kill()
	said = output.await(reader)
	if killed && err != nil {
		return said, err
	}
	return said, p.Failure()
}

// Failure returns an error unless the program ended with exit status 0. It is
// valid once Exited is closed.
func (p *Process) Failure() error {
	if p.Err != nil {
		return p.Err
	}
	if status, ok := p.State.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		number := status.Signal()
		return fmt.Errorf("it was ended by signal %d (%s)", int(number), number)
	}
	if code := p.State.ExitCode(); code != 0 {
		return fmt.Errorf("exit status %d", code)
	}
	return nil
}

// Last reads to the end and returns the last line that is not blank, cleaned.
func Last(from io.Reader) string {
	var last []byte
	lines := NewLines(func(line []byte) {
		if !Blank(line) {
			last = append(last[:0], line...)
		}
	})
	_, _ = io.Copy(lines, from) // After a read error the output ends here.
	lines.End()
	return Clean(last)
}

// output reads the output of a program to its end.
type output struct {
	done chan struct{}
	last string
}

func readOutput(from io.Reader) *output {
	o := &output{done: make(chan struct{})}
	go func() {
		defer close(o.done)
		o.last = Last(from)
	}()
	return o
}

// await returns the last line.
func (o *output) await(reader io.Closer) string {
	late := time.NewTimer(drainTime)
	defer late.Stop()
	select {
	case <-o.done:
	case <-late.C:
		_ = reader.Close() // It ends the read in progress.
		<-o.done
	}
	return o.last
}

func ignoreClosed(err error) error {
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// Process is a started program. State and Err are valid once Exited is closed.
type Process struct {
	pid    int
	Exited chan struct{}
	State  *os.ProcessState
	// Err is set if the exit status could not be obtained.
	Err error
}

// Start starts a program in a session, and so a process group, of its own: a
// signal to the agent's terminal or group does not reach it.
func Start(cmd *exec.Cmd) (*Process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, explainStart(err)
	}
	p := &Process{pid: cmd.Process.Pid, Exited: make(chan struct{})}
	go p.wait(cmd)
	return p, nil
}

// wait reaps the program, even if nobody waits for Exited any more.
func (p *Process) wait(cmd *exec.Cmd) {
	defer close(p.Exited)
	var status *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &status) {
		p.Err = fmt.Errorf("cannot get the exit status of the script: %w", err)
	}
	p.State = cmd.ProcessState
}

// Group is the id of the program's process group.
func (p *Process) Group() int { return p.pid }

// Notice is how long to wait for an event that may have happened already. When
// this process resumes after a pause (SIGSTOP, a suspended machine), an expired
// timer fires at once, but the exit of a program is known only after wait(2).
const Notice = time.Second

// Ended reports whether the program has ended. It waits up to Notice.
func (p *Process) Ended() bool {
	select {
	case <-p.Exited:
		return true
	case <-time.After(Notice):
		return false
	}
}

// Kill kills the program's group and reports whether that ended the program. A
// program that had ended before keeps its exit status.
func (p *Process) Kill() bool {
	p.Signal(syscall.SIGKILL)
	<-p.Exited
	if p.Err != nil {
		return false
	}
	status, ok := p.State.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// Signal sends a signal to every process of the group. The only possible error,
// that the group is empty, is ignored.
func (p *Process) Signal(number syscall.Signal) {
	_ = syscall.Kill(-p.pid, number)
}

// explainStart adds the likely cause to errors of execve(2) that mislead.
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

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Environment returns the environment of every script: PATH, HOME, LANG=C.UTF-8
// and extra. Scripts do not get the rest of the agent's environment, which may
// hold secrets.
func Environment(getenv func(string) string, extra map[string]string) []string {
	env := map[string]string{
		"PATH": cmp.Or(getenv("PATH"), defaultPath),
		"HOME": cmp.Or(getenv("HOME"), "/"),
		"LANG": "C.UTF-8",
	}
	maps.Copy(env, extra)
	var list []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}
