package examples_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest/realagent"
)

// TestGettingStarted walks through the guide as it is written, from its first
// configuration on. What comes before, make install-local and dev, has tests of its own.
func TestGettingStarted(t *testing.T) {
	t.Parallel()
	server, _ := realagent.Start(t, 3)
	w := acctest.NewMirrorWorkspace(t, server.Env()...)
	bin := programs(t)
	_, walk, _ := strings.Cut(read(t, "../docs/guides/getting-started.md"), "\n## Declare\n")
	var config, printed string
	for _, block := range regexp.MustCompile("(?s)```(terraform|sh)\n(.*?)```").FindAllStringSubmatch(walk, -1) {
		if block[1] == "terraform" {
			config += strings.ReplaceAll(block[2], `"osupgrade/osupgrade"`, `"`+acctest.Source+`"`)
			w.Write(t, "main.tf", config)
			continue
		}
		printed += shell(t, w, bin, block[2])
	}
	for _, want := range []string{"No changes.", "3 of 3 hosts upgraded", `"5h" `, "0 added, 1 changed, 0 destroyed", "3 destroyed"} {
		if !strings.Contains(printed, want) {
			t.Errorf("the walk prints no %q:\n%s", want, printed)
		}
	}
	gone(t, server, server.Tenant)
}

// TestAuthentication walks through the logins of the guide as they are written. The machine
// of the site and that of the job are one here.
func TestAuthentication(t *testing.T) {
	t.Parallel()
	server, dir := realagent.Start(t, 0)
	w := acctest.NewMirrorWorkspace(t, "OSUPGRADE_ENDPOINT="+server.Endpoint, "OSUPGRADE_TENANT="+server.Tenant, "OSUPGRADE_DATA="+dir)
	w.Write(t, "main.tf", acctest.Requirement+"resource \"osupgrade_rollout\" \"acme\" {\n  reserve = \"10m\"\n}\n")
	w.Run(t, 0, "init", "-no-color")
	_, guide, _ := strings.Cut(read(t, "../docs/guides/authentication.md"), "\n## Log in as an approle\n")
	guide, _, _ = strings.Cut(guide, "\n## Put it somewhere safe\n")
	var script string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(guide, -1) {
		script += block[1]
	}
	bin := programs(t)
	out := shell(t, w, bin, script)
	for _, want := range []string{"Resources: 1 added", "No changes."} {
		if !strings.Contains(out, want) {
			t.Errorf("the walk prints no %q:\n%s", want, out)
		}
	}
	// The two uses of the secret-id were for plan and apply.
	out = shell(t, w, bin, "export OSUPGRADE_ROLE_ID=$(cat role-id) OSUPGRADE_SECRET_ID=$(cat secret-id)\n! terraform plan\n")
	if !strings.Contains(out, "cannot log in") {
		t.Errorf("there is a third use:\n%s", out)
	}
}

// programs returns a folder with terraform and osupgrade-agent.
func programs(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	cli := acctest.CLI(t)
	if err := os.Symlink(cli, filepath.Join(bin, "terraform")); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin+"/osupgrade-agent", "../agent").CombinedOutput(); err != nil {
		t.Fatalf("cannot build the agent: %v\n%s", err, out)
	}
	return bin
}

// shell executes a script of a guide in a workspace, with these programs, and returns what it
// printed.
func shell(t *testing.T, w *acctest.Workspace, bin, script string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
	command.Dir, command.Env = w.Dir, append(append(os.Environ(), w.Env...), "TF_CLI_ARGS=-no-color", "PATH="+bin+":"+os.Getenv("PATH"))
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

// TestReadme lives through the configuration that the README shows.
func TestReadme(t *testing.T) {
	t.Parallel()
	_, after, _ := strings.Cut(read(t, "../README.md"), "```terraform\n")
	config, _, found := strings.Cut(after, "```")
	if !found {
		t.Fatal("the README shows no configuration")
	}
	server := realagent.StartSite(t, "acme").Server
	w := acctest.NewMirrorWorkspace(t, server.Env()...)
	w.Write(t, "main.tf", strings.ReplaceAll(config, `"osupgrade/osupgrade"`, `"`+acctest.Source+`"`))
	w.Run(t, 0, "init", "-no-color")
	live(t, w)
	w.Run(t, 0, "destroy", "-auto-approve", "-no-color")
	gone(t, server, "acme")
}
