package realhost

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Machine is what a test may do to a host: a [Container] or a [VM].
type Machine interface {
	// Start turns it on and waits until it has booted.
	Start()
	// Cut is a power cut: all its processes end at once, and it stays off.
	Cut()
	// On reports whether it is on. While it reboots it is.
	On() bool
	// Had returns how much time it has had: for a container that which has passed, and for
	// a virtual machine the processor time that its emulation got.
	Had() time.Duration
	// BootID waits until it has booted and returns its boot id.
	BootID() string
	// Run runs a command of bash in it, as root, and returns what it printed. A command
	// that ends with another exit status than 0 is an *exec.ExitError or *Status.
	Run(ctx context.Context, command string) (string, error)
	// Must is Run, and the test fails if the command does.
	Must(command string) string
	// WriteFile writes a file into it. Scripts and programs are executable.
	WriteFile(path, content string)
	// Enable has a unit of /etc/systemd/system start with it; it is off.
	Enable(unit string)
	put(path string, content []byte, mode os.FileMode)
	// Reach returns the address under which it reaches one of this machine's loopback.
	Reach(address string) string
}

var _ Machine = (*Container)(nil)

// bootLimit bounds the wait for a boot, even on a busy machine. A boot takes a second
// in a container.
const bootLimit = 2 * time.Minute

// commandLimit bounds a command of a test.
const commandLimit = 5 * time.Minute

// booted is what systemd says of a system that has booted; a unit may have failed.
const booted = `s=$(systemctl is-system-running); case $s in running|degraded) cat /proc/sys/kernel/random/boot_id ;; *) echo "$s"; exit 1 ;; esac`

// diagnosis prints what a person would look at after a test that has failed.
const diagnosis = `journalctl -q -b --no-pager -o short-precise -n 150; systemctl --no-pager list-jobs; tail -n 20 /var/lib/osupgrade-worker/exec/output/* 2>/dev/null; dpkg --audit; df -h /`

// Until waits until f returns true. The test fails if that takes longer than limit.
func Until(t testing.TB, what string, limit time.Duration, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !f(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, limit)
		}
	}
}

// UntilOn is Until with a limit in the time that a machine has had. On a busy machine an
// emulated one is many times slower, and a limit by the clock would be one for its
// neighbours. One that hangs without any work fails the test after ten times the limit.
func UntilOn(t testing.TB, m Machine, what string, limit time.Duration, f func() bool) {
	t.Helper()
	began := m.Had()
	Until(t, what, 10*limit, func() bool {
		done := f()
		if had := m.Had() - began; !done && had > limit {
			t.Fatalf("%s: not within %s of the time that the machine had", what, limit)
		}
		return done
	})
}

// shell quotes a word for a shell.
func shell(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// AddRepository has apt of the machine use the repository, and trust its key.
func AddRepository(m Machine, name string, r *Repository) {
	m.WriteFile("/etc/apt/keyrings/"+name+".asc", string(r.Key()))
	m.WriteFile("/etc/apt/sources.list.d/"+name+".list", fmt.Sprintf("deb [signed-by=/etc/apt/keyrings/%s.asc] http://%s/ ./\n", name, m.Reach(r.Address())))
}

// output runs a command of this machine and returns what it printed.
func output(ctx context.Context, name string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, name, args...)
	command.WaitDelay = time.Second
	out, err := command.CombinedOutput()
	return string(out), err
}
