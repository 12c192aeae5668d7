package exec

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestProgressWithoutInotify checks that output is followed where the kernel has no watch of
// files left: TestProgress passes in a user namespace that may have none.
func TestProgressWithoutInotify(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const limited = `echo 0 >/proc/sys/user/max_inotify_instances || exit 77; exec "$0" -test.v -test.run='^TestProgress$'`
	command := exec.CommandContext(t.Context(), "sh", "-c", limited, program)
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
	}
	out, err := command.CombinedOutput()
	if command.ProcessState == nil || command.ProcessState.ExitCode() == 77 {
		t.Skipf("this machine permits no user namespace: %v %s", err, out)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: TestProgress ") {
		t.Errorf("%v\n%s", err, out)
	}
}
