package e2e

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestRunningGuides executes all commands of the three guides on running a site in their
// order, as they are written but for the folders, the ports and the name of the site.
// systemd is a script that starts what the units say.
func TestRunningGuides(t *testing.T) {
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
		build := exec.CommandContext(t.Context(), "go", "build", "-tags", tags, "-o", root+"/clone/.cache/bin/"+program, "..") //nolint:gosec // our own program
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("cannot build: %v\n%s", err, out)
		}
	}
	copyPlaced(t, "../../examples", root+"/clone/examples", place)
	equip(t, root, "var/lib", "usr/local/bin")
	showGuide(t, root+"/clone", place.Replace(commandsOf(t, "install")+commandsOf(t, "operate")+commandsOf(t, "repair")),
		[]string{
			"ROOT=" + root, "OSUPGRADE_DATA=" + root + "/var/lib/osupgrade", "LOGNAME=ann", "OSUPGRADE_BUSY_DIR=" + root + "/run/osupgrade/busy",
			"PATH=" + root + "/shims:" + root + "/usr/local/bin:" + os.Getenv("PATH"),
		},
		`"days-left":39`, "ann ", "Host h01 has joined", "Connected to the log", "Host h01 has another key", "\nthe backup runs\n", "status:", "and checked it", "Restored ", "Recovered ", "man pages to")
}

// TestDisk checks the script with which the figures of the guide were measured.
func TestDisk(t *testing.T) {
	t.Parallel()
	f := newProgram(t)
	command := exec.CommandContext(t.Context(), "tools/disk.sh", "2", "2")
	command.Dir, command.Env = "../..", append(os.Environ(), "AGENT="+f.bin, "TMPDIR="+t.TempDir())
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
