package provider_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

// newcomer is a user with an empty home folder and the CLI.
type newcomer struct {
	home, work, cli string
	env             []string
}

func newNewcomer(t *testing.T) *newcomer {
	t.Helper()
	cli := acctest.CLI(t)
	n := &newcomer{home: t.TempDir(), work: t.TempDir(), cli: cli}
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); !strings.HasPrefix(name, "TF_") && !strings.HasPrefix(name, "XDG_") && !strings.HasPrefix(name, "MAKE") {
			n.env = append(n.env, entry)
		}
	}
	// The caches of Go stay where they are: they are no part of what is tested.
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE", "GOMODCACHE", "GOPATH").Output()
	if err != nil {
		t.Fatal(err)
	}
	caches := strings.Fields(string(out))
	n.env = append(n.env, "HOME="+n.home, "PATH="+filepath.Dir(cli)+":"+os.Getenv("PATH"), "CHECKPOINT_DISABLE=1",
		"GOCACHE="+caches[0], "GOMODCACHE="+caches[1], "GOPATH="+caches[2],
		"STEPS=/dev/null") // Its steps are none of make test.
	return n
}

// run runs a program in a folder and returns its output.
func (n *newcomer) run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Dir, command.Env = dir, n.env
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// installed returns the versions of the provider in the home folder.
func (n *newcomer) installed(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(n.home, ".terraform.d", "plugins", "*", "osupgrade", "osupgrade", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestInstallLocal has a user with an empty home folder call make install-local
// and use the provider without a registry and without a CLI configuration; then
// again with the same and with another build.
func TestInstallLocal(t *testing.T) {
	t.Parallel()
	n, bin := newNewcomer(t), t.TempDir()
	config := `terraform {
  required_providers {
    osupgrade = { source = "osupgrade/osupgrade" }
  }
}
output "day" { value = provider::osupgrade::normalize_duration("24h") }`
	if err := os.WriteFile(filepath.Join(n.work, "main.tf"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	n.run(t, "..", "make", "install-local", "BIN="+bin)
	first := n.installed(t)
	n.run(t, n.work, n.cli, "init")
	if out := n.run(t, n.work, n.cli, "apply", "-auto-approve", "-no-color"); !strings.Contains(out, `day = "1d"`) {
		t.Errorf("the provider does not work: %s", out)
	}
	n.run(t, "..", "tools/install-local.sh", bin)
	if same := n.installed(t); len(first) == 0 || strings.Join(same, " ") != strings.Join(first, " ") {
		t.Errorf("the same build is installed as %v, and was as %v", same, first)
	}
	// Another build: a program may be followed by anything.
	provider, err := os.OpenFile(filepath.Join(bin, "terraform-provider-osupgrade"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.WriteString("\n"); err != nil {
		t.Fatal(err)
	}
	if err := provider.Close(); err != nil {
		t.Fatal(err)
	}
	n.run(t, "..", "tools/install-local.sh", bin)
	if other := n.installed(t); len(other) != len(first) || other[0] == first[0] {
		t.Errorf("another build is installed as %v, and the first was as %v", other, first)
	}
	n.run(t, n.work, n.cli, "init", "-upgrade")
	n.run(t, n.work, n.cli, "plan")
}

// TestInstallLocal_configured: whose CLI configuration takes providers from
// elsewhere is told what to add to it.
func TestInstallLocal_configured(t *testing.T) {
	t.Parallel()
	n, bin := newNewcomer(t), t.TempDir()
	settings := filepath.Join(n.home, "cli.rc")
	if err := os.WriteFile(settings, []byte("provider_installation {\n  filesystem_mirror {\n    path = \"/nowhere\"\n  }\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	n.env = append(n.env, "TF_CLI_CONFIG_FILE="+settings)
	if err := os.WriteFile(filepath.Join(bin, "terraform-provider-osupgrade"), []byte("#!/bin/sh\n"), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "tools/install-local.sh", bin) //nolint:gosec // our own script
	command.Dir, command.Env = "..", n.env
	out, err := command.CombinedOutput()
	for _, part := range []string{settings, "filesystem_mirror {", filepath.Join(n.home, ".terraform.d", "plugins")} {
		if err == nil || !strings.Contains(string(out), part) {
			t.Errorf("it ends with %v, and does not name %s: %s", err, part, out)
		}
	}
}
