package acctest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// module is the Go package of the provider's binary.
const module = "github.com/osupgrade/terraform-provider-osupgrade"

// built is the folder of the provider's binary, once a test has asked for it.
var built string

// build builds the provider's binary once for all tests of a process.
var build = sync.OnceValues(func() (folder string, err error) {
	if folder, err = os.MkdirTemp("", "osupgrade-acctest-"); err != nil {
		return "", err
	}
	built = folder
	out, err := exec.Command("go", "build", "-o", filepath.Join(folder, "terraform-provider-osupgrade"), module).CombinedOutput()
	if err != nil {
		return folder, fmt.Errorf("cannot build the provider: %w: %s", err, out)
	}
	return folder, nil
})

// Cleanup removes the provider's binary, if there is one. TestMain calls it at the end.
func Cleanup() error {
	if built == "" {
		return nil
	}
	return os.RemoveAll(built)
}

// Workspace is a folder in which a real CLI runs the provider's binary, as users
// do.
type Workspace struct {
	// Dir holds the configuration, the state and the log.
	Dir string
	// Env is added to the environment of the CLI.
	Env []string
	// Input is what the CLI reads from its standard input.
	Input string
	cli   string
}

// NewWorkspace returns an empty workspace. The server is configured by env; see
// Server.Env.
func NewWorkspace(t testing.TB, env ...string) *Workspace {
	t.Helper()
	cli, err := CLI()
	if err != nil {
		t.Fatal(err)
	}
	folder, err := build()
	if err != nil {
		t.Fatal(err)
	}
	w := &Workspace{Dir: t.TempDir(), Env: env, cli: cli}
	settings := fmt.Sprintf("provider_installation {\n  dev_overrides {\n    %q = %q\n  }\n  direct {}\n}\n", Source, folder)
	w.Write(t, "cli.rc", settings)
	w.Env = append(w.Env, "TF_CLI_CONFIG_FILE="+filepath.Join(w.Dir, "cli.rc"), "TF_IN_AUTOMATION=1")
	return w
}

// Env returns the environment variables that configure the provider for the
// server.
func (s Server) Env() []string {
	return []string{"OSUPGRADE_ENDPOINT=" + s.Endpoint, "OSUPGRADE_TOKEN=" + s.Token, "OSUPGRADE_TENANT=" + s.Tenant, "OSUPGRADE_RETRIES=0"}
}

// Write writes a file into the workspace.
func (w *Workspace) Write(t testing.TB, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.Dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Run runs the CLI and returns its output. The test fails if the exit code is
// another than code.
func (w *Workspace) Run(t testing.TB, code int, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), w.cli, args...)
	command.Dir, command.Env = w.Dir, append(os.Environ(), w.Env...)
	command.Stdin = strings.NewReader(w.Input)
	out, err := command.CombinedOutput()
	got := 0
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		got = ended.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	if got != code {
		t.Fatalf("%v ended with exit code %d, want %d:\n%s", args, got, code, out)
	}
	return string(out)
}
