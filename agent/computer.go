package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// computer is the machine that this process runs on.
type computer struct {
	bootIDFile, rebootCommand string
}

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

// outputWait is how long the output of a reboot command that has ended may
// stay open: what it left in the background may hold it for ever.
const outputWait = 2 * time.Second

// Reboot implements worker.Machine. When ctx ends, the command ends with all
// that it started.
func (c computer) Reboot(ctx context.Context) error {
	// The command is this machine's own configuration, never a message's.
	cmd := exec.CommandContext(ctx, "sh", "-c", c.rebootCommand)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = outputWait
	out, err := cmd.CombinedOutput()
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return fmt.Errorf("%s: %w: %s", c.rebootCommand, err, message.CleanText(string(out)))
	}
	return nil
}
