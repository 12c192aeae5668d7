// Package script runs programs that an operator installed on a machine: it
// refuses one that somebody else could have written, starts it in a session of
// its own with a small environment, keeps the last line that it prints, and
// ends it together with all that it started and that has not left its group.
//
// It does not decide which program runs, nor what its end means.
package script

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// lastWords is how long to wait, once a program and its group have ended, for
// what it printed: a process that left the group may hold the pipe open.
const lastWords = time.Second

// Run runs a program to its end and returns the last line that it printed, on
// standard output or error. When ctx ends first, it is killed. With it ends its
// process group: what it started stays behind only if that has left the group,
// as setsid(1) does.
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
	heard := listen(reader)
	select {
	case <-p.Exited:
	case <-ctx.Done():
		err = ctx.Err()
	}
	// No other group can have its number: it has ended this instant, or lives on
	// in what the program left behind.
	killed := p.Kill()
	said = heard.await(reader)
	if killed && err != nil {
		return said, err
	}
	return said, p.Failure()
}

// Failure is what is wrong with the way in which the program ended. It counts
// once Exited is closed.
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

// Last reads to the end and returns the last line that shows something, in
// words.
func Last(from io.Reader) string {
	var last []byte
	lines := NewLines(func(line []byte) {
		if !Blank(line) {
			last = append(last[:0], line...)
		}
	})
	_, _ = io.Copy(lines, from) // What could not be read was not said.
	lines.End()
	return Clean(last)
}

// listener reads to the end what a program prints.
type listener struct {
	done chan struct{}
	last string
}

func listen(from io.Reader) *listener {
	l := &listener{done: make(chan struct{})}
	go func() {
		defer close(l.done)
		l.last = Last(from)
	}()
	return l
}

// await returns the last line.
func (l *listener) await(reader io.Closer) string {
	late := time.NewTimer(lastWords)
	defer late.Stop()
	select {
	case <-l.done:
	case <-late.C:
		_ = reader.Close() // It ends the reading.
		<-l.done
	}
	return l.last
}

func ignoreClosed(err error) error {
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}
