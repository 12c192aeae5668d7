package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/busy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// busyFolder is the flag that worker and busy share.
type busyFolder struct {
	BusyDir string `help:"Folder of this host's busy leases: no upgrade starts while one is valid." default:"/run/osupgrade/busy" type:"path" env:"OSUPGRADE_BUSY_DIR" placeholder:"DIR"`
}

// busyCommand says on a host that it is not to be upgraded now.
type busyCommand struct {
	busyFolder
	timeFlags
	For     length   `help:"How long at most, such as 30m. The worker ignores a lease after its own --busy-limit." default:"1h"`
	Reason  string   `help:"Why, for people (default: the name of the command)." placeholder:"TEXT"`
	List    bool     `help:"List the busy leases of this host." xor:"what"`
	End     string   `help:"End a busy lease." xor:"what" placeholder:"NAME"`
	Command []string `arg:"" optional:"" name:"command" passthrough:"" help:"Command to run meanwhile, after --. The lease ends with it, and its exit code is passed on."`
}

// Run implements the command.
func (c *busyCommand) Run(streams *console, in io.Reader, out io.Writer) error {
	if len(c.Command) > 0 && c.Command[0] == "--" {
		c.Command = c.Command[1:]
	}
	switch {
	case (c.List || c.End != "") && len(c.Command) > 0:
		return misused(errors.New("--list and --end take no command"))
	case c.List:
		return c.list(out)
	case c.End != "":
		return busy.End(c.BusyDir, c.End)
	case c.For <= 0:
		return misused(fmt.Errorf("for: %s is invalid; use a time above 0s, such as 30m", c.For))
	}
	reason := c.Reason
	if reason == "" && len(c.Command) > 0 {
		reason = filepath.Base(c.Command[0])
	}
	if reason == "" {
		return misused(errors.New(`reason: it is missing; say why, such as --reason backup`))
	}
	if len(c.Command) == 0 {
		name, err := c.create(reason, 0)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(out, name)
		return err
	}
	return c.run(reason, in, out, streams.err)
}

func (c *busyCommand) create(reason string, pid int) (name string, err error) {
	now := time.Now().UTC().Truncate(time.Second)
	name, err = busy.Create(c.BusyDir, busy.Lease{Reason: message.NewNotNow(reason, now).Reason, Since: now, Until: now.Add(time.Duration(c.For)), PID: pid})
	if errors.Is(err, os.ErrPermission) {
		err = fmt.Errorf("%w; run it as root", err)
	}
	return name, err
}

// run runs the command while a lease is there. The lease is there before the command
// begins, and is given back when it has ended, however that was: signals to this program
// are passed on, and the command decides what it does then.
func (c *busyCommand) run(reason string, in io.Reader, out, errs io.Writer) (err error) {
	name, err := c.create(reason, os.Getpid())
	if err != nil {
		return err
	}
	defer func() {
		if ended := busy.End(c.BusyDir, name); ended != nil {
			_, _ = fmt.Fprintf(errs, "osupgrade-agent: cannot end the busy lease; it ends by itself within %s: %v\n", c.For, ended)
		}
	}()
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(signals)
	child := exec.Command(c.Command[0], c.Command[1:]...) //nolint:noctx // a signal is passed on, and ends nothing by itself
	child.Stdin, child.Stdout, child.Stderr = in, out, errs
	if err := child.Start(); err != nil {
		return fmt.Errorf("cannot run the command: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	for {
		select {
		case s := <-signals:
			_ = child.Process.Signal(s) // One that has ended needs none.
		case err := <-ended:
			return exitOf(err)
		}
	}
}

// exitOf has this program end as a command has: with its exit code or, as shells do, with
// 128 and the number of the signal that ended it.
func exitOf(err error) error {
	failed, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return err
	}
	if status, ok := failed.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exitStatus(128 + int(status.Signal()))
	}
	return exitStatus(failed.ExitCode())
}

// list prints the leases as the worker of this host counts them.
func (c *busyCommand) list(out io.Writer) error {
	now := time.Now()
	all, err := busy.Recall(c.BusyDir, busy.DefaultLimit, slog.New(slog.DiscardHandler)).List(now)
	if err != nil {
		return err
	}
	to := newTerminal(out)
	if len(all) == 0 {
		to.line("This host is not busy.")
		return to.err
	}
	var t table
	t.add("NAME", "UNTIL", "PROCESS", "REASON")
	for _, f := range all {
		until := "does not count"
		switch {
		case f.CountsAt(now):
			until = c.format().at(f.Ends)
		case !f.Ends.IsZero():
			until = "ended"
		}
		process := "-"
		if f.PID > 0 {
			process = fmt.Sprint(f.PID)
			if errors.Is(syscall.Kill(f.PID, 0), syscall.ESRCH) {
				process += " (gone)"
			}
		}
		reason := f.Reason
		if f.Problem != nil {
			reason = f.Problem.Error()
		}
		t.add(message.CleanText(f.Name), until, process, cmp.Or(strings.TrimSpace(message.CleanText(reason)), "-"))
	}
	t.print(to)
	return to.err
}
