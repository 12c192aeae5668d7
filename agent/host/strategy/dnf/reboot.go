package dnf

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/osinfo"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/program"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// core are packages that every process has loaded, or that no restart of a service
// replaces. dnf needs-restarting, where it is installed, has its own list.
var core = []string{"glibc", "systemd", "dbus", "dbus-broker", "dbus-daemon", "openssl-libs", "gnutls", "linux-firmware", "microcode_ctl"}

// isKernel reports whether a package is a kernel.
func isKernel(key string) bool {
	name, _ := splitKey(key)
	return slices.Contains([]string{"kernel-core", "kernel-rt-core", "kernel-64k-core", "kernel-uek-core", "kernel-uek"}, name)
}

// plannedReason says why the changes of a plan take a reboot by themselves; empty if
// none does.
func plannedReason(plan message.ChangeSet) string {
	for _, c := range plan.Changes {
		name, _ := splitKey(c.Name)
		switch {
		case c.To != "" && isKernel(c.Name):
			return name + " is a kernel"
		case c.To != "" && c.From != "" && slices.Contains(core, name):
			return name + " is part of every process, or is never restarted"
		}
	}
	return ""
}

// needsRestarting reads the output of dnf needs-restarting -r: why a reboot is
// required. known is false when it does not say, as where that command is not installed.
func needsRestarting(printed string) (why string, known bool) {
	switch {
	case strings.Contains(printed, "\nReboot is required"), strings.HasPrefix(printed, "Reboot is required"):
	case strings.Contains(printed, "No core libraries or services have been updated"), strings.Contains(printed, "Reboot should not be necessary"):
		return "", true
	default:
		return "", false
	}
	var names []string
	for line := range strings.Lines(printed) {
		name, ok := strings.CutPrefix(line, "  * ")
		if name = message.CleanText(name); ok && name != "" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "dnf needs-restarting says so", true
	}
	return few(names) + " has changed since the start", true
}

// willReboot says why a plan is known to take a reboot.
func (s *call) willReboot(ctx context.Context, plan message.ChangeSet) (string, error) {
	if why := plannedReason(plan); why != "" {
		return why, nil
	}
	if len(plan.Changes) == 0 {
		return "", nil
	}
	return s.rebootReason(ctx, plan)
}

// rebootReason says why this host must reboot.
func (s *call) rebootReason(ctx context.Context, plan message.ChangeSet) (string, error) {
	if !s.host.Exists("/run/systemd/container") {
		kernels, err := osinfo.ReadKernels(string(s.host))
		if err != nil {
			return "", err
		}
		if kernels.Outdated() {
			return fmt.Sprintf("kernel %s runs and %s is installed", kernels.Running, kernels.Newest()), nil
		}
	}
	ended, err := s.run(ctx, program.Command{Name: s.command, Args: slices.Concat(s.options, s.rebootHint), Quiet: true})
	if err != nil {
		return "", err
	}
	if why, known := needsRestarting(ended.Stdout); known {
		return why, nil
	}
	return plannedReason(plan), nil
}

// verifyKernel checks that a planned kernel runs: the boot loader may have started
// another one.
func (s *call) verifyKernel(plan message.ChangeSet) error {
	if s.host.Exists("/run/systemd/container") || !slices.ContainsFunc(plan.Changes, func(c message.Change) bool { return isKernel(c.Name) && c.To != "" }) {
		return nil
	}
	kernels, err := osinfo.ReadKernels(string(s.host))
	if err != nil {
		return err
	}
	if kernels.Outdated() {
		return strategy.Fail(message.Boot, fmt.Errorf("kernel %s runs though %s is installed; see which one the boot loader starts", kernels.Running, kernels.Newest()))
	}
	return nil
}
