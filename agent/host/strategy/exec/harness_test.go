package exec

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
)

// host is a folder of scripts with a state folder and a folder for the tests.
type host struct {
	t    *testing.T
	dir  string
	opts Options
}

// newHost returns a host with the required scripts, which do nothing, and the given
// scripts. Each may write to the folder $WORK.
func newHost(t *testing.T, scripts map[string]string) *host {
	t.Helper()
	root := t.TempDir()
	h := &host{t: t, dir: root, opts: Options{
		Dir:      filepath.Join(root, "scripts"),
		StateDir: filepath.Join(root, "state"),
		After:    func(time.Duration) <-chan time.Time { return nil },
	}}
	if err := os.Mkdir(h.opts.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.endLeftovers)
	h.export("WORK", root)
	all := map[string]string{"versions": "echo base-os 1.0", "upgrade": "", "resume": ""}
	maps.Copy(all, scripts)
	for name, body := range all {
		h.script(name, "#!/bin/sh\n"+body+"\n")
	}
	return h
}

// endLeftovers kills the scripts that a failed test has left running.
func (h *host) endLeftovers() {
	if !h.t.Failed() {
		return
	}
	links, err := filepath.Glob("/proc/[0-9]*/fd/" + strconv.Itoa(lockFD))
	if err != nil {
		return
	}
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, h.dir) {
			h.t.Log("ends what was left:", syscall.Kill(processOf(link), syscall.SIGKILL))
		}
	}
}

// export sets a variable of the scripts for sh, each of which reads the file of all
// variables first: the strategy gives them none but its own.
func (h *host) export(name, value string) {
	h.t.Helper()
	file, err := os.OpenFile(h.path("variables"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		h.t.Fatal(err)
	}
	_, err = fmt.Fprintf(file, "export %s='%s'\n", name, strings.ReplaceAll(value, "'", `'\''`))
	if err := errors.Join(err, file.Close()); err != nil {
		h.t.Fatal(err)
	}
}

// script writes an executable file. It holds syscall.ForkLock: a process forked
// meanwhile would inherit the file open for writing, and execve(2) would fail.
func (h *host) script(name, content string) {
	h.t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	path := filepath.Join(h.opts.Dir, name)
	const shell = "#!/bin/sh\n"
	if body, isShell := strings.CutPrefix(content, shell); isShell {
		content = shell + ". " + h.path("variables") + "\n" + body
	}
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.Chmod(path, 0o755); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) open() *Strategy {
	h.t.Helper()
	s, err := New(h.opts)
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

func (h *host) path(name string) string { return filepath.Join(h.dir, name) }

func (h *host) read(name string) string {
	h.t.Helper()
	data, err := os.ReadFile(h.path(name))
	if err != nil {
		h.t.Fatal(err)
	}
	return string(data)
}

// pipe makes a named pipe, by which a script and the test wait for each other
// once: used again it might be read while it is still open from before.
func (h *host) pipe(name string) {
	h.t.Helper()
	if err := syscall.Mkfifo(h.path(name), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// hear reads a line from a named pipe.
func (h *host) hear(name string) string {
	h.t.Helper()
	f, err := os.Open(h.path(name))
	if err != nil {
		h.t.Fatal(err)
	}
	defer closeFile(h.t, f)
	line, err := bufio.NewReader(f).ReadString('\n')
	if err != nil {
		h.t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// say writes a line to a named pipe.
func (h *host) say(name, line string) {
	h.t.Helper()
	f, err := os.OpenFile(h.path(name), os.O_WRONLY, 0)
	if err != nil {
		h.t.Fatal(err)
	}
	defer closeFile(h.t, f)
	if _, err := f.WriteString(line + "\n"); err != nil {
		h.t.Fatal(err)
	}
}

func closeFile(t *testing.T, f *os.File) {
	t.Helper()
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// job is a job of run 41 whose progress is ignored.
func job() strategy.Job { return heeding(func(int, string) {}) }

func heeding(progress func(int, string)) strategy.Job {
	return strategy.Job{
		Tenant: "acme", Host: "h01", Run: 41, BootID: "b1",
		NotAfter: time.Date(2027, 1, 31, 5, 0, 0, 0, time.FixedZone("", 3600)),
		Progress: progress,
	}
}

// messages passes on each message of progress.
func messages() (<-chan string, strategy.Job) {
	heard := make(chan string, 1000)
	return heard, heeding(func(_ int, message string) { heard <- message })
}

// await waits for a message with a text in it.
func await(t *testing.T, heard <-chan string, want string) {
	t.Helper()
	for {
		select {
		case got := <-heard:
			if strings.Contains(got, want) {
				return
			}
		case <-t.Context().Done():
			t.Fatalf("never heard %q", want)
		}
	}
}

type answer struct {
	outcome strategy.Outcome
	err     error
}

// begin calls in the background.
func begin(ctx context.Context, call func(context.Context, strategy.Job) (strategy.Outcome, error), j strategy.Job) <-chan answer {
	ended := make(chan answer, 1)
	go func() {
		outcome, err := call(ctx, j)
		ended <- answer{outcome, err}
	}()
	return ended
}

func wantError(t *testing.T, err error, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Fatalf("got error %v, want %q in it", err, want)
		}
	}
}
