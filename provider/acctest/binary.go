package acctest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
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
	out, err := exec.Command("go", "build", "-o", filepath.Join(folder, binary), module).CombinedOutput()
	if err != nil {
		return folder, fmt.Errorf("cannot build the provider: %w: %s", err, out)
	}
	return folder, nil
})

// Version is the provider's version in the filesystem mirror. It meets the constraint of
// the examples.
const Version = "0.1.0"

// mirror lays the provider's binary out as a filesystem mirror, once for all tests of a
// process.
var mirror = sync.OnceValues(func() (folder string, err error) {
	binaries, err := build()
	if err != nil {
		return "", err
	}
	folder = filepath.Join(binaries, "mirror")
	home := filepath.Join(folder, filepath.FromSlash(Source), Version, runtime.GOOS+"_"+runtime.GOARCH)
	if err := os.MkdirAll(home, 0o700); err != nil {
		return "", err
	}
	return folder, os.Link(filepath.Join(binaries, binary), filepath.Join(home, "terraform-provider-osupgrade_v"+Version))
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
// Server.Env. The CLI uses the provider without init.
func NewWorkspace(t testing.TB, env ...string) *Workspace {
	t.Helper()
	CLI(t)
	return NewWorkspaceOf(t, filepath.Dir(Binary(t)), env...)
}

// Binary returns the path of the provider's binary.
func Binary(t testing.TB) string {
	t.Helper()
	folder, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(folder, binary)
}

// binary is the name of the provider's program.
const binary = "terraform-provider-osupgrade"

// NewWorkspaceOf returns an empty workspace with another provider of the same address,
// whose program is in a folder.
func NewWorkspaceOf(t testing.TB, folder string, env ...string) *Workspace {
	t.Helper()
	return newWorkspace(t, fmt.Sprintf("dev_overrides {\n    %q = %q\n  }\n  direct {}", Source, folder), env)
}

// NewMirrorWorkspace returns an empty workspace in which init installs the provider from a
// filesystem mirror, as version Version.
func NewMirrorWorkspace(t testing.TB, env ...string) *Workspace {
	t.Helper()
	CLI(t)
	folder, err := mirror()
	if err != nil {
		t.Fatal(err)
	}
	return newWorkspace(t, fmt.Sprintf("filesystem_mirror {\n    path = %q\n  }", folder), env)
}

func newWorkspace(t testing.TB, installation string, env []string) *Workspace {
	t.Helper()
	w := &Workspace{Dir: t.TempDir(), Env: env, cli: CLI(t)}
	w.Write(t, "cli.rc", "provider_installation {\n  "+installation+"\n}\n")
	w.Env = append(w.Env, "TF_CLI_CONFIG_FILE="+filepath.Join(w.Dir, "cli.rc"), "TF_IN_AUTOMATION=1")
	return w
}

// Env returns the environment variables that configure the provider for the
// server.
func (s Server) Env() []string {
	return []string{"OSUPGRADE_ENDPOINT=" + s.Endpoint, "OSUPGRADE_TOKEN=" + s.Token, "OSUPGRADE_TENANT=" + s.Tenant, "OSUPGRADE_RETRIES=0"}
}

// Write writes a file into the workspace, and the folders above it.
func (w *Workspace) Write(t testing.TB, name, content string) {
	t.Helper()
	path := filepath.Join(w.Dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Process is a CLI that runs.
type Process struct {
	command *exec.Cmd
	out     bytes.Buffer
	ended   chan error
}

// Start starts the CLI in a process group of its own, as a shell does.
func (w *Workspace) Start(t testing.TB, args ...string) *Process {
	t.Helper()
	p := &Process{command: exec.CommandContext(t.Context(), w.cli, args...)}
	p.command.Dir, p.command.Env = w.Dir, append(os.Environ(), w.Env...)
	p.command.Stdout, p.command.Stderr = &p.out, &p.out
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.command.Cancel = func() error { return syscall.Kill(-p.command.Process.Pid, syscall.SIGKILL) }
	p.command.WaitDelay = 10 * time.Second
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	p.ended = make(chan error, 1)
	go func() { p.ended <- p.command.Wait() }()
	return p
}

// Await waits until happens returns. The test fails if the CLI ends before that.
func (p *Process) Await(t testing.TB, happens func()) {
	t.Helper()
	happened := make(chan struct{})
	go func() {
		happens()
		close(happened)
	}()
	select {
	case <-happened:
	case err := <-p.ended:
		t.Fatalf("the CLI ended too early: %v\n%s", err, p.out.String())
	}
}

// Interrupt sends what Ctrl-C sends: SIGINT to the CLI and to its providers.
func (p *Process) Interrupt(t testing.TB) {
	t.Helper()
	if err := syscall.Kill(-p.command.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
}

// Wait returns the exit code and the output.
func (p *Process) Wait(t testing.TB) (code int, out string) {
	t.Helper()
	var ended *exec.ExitError
	if err := <-p.ended; err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return p.command.ProcessState.ExitCode(), p.out.String()
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
