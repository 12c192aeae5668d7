package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
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

var shells = regexp.MustCompile("(?s)```sh\n(.*?)```")

// TestRunningGuide executes all commands of the guide in their order, as they are
// written but for the folders, the ports and the name of the site. systemd is a
// script that starts what the units say.
func TestRunningGuide(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	api, log := freePorts(t)
	place := strings.NewReplacer(
		"/etc/", root+"/etc/", "/var/lib", root+"/var/lib", "/var/backups", root+"/var/backups", "/usr/local/bin", root+"/usr/local/bin", "/usr/local/share", root+"/usr/local/share",
		"0.0.0.0:4646", api, "site.example:4646", strings.Replace(api, "127.0.0.1", "localhost", 1),
		"0.0.0.0:4222", log, "site.example:4222", strings.Replace(log, "127.0.0.1", "localhost", 1),
		"site.example", "localhost", "-o osupgrade ", "",
		// The old and the new machine are the same.
		"tar -C /var/lib -xzf", "rm -rf "+root+"/var/lib/osupgrade; tar -C "+root+"/var/lib -xzf",
	)
	for program, tags := range map[string]string{"osupgrade-agent": "", "osupgrade-worker": "worker"} {
		build := exec.CommandContext(t.Context(), "go", "build", "-tags", tags, "-o", root+"/clone/.cache/bin/"+program, ".") //nolint:gosec // our own program
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("cannot build: %v\n%s", err, out)
		}
	}
	copyPlaced(t, "../examples", root+"/clone/examples", place)
	for _, dir := range []string{"shims", "etc/systemd/system", "var/lib", "usr/local/bin"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range shims {
		if err := os.WriteFile(filepath.Join(root, "shims", name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	var script strings.Builder
	for _, found := range shells.FindAllStringSubmatch(read(t, "../templates/guides/running.md"), -1) {
		script.WriteString(found[1])
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-xeuo", "pipefail", "-c", place.Replace(script.String())) //nolint:gosec // our own guide
	cmd.Dir = root + "/clone"
	cmd.Env = append(os.Environ(), "ROOT="+root, "OSUPGRADE_DATA="+root+"/var/lib/osupgrade", "LOGNAME=ann", "OSUPGRADE_BUSY_DIR="+root+"/run/osupgrade/busy", "PATH="+root+"/shims:"+root+"/usr/local/bin:"+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// What the guide leaves in the background must not keep the pipe open.
	output, err := os.Create(filepath.Join(root, "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = output.Close() }()
	cmd.Stdout, cmd.Stderr = output, output
	err = cmd.Run()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	out := read(t, output.Name())
	if err != nil {
		t.Fatalf("the guide ends with %v:\n%s\nsite:\n%s", err, out, read(t, root+"/osupgrade-agent.journal"))
	}
	for _, part := range []string{
		`"days-left":39`, "ann ", "Host h01 has joined", "Connected to the log", "Host h01 has another key", "\nthe backup runs\n", "status:", "and checked it", "Restored ", "Recovered ", "man pages to",
	} {
		if !strings.Contains(out, part) {
			t.Errorf("the guide does not show %q:\n%s", part, out)
		}
	}
}

// TestDisk checks the script with which the figures of the guide were measured.
func TestDisk(t *testing.T) {
	t.Parallel()
	f := newProgram(t)
	command := exec.CommandContext(t.Context(), "tools/disk.sh", "2", "2")
	command.Dir, command.Env = "..", append(os.Environ(), "AGENT="+f.bin, "TMPDIR="+t.TempDir())
	out, err := command.CombinedOutput()
	if err != nil || !regexp.MustCompile(`(?m)^run\tlog\thistory\thosts\tall \(bytes\)\n1(\t\d{3,}){4}\n2(\t\d{3,}){4}$`).Match(out) {
		t.Errorf("it ends with %v: %s", err, out)
	}
}

// copyPlaced copies a folder and replaces what its files name.
func copyPlaced(t *testing.T, from, to string, place *strings.Replacer) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil || entry.IsDir() {
			return errors.Join(err, os.MkdirAll(filepath.Join(to, name), 0o700))
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), []byte(place.Replace(string(text))), info.Mode())
	})
	if err != nil {
		t.Fatal(err)
	}
}
