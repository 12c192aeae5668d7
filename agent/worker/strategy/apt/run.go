package apt

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// command is a program with its arguments.
type command struct {
	name string
	args []string
	// env is added to the environment.
	env []string
	// status, if it is not nil, gets each line that apt writes to APT::Status-Fd.
	status func(line string)
	// quiet keeps what is printed out of the output of the step: it is only read.
	quiet bool
}

// ended is a command that has ended.
type ended struct {
	exit int
	// stdout and printed are bounded: the former is standard output, the latter the
	// end of both outputs in the order in which they were printed.
	stdout, printed string
}

// runner runs a command to its end. An error means that it could not be run, or was
// stopped because ctx ended; what it ended with is no error.
type runner func(ctx context.Context, c command) (ended, error)

// The bounds of what is kept of an output, in bytes. What the strategy parses is
// refused when it is larger, since a part of a plan is no plan.
const (
	maxStdout  = 64 << 20
	maxPrinted = 256 << 10
)

// statusFD is the descriptor of APT::Status-Fd.
const statusFD = 3

// stopGrace is how long a program may take to end after SIGTERM.
const stopGrace = 30 * time.Second

// drainTime is how long the outputs are read after the program has ended: a daemon
// that a package started may hold them open.
const drainTime = 2 * time.Second

// environment is that of every command: no question is asked, no service is restarted
// by needrestart, and messages are English.
func environment(path string) []string {
	return []string{
		"PATH=" + path, "HOME=/root", "LC_ALL=C.UTF-8", "LANG=C.UTF-8", "TERM=dumb",
		"DEBIAN_FRONTEND=noninteractive", "APT_LISTCHANGES_FRONTEND=none", "APT_LISTBUGS_FRONTEND=none",
		"NEEDRESTART_SUSPEND=1", "NEEDRESTART_MODE=l",
	}
}

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// system returns the runner of this machine. Outputs are copied to out.
func system(out io.Writer) runner {
	return func(ctx context.Context, c command) (ended, error) {
		r := &running{out: out, quiet: c.quiet}
		cmd := exec.CommandContext(ctx, c.name, c.args...)
		cmd.Env = append(environment(defaultPath), c.env...)
		cmd.Dir = "/"
		cmd.Stdout, cmd.Stderr = r.writer(&r.stdout), r.writer(nil)
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = stopGrace
		drained, err := r.follow(cmd, c.status)
		if err != nil {
			return ended{}, fmt.Errorf("cannot run %s: %w", c.name, err)
		}
		err = cmd.Run()
		drained()
		return r.end(ctx, c, cmd, err)
	}
}

// running collects the outputs of a command.
type running struct {
	out   io.Writer
	quiet bool

	mu      sync.Mutex
	stdout  bytes.Buffer
	printed []byte
	cut     bool
}

type writerFunc func([]byte) (int, error)

func (w writerFunc) Write(p []byte) (int, error) { return w(p) }

// writer returns the writer of one output. to, if it is not nil, gets all of it.
func (r *running) writer(to *bytes.Buffer) io.Writer {
	return writerFunc(func(p []byte) (int, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if to != nil {
			room := maxStdout - to.Len()
			r.cut = r.cut || len(p) > room
			to.Write(p[:min(len(p), room)])
		}
		r.printed = append(r.printed, p...)
		if over := len(r.printed) - maxPrinted; over > maxPrinted {
			r.printed = append([]byte(nil), r.printed[over:]...)
		}
		if !r.quiet && r.out != nil {
			_, _ = r.out.Write(p) // The copy is for people; apt must not stop without it.
		}
		return len(p), nil
	})
}

// follow gives the command APT::Status-Fd. The function that it returns waits until
// all lines were read.
func (r *running) follow(cmd *exec.Cmd, status func(string)) (drained func(), err error) {
	if status == nil {
		return func() {}, nil
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.ExtraFiles = []*os.File{writer}
	done := make(chan struct{})
	go func() {
		defer close(done)
		lines := bufio.NewScanner(reader)
		for lines.Scan() {
			status(lines.Text())
		}
		_, _ = io.Copy(io.Discard, reader) // A line that is too long must not block apt.
	}()
	return func() {
		_ = writer.Close()
		_ = reader.SetReadDeadline(time.Now().Add(drainTime))
		<-done
		_ = reader.Close()
	}, nil
}

func (r *running) end(ctx context.Context, c command, cmd *exec.Cmd, err error) (ended, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	result := ended{stdout: r.stdout.String(), printed: string(r.printed[max(0, len(r.printed)-maxPrinted):])}
	exited, isExit := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		return result, fmt.Errorf("%s was stopped: %w", c.describe(), context.Cause(ctx))
	case isExit && exited.Exited():
		result.exit = exited.ExitCode()
	case isExit:
		return result, fmt.Errorf("%s was ended: %w", c.describe(), exited)
	case errors.Is(err, exec.ErrWaitDelay) && cmd.ProcessState != nil:
		result.exit = cmd.ProcessState.ExitCode()
	case err != nil:
		return result, fmt.Errorf("cannot run %s: %w", c.describe(), err)
	case r.cut:
		return result, fmt.Errorf("%s printed more than %d bytes", c.describe(), maxStdout)
	}
	return result, nil
}

// describe returns the command for people, without options and without the many
// packages of a plan.
func (c command) describe() string {
	for i := 0; i < len(c.args); i++ {
		switch arg := c.args[i]; {
		case arg == "-o":
			i++
		case !strings.HasPrefix(arg, "-"):
			return c.name + " " + arg
		}
	}
	return strings.TrimSpace(c.name + " " + few(c.args))
}
