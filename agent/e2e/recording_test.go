package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/recording"
)

const readme = "../../README.md"

// TestRecording plays the session of the README against a site with simulated hosts.
// What is shown there is what the commands print now, but for what moves. With
// -update it is written anew.
func TestRecording(t *testing.T) {
	t.Parallel()
	recording.Check(t, readme, "This session is recorded by make record.", func(commands []recording.Command) []string { return play(t, commands) })
}

// play executes the commands and returns their outputs.
func play(t *testing.T, commands []recording.Command) (printed []string) {
	t.Helper()
	f := newProgram(t)
	data := f.path("dev")
	inside, err := os.OpenFile(f.path("dev.log"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	dev := exec.CommandContext(context.WithoutCancel(t.Context()), f.bin, "dev", "--hosts", "3", "--data", data, "--listen", "127.0.0.1:0", "--action-time", "1s") //nolint:gosec // our own binary
	dev.Stdout, dev.Stderr = inside, inside
	if err := dev.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = dev.Process.Signal(syscall.SIGTERM)
		_ = dev.Wait()
		_ = inside.Close()
	})
	for deadline := time.Now().Add(patience); strings.Count(read(t, f.path("dev.log")), "host is online") < 3 || !strings.Contains(read(t, f.path("dev.log")), "is ready"); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("dev is not ready:\n%s", read(t, f.path("dev.log")))
		}
	}
	// On no day of the week does the window open during the session.
	example := data + "/example.yaml"
	days := strings.Replace(read(t, example), "Saturday, Sunday", time.Now().UTC().AddDate(0, 0, 3).Weekday().String(), 1)
	if err := os.WriteFile(example, []byte(days), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range commands {
		script := ". " + data + "/dev.env; " + strings.ReplaceAll(command.Text, "/tmp/dev", data)
		shell := exec.CommandContext(t.Context(), "bash", "-o", "pipefail", "-c", script) //nolint:gosec // our own README
		shell.Env = append(os.Environ(), "PATH="+filepath.Dir(f.bin)+":"+os.Getenv("PATH"))
		out, err := shell.CombinedOutput()
		// A run that was not completed is what the session is about.
		if err != nil && shell.ProcessState.ExitCode() != 3 {
			t.Fatalf("%s: %v\n%s", command.Text, err, out)
		}
		printed = append(printed, strings.ReplaceAll(string(out), data, "/tmp/dev"))
	}
	return printed
}
