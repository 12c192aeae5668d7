package apt

import (
	"fmt"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/debversion"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/osinfo"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// The marker files of a reboot. Debian has none of its own: unattended-upgrades and
// update-notifier write them.
const (
	rebootMarker   = "/run/reboot-required"
	rebootPackages = "/run/reboot-required.pkgs"
)

// rebootSigns are what says that a reboot is required.
type rebootSigns struct {
	marked bool
	// packages are those that asked for it.
	packages []string
	// container is set in a container, which runs the kernel of its host.
	container bool
	kernels   osinfo.Kernels
	// built is the version of the package that the running kernel was built from, and
	// installed the version of that package now.
	built, installed string
}

// reason says why a reboot is required; empty if it is not. The marker alone does not
// suffice: without unattended-upgrades nobody writes it for a new kernel.
func (r rebootSigns) reason() string {
	switch {
	case r.marked && len(r.packages) > 0:
		return few(r.packages) + " asked for it"
	case r.marked:
		return rebootMarker + " exists"
	case r.container:
		return ""
	case r.kernels.Outdated():
		return fmt.Sprintf("kernel %s runs and %s is installed", r.kernels.Running, r.kernels.Newest())
	case r.built != "" && r.installed != "" && debversion.Compare(r.built, r.installed) < 0:
		return fmt.Sprintf("kernel %s of %s runs and %s is installed", r.kernels.Running, r.built, r.installed)
	}
	return ""
}

// builtFrom finds the version of the package in the version of a running kernel of
// Debian, such as "#1 SMP PREEMPT_DYNAMIC Debian 6.1.119-1 (2024-11-22)".
var builtFrom = text.Pattern(` Debian (\S+) `)

// rebootReason says why this host must reboot.
func (s *Strategy) rebootReason(now packages) (string, error) {
	signs := rebootSigns{marked: s.host.Exists(rebootMarker), container: s.host.Exists("/run/systemd/container")}
	asked, err := s.host.Read(rebootPackages)
	if err != nil {
		return "", err
	}
	seen := map[string]bool{}
	for _, name := range strings.Fields(asked) {
		if !seen[name] {
			signs.packages = append(signs.packages, message.CleanText(name))
		}
		seen[name] = true
	}
	if signs.kernels, err = osinfo.ReadKernels(string(s.host)); err != nil {
		return "", err
	}
	version, err := s.host.Read("/proc/sys/kernel/version")
	if err != nil {
		return "", err
	}
	if found := builtFrom().FindStringSubmatch(version); found != nil {
		signs.built, signs.installed = found[1], now["linux-image-"+signs.kernels.Running].version
	}
	return signs.reason(), nil
}

// willReboot says why a plan is known to take a reboot.
func (s *Strategy) willReboot(plan message.ChangeSet, now packages) string {
	for _, c := range plan.Changes {
		if isKernel(c.Name) && c.To != "" {
			return c.Name + " is a kernel"
		}
	}
	why, err := s.rebootReason(now)
	if err != nil {
		return "" // Upgrade looks again, and fails then.
	}
	return why
}

// verifyKernel checks that a planned kernel runs: the boot loader may have started
// another one.
func (s *Strategy) verifyKernel(plan message.ChangeSet) error {
	if s.host.Exists("/run/systemd/container") {
		return nil
	}
	kernels, err := osinfo.ReadKernels(string(s.host))
	if err != nil {
		return err
	}
	for _, c := range plan.Changes {
		if isKernel(c.Name) && c.From == "" && kernels.Outdated() {
			return strategy.Fail(message.Boot, fmt.Errorf("kernel %s runs though %s is installed; see which one the boot loader starts",
				kernels.Running, kernels.Newest()))
		}
	}
	return nil
}
