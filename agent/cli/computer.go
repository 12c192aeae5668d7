package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/script"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/logind"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
)

// computer is the machine that this process runs on.
type computer struct {
	bootIDFile string
	// rebootCommand is the operator's own command; empty means that logind is asked.
	rebootCommand string
	// rebootLog is the file that the reboot command prints to.
	rebootLog string
	// override reboots in spite of inhibitors.
	override bool
	// bus is the address of the bus with logind; empty means the system bus.
	bus string
	log *slog.Logger
}

// withoutLogind is the command that reboots a machine whose logind is not available.
const withoutLogind = "systemctl reboot"

// BootID implements worker.Machine.
func (c computer) BootID() (string, error) {
	text, err := os.ReadFile(c.bootIDFile)
	if err != nil {
		return "", err
	}
	id := strings.TrimSpace(string(text))
	if id == "" || len(id) > 100 {
		return "", fmt.Errorf("%s holds no boot id", c.bootIDFile)
	}
	return id, nil
}

// Reboot implements worker.Machine.
func (c computer) Reboot(ctx context.Context, job strategy.Job) error {
	if c.rebootCommand != "" {
		return c.runReboot(ctx, c.rebootCommand)
	}
	err := logind.Reboot(ctx, logind.Options{
		Address: c.bus, Override: c.override,
		Wall: fmt.Sprintf("Run %d of tenant %s reboots this host after its upgrade.", job.Run, job.Tenant),
		Waiting: func(by []logind.Inhibitor) {
			job.Progress(-1, "waits to reboot, inhibited by "+logind.Names(by))
			c.log.Info("the reboot is inhibited", "host", job.Host, "run", job.Run, "by", logind.Names(by))
		},
	})
	if !errors.Is(err, logind.ErrUnavailable) || ctx.Err() != nil {
		return err
	}
	c.log.Warn("cannot reboot by logind; "+withoutLogind+" is tried", "host", job.Host, "run", job.Run, "error", err)
	return c.runReboot(ctx, withoutLogind)
}

// runReboot runs a command that reboots. The command prints to a file, because it
// outlives a worker that ends, and its next word to a pipe that nobody reads
// would end it.
//
// The command inherits a lock on the file. While it is held, the command of a
// worker that was killed still runs, or what that command has left in the
// background: the reboot counts as accepted, and no second command is started.
func (c computer) runReboot(ctx context.Context, command string) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	file, err := os.OpenFile(c.rebootLog, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	switch err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		return nil
	case err != nil:
		return fmt.Errorf("cannot lock %s: %w", c.rebootLog, err)
	}
	if err := file.Truncate(0); err != nil {
		return err
	}
	// The command is this machine's own configuration, never a message's.
	cmd := exec.Command("sh", "-c", command)
	cmd.Stdout, cmd.Stderr = file, file
	p, err := script.Start(cmd)
	if err != nil {
		return err
	}
	printed := printed{file: file}
	switch err := await(ctx, p, printed); {
	case err == nil:
		return nil
	case printed.last() == "":
		return fmt.Errorf("%s: %w", command, err)
	default:
		return fmt.Errorf("%s: %w: %s", command, err, printed.last())
	}
}

// await waits for the end of the reboot command. The end of the worker does not
// end it: half-way it would leave a host that is neither up nor down. That of
// its time does, with all that it started.
func await(ctx context.Context, p *script.Process, out printed) error {
	look := time.NewTicker(lookAtOutput)
	defer look.Stop()
	defer out.bound()
	for {
		select {
		case <-p.Exited:
			return p.Failure()
		case <-ctx.Done():
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) || p.Kill() {
				return ctx.Err()
			}
			return p.Failure()
		case <-look.C:
			out.bound()
		}
	}
}

// maxOutput is how much of what a reboot command prints is kept, in bytes, and
// lookAtOutput how often it is looked at.
const (
	maxOutput    = 1 << 20
	lookAtOutput = 10 * time.Millisecond
)

// printed is what a command prints.
type printed struct{ file *os.File }

// bound gives the space of all but the end of the file free when it takes too much. A
// hole loses nothing that the command prints meanwhile, as emptying the file would: its
// last line is the reason of a refusal. A file system that has no holes has the file
// emptied all the same. Where that fails too, the file is left: the reboot is what counts.
func (p printed) bound() {
	info, err := p.file.Stat()
	if err != nil {
		return
	}
	if taken, known := info.Sys().(*syscall.Stat_t); !known || taken.Blocks*512 <= maxOutput {
		return
	}
	const hole = unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE
	if unix.Fallocate(int(p.file.Fd()), hole, 0, max(1, info.Size()-script.MaxLine)) != nil {
		_ = p.file.Truncate(0)
	}
}

// last is the last line that shows something.
func (p printed) last() string {
	info, err := p.file.Stat()
	if err != nil {
		return ""
	}
	return script.Last(io.NewSectionReader(p.file, max(0, info.Size()-script.MaxLine), script.MaxLine))
}
