package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// agentOfPackages stands in for the agent while packages are built: it writes the files that
// are made of it.
const agentOfPackages = `#!/bin/sh
case $1 in
man) echo manual >"$3/osupgrade-agent.1" ;;
completion) echo "completion of $2" ;;
esac
`

// TestPackages_areReproducible builds the packages of one commit twice, of files with other
// times: they are the same, and each has the completion where the zsh of its family looks.
func TestPackages_areReproducible(t *testing.T) {
	t.Parallel()
	for _, needed := range []string{"git", "gzip"} {
		if _, err := exec.LookPath(needed); err != nil {
			t.Skipf("there is no %s", needed)
		}
	}
	first, second := packagesOf(t, time.Unix(1_700_000_000, 0)), packagesOf(t, time.Unix(1_750_000_000, 0))
	if len(first) != 2 {
		t.Fatalf("%d packages were built, want a deb and an rpm", len(first))
	}
	for name, content := range first {
		if !bytes.Equal(content, second[name]) {
			t.Errorf("%s is another one when it is built again", name)
		}
	}
	// The names of the folders of an rpm stand in its header.
	rpm := first["osupgrade-agent-0.1.0-1.x86_64.rpm"]
	if !bytes.Contains(rpm, []byte("/usr/share/zsh/site-functions/")) || bytes.Contains(rpm, []byte("vendor-completions")) {
		t.Error("the rpm has no completion in site-functions, or one in Debian's folder")
	}
	for _, folder := range []string{"/usr/share/doc/osupgrade-agent/examples/news/", "/usr/share/doc/osupgrade-agent/examples/monitoring/"} {
		if !bytes.Contains(rpm, []byte(folder)) {
			t.Errorf("the rpm has no %s", folder)
		}
	}
	if !bytes.Contains(rpm, []byte("reproducible\x00")) {
		t.Error("the rpm names the machine that built it")
	}
}

// packagesOf builds the packages in a copy of what they are built of, whose files bear a time.
func packagesOf(t *testing.T, at time.Time) map[string][]byte {
	t.Helper()
	root := t.TempDir()
	for _, name := range []string{".goreleaser.yaml", "CHANGELOG.md", "packaging", "examples/agent", "examples/monitoring", "examples/news", "examples/systemd", "tools/packages", "tools/packages.sh", "tools/package-files.sh"} {
		copied := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(copied), 0o755); err != nil { //nolint:gosec // files of packages
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), "cp", "-r", name, copied).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	agent := filepath.Join(root, "agent.sh")
	if err := os.WriteFile(agent, []byte(agentOfPackages), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(path, at, at)
	})
	if err != nil {
		t.Fatal(err)
	}
	script := exec.CommandContext(t.Context(), "sh", "-euc", `
git init -q . && git add -A && git -c user.name=x -c user.email=x@x.example commit -qm x
tools/packages.sh out 0.1.0 amd64`)
	script.Dir = root
	script.Env = append(os.Environ(), "AGENT="+agent, "WORKER="+agent, "GIT_COMMITTER_DATE=2026-11-01T00:00:00Z", "GIT_CONFIG_GLOBAL="+os.DevNull)
	if out, err := script.CombinedOutput(); err != nil {
		t.Fatalf("cannot build packages: %v\n%s", err, out)
	}
	built := map[string][]byte{}
	for _, kind := range []string{"*.deb", "*.rpm"} {
		names, err := filepath.Glob(filepath.Join(root, "out", kind))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			content, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			built[filepath.Base(name)] = content
		}
	}
	return built
}
