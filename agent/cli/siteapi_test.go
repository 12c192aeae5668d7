//go:build !worker

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site/dev"
)

// TestFirstStart types commands while a site starts for the first time, when its folder is
// there and not yet complete: they wait for the site if it has the folder already, and
// otherwise say that it may be starting.
func TestFirstStart(t *testing.T) {
	t.Setenv("OSUPGRADE_TOKEN", "")
	reading := [][]string{{"credentials", "list"}, {"audit", "--tenant", "acme"}, {"credentials", "token", "--tenant", "acme", "--name", "x"}}
	for _, args := range reading {
		dir := t.TempDir()
		if code, stdout, stderr := call(t, append(args, "--data", dir)...); code != exitFailed || !strings.Contains(stderr, "if its site is being started for the first time, try again in a moment") {
			t.Errorf("%q in an empty folder: exit code %d:\n%s%s", args, code, stdout, stderr)
		}
		if code, stdout, stderr := call(t, append(args, "--data", filepath.Join(dir, "none"))...); code != exitFailed || strings.Contains(stderr, "try again") {
			t.Errorf("%q without a folder: exit code %d:\n%s%s", args, code, stdout, stderr)
		}
	}
	for _, args := range reading {
		dir := t.TempDir()
		site := filepath.Join(dir, "store")
		if err := os.Mkdir(site, 0o700); err != nil {
			t.Fatal(err)
		}
		lock, err := durable.LockFolder(filepath.Join(site, "lock"), "osupgrade-agent serve")
		if err != nil {
			t.Fatal(err)
		}
		started := time.AfterFunc(200*time.Millisecond, func() {
			served := servedFolder(t, "acme")
			for _, err := range []error{
				os.Mkdir(filepath.Join(dir, "credentials"), 0o700), os.Rename(filepath.Join(served, "store", "jetstream"), filepath.Join(site, "jetstream")), lock.Close(),
			} {
				if err != nil {
					t.Error(err)
				}
			}
		})
		if code, stdout, stderr := call(t, append(args, "--data", dir)...); code != exitOK {
			t.Errorf("%q while the site starts: exit code %d:\n%s%s", args, code, stdout, stderr)
		}
		if started.Stop() {
			t.Errorf("%q has not waited", args)
		}
	}
}

// TestReadOnlyFolder checks what commands say that read the folder of a stopped site on a file
// system which is mounted read-only.
func TestReadOnlyFolder(t *testing.T) {
	t.Parallel()
	if out, err := exec.CommandContext(t.Context(), "unshare", "-rm", "true").CombinedOutput(); err != nil {
		t.Skipf("cannot mount here: %v: %s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	d, err := dev.Start(t.Context(), dev.Options{Dir: dir, Tenant: "acme", Hosts: 0})
	if err == nil {
		err = d.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"credentials list", "audit --tenant acme", "get policies --tenant acme", "tenant list", "credentials token --tenant acme --name x", "backup --out " + t.TempDir() + "/backup.tar"} {
		cmd := exec.CommandContext(t.Context(), "unshare", "-rm", "sh", "-euc", //nolint:gosec // our own program
			`mount --bind "$1" "$1"; mount -o remount,bind,ro "$1"; shift; exec "$@"`, "sh", dir, self)
		cmd.Args = append(append(cmd.Args, strings.Fields(command)...), "--data", dir)
		cmd.Env = append(os.Environ(), asProgram+"=1", "OSUPGRADE_TOKEN=")
		out, _ := cmd.CombinedOutput()
		if got := string(out); cmd.ProcessState.ExitCode() != exitFailed || !strings.Contains(got, unix.EROFS.Error()) || !strings.Contains(got, "mount it read-write, or use a copy of the folder") {
			t.Errorf("%s ends with %d:\n%s", command, cmd.ProcessState.ExitCode(), got)
		}
	}
}
