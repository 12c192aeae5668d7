package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shims stand in for what a test must not do to the machine. Each is a program, so
// that sudo finds it.
var shims = map[string]string{
	// There is one user.
	"sudo":    `[ "$1" = -u ] && shift 2; exec "$@"`,
	"useradd": `exit 0`,
	// It starts what the unit says and keeps what that prints.
	"systemctl": `
verb=$1; shift; [ "$1" = --now ] && shift
unit=$1; file=$ROOT/etc/systemd/system/$unit.service; pid=$ROOT/$unit.pid
line() { sed -n "s/^$1=//p" "$file"; }
start() {
	OSUPGRADE_CA_CERT_FILE= $(line ExecStart) >>$ROOT/$unit.journal 2>&1 &
	echo $! >$pid
}
stop() {
	kill $(cat $pid)
	while kill -0 $(cat $pid) 2>/dev/null; do sleep 0.1; done
}
case $verb in
daemon-reload) ;;
enable|start) start ;;
stop) stop ;;
restart) stop; start ;;
reload) MAINPID=$(cat $pid) sh -c "$(line ExecReload)" ;;
*) echo "systemctl $verb is not expected" >&2; exit 1 ;;
esac`,
	"journalctl": `[ "$1" = -u ] && cat $ROOT/$2.journal`,
}

// equip makes the folder of a machine with shims and with more folders.
func equip(t *testing.T, root string, folders ...string) {
	t.Helper()
	for _, dir := range append(folders, "shims", "etc/systemd/system") {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range shims {
		if err := os.WriteFile(filepath.Join(root, "shims", name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
}

var shells = regexp.MustCompile("(?s)```sh\n(.*?)```")

// commandsOf returns all commands of a guide, in their order.
func commandsOf(t *testing.T, guide string) string {
	t.Helper()
	var script strings.Builder
	for _, found := range shells.FindAllStringSubmatch(read(t, "../../docs/guides/"+guide+".md"), -1) {
		script.WriteString(found[1])
	}
	return script.String()
}

// guideLimit is how long the commands of a guide may take.
const guideLimit = 5 * time.Minute

// showGuide executes the commands of a guide in a folder, with some more environment. It
// checks what they print, and returns it.
func showGuide(t *testing.T, dir, script string, env []string, parts ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), guideLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-Eeuo", "pipefail", "-c", "trap 'echo \"failed: $BASH_COMMAND\" >&2' ERR\n"+script) //nolint:gosec // our own guide
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// What the guide leaves in the background must not keep the pipe open.
	output, err := os.Create(filepath.Join(t.TempDir(), "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = output.Close() }()
	cmd.Stdout, cmd.Stderr = output, output
	err = cmd.Run()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	out := read(t, output.Name())
	if err != nil {
		t.Fatalf("the guide ends with %v:\n%s%s", err, out, journals(t, env))
	}
	for _, part := range parts {
		if !strings.Contains(out, part) {
			t.Errorf("the guide does not show %q:\n%s", part, out)
		}
	}
	return out
}

// journals returns what the units of the machine of a guide have printed.
func journals(t *testing.T, env []string) (all string) {
	t.Helper()
	for _, variable := range env {
		root, found := strings.CutPrefix(variable, "ROOT=")
		if !found {
			continue
		}
		paths, err := filepath.Glob(root + "/*.journal")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			all += filepath.Base(path) + ":\n" + read(t, path)
		}
	}
	return all
}
