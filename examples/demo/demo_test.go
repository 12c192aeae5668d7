package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

// programs builds both programs as make demo does.
func programs(t *testing.T) (bin, cli string) {
	t.Helper()
	bin, cli = t.TempDir(), acctest.CLI(t)
	for name, folder := range map[string]string{"terraform-provider-osupgrade": "../..", "osupgrade-agent": "../../agent"} {
		cmd := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(bin, name), ".")
		cmd.Dir = folder
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("cannot build %s: %v\n%s", name, err, out)
		}
	}
	return bin, cli
}

// TestDemo runs each demo to its end, and one interrupted in the middle of its run: in each case no file
// and no process of it is left.
func TestDemo(t *testing.T) {
	bin, cli := programs(t)
	t.Run("to its end", func(t *testing.T) {
		t.Setenv("TMPDIR", t.TempDir())
		if err := show(t.Context(), bin, cli, ".", ".", (*demo).play); err != nil {
			t.Error(err)
		}
		nothingLeft(t)
	})
	t.Run("shops", func(t *testing.T) {
		t.Setenv("TMPDIR", t.TempDir())
		if err := show(t.Context(), bin, cli, ".", "shops", (*demo).playShops); err != nil {
			t.Error(err)
		}
		nothingLeft(t)
	})
	t.Run("platform", func(t *testing.T) {
		t.Setenv("TMPDIR", t.TempDir())
		if err := show(t.Context(), bin, cli, ".", "platform", (*demo).playPlatform); err != nil {
			t.Error(err)
		}
		nothingLeft(t)
	})
	t.Run("interrupted", func(t *testing.T) {
		t.Setenv("TMPDIR", t.TempDir())
		ctx, interrupt := context.WithCancel(t.Context())
		defer interrupt()
		ended := make(chan error, 1)
		go func() { ended <- show(ctx, bin, cli, ".", ".", (*demo).play) }()
		for { // The demo is in the middle when a host has been prepared.
			found, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "osupgrade-demo-*", "agent", "hosts", "h01", "effects.log"))
			if err != nil || len(found) > 0 {
				break
			}
			select {
			case err := <-ended:
				t.Fatalf("it ended before it came to that: %v", err)
			case <-time.After(10 * time.Millisecond):
			}
		}
		interrupt()
		if err := <-ended; err == nil {
			t.Error("an interrupted demo ends as if it were done")
		}
		nothingLeft(t)
	})
}

// nothingLeft checks the temporary folder, and that no process was started
// with a path in it.
func nothingLeft(t *testing.T) {
	t.Helper()
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(processes) == 0 {
		t.Fatalf("cannot list processes: %v", err)
	}
	for _, path := range processes {
		// A process that has just ended cannot be read, and is not left.
		if line, err := os.ReadFile(path); err == nil && strings.Contains(string(line), os.Getenv("TMPDIR")) {
			t.Errorf("a process is left: %q", line)
		}
	}
}
