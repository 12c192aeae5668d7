package check

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// install creates a folder with one script, named it. It holds syscall.ForkLock: a
// process forked meanwhile would inherit the file open for writing, and execve(2)
// would fail.
func install(t *testing.T, body string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "scripts")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(filepath.Join(dir, "it"), []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func scripted(name string, args ...string) message.Task {
	return single(rollout.Check{Type: rollout.Exec, Script: name, Args: args})
}

func TestExec(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ body, want string }{
		"it does well":      {"echo fine", ""},
		"it says what":      {"echo one; echo no room >&2; exit 3", fails("no room: exit status 3")},
		"it says nothing":   {"exit 3", fails("exit status 3")},
		"it ends by signal": {"kill -9 $$", fails("it was ended by signal 9 (killed)")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, &Runner{Scripts: install(t, row.body)}, scripted("it"), row.want)
		})
	}
}

func TestWhatAScriptIsTold(t *testing.T) {
	t.Setenv("SECRET", "of the agent")
	out := t.TempDir()
	dir := install(t, `env >"$1/env"; echo "$2" >"$1/argument"; pwd >"$1/pwd"; cat >"$1/stdin"`)
	hook := message.Task{Run: 41, Kind: message.Drain, Host: "h01", Hook: &rollout.Hook{
		Type: rollout.Exec, Script: "it", Args: []string{out, "a b"}, Timeout: span(time.Hour),
	}}
	check(t, &Runner{Scripts: dir, Tenant: "acme"}, hook, "")
	for file, want := range map[string]string{"argument": "a b\n", "pwd": dir + "\n", "stdin": ""} {
		if got := read(t, out, file); got != want {
			t.Errorf("%s is %q, want %q", file, got, want)
		}
	}
	wantEnvironment(t, read(t, out, "env"), "OSUPGRADE_HOST=h01", "OSUPGRADE_KIND=drain", "OSUPGRADE_RUN=41", "OSUPGRADE_TENANT=acme")
	fleet := scripted("it", out, "")
	fleet.Kind, fleet.Host = message.Fleet, ""
	check(t, &Runner{Scripts: dir}, fleet, "")
	wantEnvironment(t, read(t, out, "env"), "OSUPGRADE_KIND=fleet", "OSUPGRADE_RUN=41")
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func wantEnvironment(t *testing.T, env string, ours ...string) {
	t.Helper()
	want := append([]string{"HOME", "LANG=C.UTF-8", "PATH"}, ours...)
	var got []string
	for _, line := range strings.Split(strings.TrimSpace(env), "\n") {
		switch name, _, _ := strings.Cut(line, "="); name {
		case "PWD", "OLDPWD", "SHLVL", "_": // Shells set them by themselves.
		case "HOME", "PATH":
			got = append(got, name)
		default:
			got = append(got, line)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the environment is %q, want %q", got, want)
	}
}

func TestWhatIsNotRun(t *testing.T) {
	t.Parallel()
	outside := install(t, "exit 0")
	for name, row := range map[string]struct {
		change func(dir string) error
		script string
		want   string
	}{
		"a path":            {nil, "../scripts/it", "use the plain name of a file in "},
		"an absolute path":  {nil, filepath.Join(outside, "it"), "use the plain name of a file in "},
		"no name":           {nil, "", "use the plain name of a file in "},
		"the folder":        {nil, ".", "use the plain name of a file in "},
		"the one above":     {nil, "..", "use the plain name of a file in "},
		"a NUL":             {nil, "it\x00", "use the plain name of a file in "},
		"none of that name": {nil, "other", "other is missing; it is required"},
		"a link":            {func(dir string) error { return os.Symlink(filepath.Join(outside, "it"), filepath.Join(dir, "link")) }, "link", "is a symbolic link"},
		"one open to all":   {func(dir string) error { return os.Chmod(filepath.Join(dir, "it"), 0o777) }, "it", "nobody but its owner should be able to write it"},
		"a folder for all":  {func(dir string) error { return os.Chmod(dir, 0o777) }, "it", "nobody but its owner should be able to write it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := install(t, "exit 0")
			if row.change != nil {
				if err := row.change(dir); err != nil {
					t.Fatal(err)
				}
			}
			got := (&Runner{Scripts: dir}).Run(t.Context(), scripted(row.script))
			if got.OK || !strings.HasPrefix(got.Text, "check it: script ") || !strings.Contains(got.Text, row.want) {
				t.Errorf("the outcome is %v, %q; want %q", got.OK, got.Text, row.want)
			}
		})
	}
}

func TestNoFolderOfScripts(t *testing.T) {
	t.Parallel()
	check(t, &Runner{}, scripted("it"), `check it: script "it" is not run: this agent has no folder of scripts; set checks in its configuration`)
}

func TestAScriptIsCheckedBeforeEachStart(t *testing.T) {
	t.Parallel()
	// The script opens itself to all when it is run, and fails.
	dir := install(t, `chmod 777 "$0"; exit 1`)
	twice := scripted("it")
	twice.Hook, twice.Checks = &rollout.Hook{Type: rollout.Exec, Script: "it", Timeout: span(time.Hour), Retries: new(1)}, nil
	check(t, &Runner{Scripts: dir}, twice, "hook after-host: 2 tries failed; the last try: "+
		filepath.Join(dir, "it")+" has mode 0777; nobody but its owner should be able to write it, such as 0755")
}

func TestAScriptThatTakesTooLong(t *testing.T) {
	t.Parallel()
	dir := install(t, `mkfifo "$1/never" 2>/dev/null; read x <"$1/never"`)
	hook := message.Task{Run: 1, Kind: message.Drain, Host: "h01", Hook: &rollout.Hook{
		Type: rollout.Exec, Script: "it", Args: []string{t.TempDir()}, Timeout: span(time.Second), Retries: new(1), RetryInterval: "0s",
	}}
	check(t, &Runner{Scripts: dir}, hook, "hook drain: 2 tries failed; the last try: it timed out and was killed")
}

func TestSystemd(t *testing.T) {
	t.Parallel()
	systemctl := filepath.Join(install(t, `[ "$*" = "is-active -- good.service" ] && exit 0; echo inactive; exit 3`), "it")
	check(t, &Runner{Systemctl: systemctl}, single(rollout.Check{Type: rollout.Systemd, Unit: "good.service"}), "")
	check(t, &Runner{Systemctl: systemctl}, single(rollout.Check{Type: rollout.Systemd, Unit: "bad.service"}),
		fails("unit bad.service is not active: inactive: exit status 3"))
	got := (&Runner{Systemctl: "no-such-systemctl"}).Run(t.Context(), single(rollout.Check{Type: rollout.Systemd, Unit: "x"}))
	if got.OK || !strings.Contains(got.Text, "executable file not found in $PATH") {
		t.Errorf("the outcome is %+v", got)
	}
}

func TestDisk(t *testing.T) {
	t.Parallel()
	// 1000 blocks of 10 bytes, of which 300 are free, 200 of them for everybody.
	statfs := func(path string, into *syscall.Statfs_t) error {
		if path == "/gone" {
			return errBroken
		}
		if path == "/proc" {
			return nil
		}
		*into = syscall.Statfs_t{Bsize: 10, Blocks: 1000, Bfree: 300, Bavail: 200}
		if path == "/less" {
			*into = syscall.Statfs_t{Bsize: 1, Blocks: 10000, Bfree: 3000, Bavail: 1999}
		}
		return nil
	}
	for name, row := range map[string]struct {
		check rollout.Check
		want  string
	}{
		"nothing is wanted": {rollout.Check{Path: "/var"}, ""},
		"just enough bytes": {rollout.Check{Path: "/var", MinFree: "2KB"}, ""},
		"one byte too few":  {rollout.Check{Path: "/less", MinFree: "2KB"}, fails("/less has 1999 bytes free; it should be 2000")},
		"enough percent":    {rollout.Check{Path: "/var", MinFree: "22%"}, ""},
		"too few percent":   {rollout.Check{Path: "/var", MinFree: "23%"}, fails("/var has 22.2% free; it should be 23%")},
		"no blocks at all":  {rollout.Check{Path: "/proc", MinFree: "1%"}, fails("/proc has 0.0% free; it should be 1%")},
		"a broken one":      {rollout.Check{Path: "/gone"}, fails("cannot examine /gone; use a folder of this machine that the agent can access")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			row.check.Type = rollout.Disk
			check(t, &Runner{statfs: statfs}, single(row.check), row.want)
		})
	}
}

func TestARealDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	check(t, &Runner{}, single(rollout.Check{Type: rollout.Disk, Path: dir, MinFree: "1KB"}), "")
	gone := filepath.Join(dir, "gone")
	check(t, &Runner{}, single(rollout.Check{Type: rollout.Disk, Path: gone}), fails("cannot examine "+gone+"; use a folder of this machine that the agent can access"))
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	check(t, &Runner{}, single(rollout.Check{Type: rollout.Disk, Path: file + "/x"}), fails("cannot examine "+file+"/x; use a folder of this machine that the agent can access"))
}

func TestADiskThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		defer close(stuck)
		r := &Runner{statfs: func(string, *syscall.Statfs_t) error { <-stuck; return nil }}
		check(t, r, single(rollout.Check{Type: rollout.Disk, Path: "/net"}), fails("it did not answer in time"))
	})
}
