package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

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

// Reboot implements worker.Machine.
func (c computer) Reboot(ctx context.Context) error {
	// The command is this machine's own configuration, never a message's.
	out, err := exec.CommandContext(ctx, "sh", "-c", c.rebootCommand).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", c.rebootCommand, err, message.CleanText(string(out)))
	}
	return nil
}
