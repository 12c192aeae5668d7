// Package program runs the programs of a strategy, such as apt-get or dnf: to their end,
// with what they print in memory and copied for people. What a program ended with is
// no error here: the strategy decides what it means.
package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Command is a program with its arguments.
type Command struct {
	Name string
	Args []string
	// Env is added to the environment.
	Env []string
	// Status, if it is not nil, gets each line that the program writes to StatusFD.
	Status func(line string)
	// Quiet keeps what is printed out of the output of the action: it is only read.
	Quiet bool
}

// Ended is a command that has ended.
type Ended struct {
	Exit int
	// Stdout is standard output, Printed that and standard error. For a command that is
	// not quiet they are the same.
	Stdout, Printed string
}

// Runner runs a command to its end. An error means that it could not be run, or was
// stopped because ctx ended; what it ended with is no error.
type Runner func(ctx context.Context, c Command) (Ended, error)

// maxPrinted bounds what a command may print, in bytes. A command that prints more is
// stopped, since a part of a plan is no plan.
const maxPrinted = 64 << 20

// StatusFD is the descriptor of Command.Status: that of APT::Status-Fd.
const StatusFD = 3

// stopGrace is how long a program may take to end after SIGTERM.
const stopGrace = 30 * time.Second

// tailEvery is how often the output of a command is read while it runs.
const tailEvery = 200 * time.Millisecond

// environment is that of every command: messages are English.
var environment = []string{
	"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8", "LANG=C.UTF-8", "TERM=dumb",
}

// System returns the runner of this machine. Outputs are copied to out; env is added to
// the environment of every command.
//
// The outputs are files in memory, not pipes: when this process is killed, the programs
// go on, where a closed pipe would end them halfway, and a daemon that a package starts
// may keep them open.
func System(out io.Writer, env ...string) Runner {
	return func(ctx context.Context, c Command) (result Ended, err error) {
		r := running{out: out, Command: c}
		if err := r.open(); err != nil {
			return Ended{}, fmt.Errorf("cannot run %s: %w", c.Describe(), err)
		}
		defer func() { err = errors.Join(err, r.close()) }()
		ctx, stop := context.WithCancelCause(ctx)
		defer stop(nil)
		cmd := exec.CommandContext(ctx, c.Name, c.Args...) //nolint:gosec // the strategy names the program
		cmd.Env = slices.Concat(environment, env, c.Env)
		cmd.Dir = "/"
		cmd.Stdout, cmd.Stderr = r.stdout, r.stderr
		if r.status != nil {
			cmd.ExtraFiles = []*os.File{r.status}
		}
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = stopGrace
		if err := cmd.Start(); err != nil {
			return Ended{}, fmt.Errorf("cannot run %s: %w", c.Describe(), err)
		}
		exited := make(chan error, 1)
		go func() { exited <- cmd.Wait() }()
		err = r.follow(exited, stop)
		return r.end(ctx, err)
	}
}

// running is a command that runs.
type running struct {
	Command
	out                    io.Writer
	stdout, stderr, status *os.File
	// told and copied are how far status and output were read.
	told, copied int64
}

func (r *running) open() (err error) {
	files := []**os.File{&r.stdout}
	if r.Quiet {
		files = append(files, &r.stderr)
	}
	if r.Status != nil {
		files = append(files, &r.status)
	}
	for _, file := range files {
		fd, err := unix.MemfdCreate("output", unix.MFD_CLOEXEC)
		if err != nil {
			return errors.Join(err, r.close())
		}
		*file = os.NewFile(uintptr(fd), "output")
	}
	if r.stderr == nil {
		r.stderr = r.stdout
	}
	return nil
}

func (r *running) close() error {
	var problems []error
	for _, file := range []*os.File{r.stdout, r.stderr, r.status} {
		if file != nil {
			if err := file.Close(); !errors.Is(err, os.ErrClosed) {
				problems = append(problems, err)
			}
		}
	}
	return errors.Join(problems...)
}

// follow reads what the command prints until it has ended.
func (r *running) follow(exited <-chan error, stop context.CancelCauseFunc) error {
	tick := time.NewTicker(tailEvery)
	defer tick.Stop()
	for {
		select {
		case err := <-exited:
			return errors.Join(err, r.tail(true))
		case <-tick.C:
			if err := r.tail(false); err != nil {
				stop(err)
			}
		}
	}
}

// tail reads what is new. A status line that is not complete is read only at the end.
func (r *running) tail(atEnd bool) error {
	if r.status != nil {
		text, err := from(r.status, r.told)
		if err != nil {
			return err
		}
		whole := bytes.LastIndexByte(text, '\n') + 1
		if atEnd {
			whole = len(text)
		}
		for line := range strings.Lines(string(text[:whole])) {
			r.Status(strings.TrimRight(line, "\n"))
		}
		r.told += int64(whole)
	}
	if r.Quiet {
		return nil
	}
	text, err := from(r.stdout, r.copied)
	if err != nil {
		return err
	}
	r.copied += int64(len(text))
	if atEnd && r.copied > 0 && !r.endsLine() {
		text = append(text, '\n') // A program that was killed leaves half a line.
	}
	if r.out != nil {
		_, _ = r.out.Write(text) // The copy is for people; the program must not stop without it.
	}
	return nil
}

// endsLine reports whether what was printed ends with a line.
func (r *running) endsLine() bool {
	last := make([]byte, 1)
	_, err := r.stdout.ReadAt(last, r.copied-1)
	return err == nil && last[0] == '\n'
}

// from returns what is in a file after a position.
func from(file *os.File, at int64) ([]byte, error) {
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.Size() > maxPrinted:
		return nil, fmt.Errorf("it printed more than %d bytes", maxPrinted)
	}
	text := make([]byte, info.Size()-at)
	_, err = file.ReadAt(text, at)
	return text, err
}

func (r *running) end(ctx context.Context, err error) (Ended, error) {
	stdout, readErr := from(r.stdout, 0)
	if readErr != nil {
		return Ended{}, fmt.Errorf("%s: %w", r.Describe(), readErr)
	}
	result := Ended{Stdout: string(stdout), Printed: string(stdout)}
	if r.Quiet {
		stderr, readErr := from(r.stderr, 0)
		if readErr != nil {
			return Ended{}, fmt.Errorf("%s: %w", r.Describe(), readErr)
		}
		result.Printed += string(stderr)
	}
	exited, isExit := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		return result, fmt.Errorf("%s was stopped: %w", r.Describe(), context.Cause(ctx))
	case isExit && exited.Exited():
		result.Exit = exited.ExitCode()
	case isExit:
		// Somebody killed it, perhaps the kernel because memory was short: that may pass.
		return result, strategy.Fail(message.Transient, fmt.Errorf("%s was ended: %w", r.Describe(), exited))
	case err != nil:
		return result, fmt.Errorf("cannot run %s: %w", r.Describe(), err)
	}
	return result, nil
}

// Describe returns the command for people, without options and without the many
// packages of a plan.
func (c Command) Describe() string {
	for i := 0; i < len(c.Args); i++ {
		switch arg := c.Args[i]; {
		case arg == "-o":
			i++
		case !strings.HasPrefix(arg, "-"):
			return c.Name + " " + arg
		}
	}
	return strings.TrimSpace(c.Name + " " + text.List(c.Args, 5))
}
