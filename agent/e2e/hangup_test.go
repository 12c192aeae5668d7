package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestHangup has each program that runs for long survive SIGHUP, a terminal that is
// closed and a pipe that nobody reads; each then ends in order when it is told to.
func TestHangup(t *testing.T) {
	t.Parallel()
	f := newProgram(t)
	f.record()
	f.startSite()
	f.token = f.command("credentials", "token", "--data", f.dir+"/site", "--tenant", "acme", "--name", "test")
	f.writeHost("h01")
	f.command("credentials", "host", "--data", f.dir+"/site", "--tenant", "acme", "--host", "h01", "--out", f.path("h01", "key"))
	f.workers["h01"] = f.startWorker("h01")
	for name, p := range map[string]*process{"serve": f.site, "worker-h01": f.workers["h01"]} {
		f.signal(p, syscall.SIGHUP)
		f.awaitLog(name, "SIGHUP")
		f.endsInOrder(name, p)
	}
	f.closedTerminal(t)
	f.closedPipe(t)
}

// closedTerminal closes the terminal in which dev runs.
func (f *fleet) closedTerminal(t *testing.T) {
	terminal, inside := openTerminal(t)
	p := f.dev("terminal", inside, &syscall.SysProcAttr{Setsid: true, Setctty: true})
	endpoint := readyAt(t, terminal)
	if err := terminal.Close(); err != nil { // The kernel sends SIGHUP.
		t.Fatal(err)
	}
	f.survives(t, p, endpoint)
}

// closedPipe closes the pipe to which dev prints.
func (f *fleet) closedPipe(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := f.dev("pipe", writer, nil)
	endpoint := readyAt(t, reader)
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	f.survives(t, p, endpoint)
}

// dev starts a site with simulated hosts that prints to a file alone.
func (f *fleet) dev(name string, out *os.File, attributes *syscall.SysProcAttr) *process {
	f.t.Helper()
	p := &process{Cmd: exec.CommandContext(context.WithoutCancel(f.t.Context()), f.bin, "dev", "--hosts", "1", "--data", f.path("dev-"+name), "--listen", "127.0.0.1:0"), ended: make(chan struct{})} //nolint:gosec // our own binary
	p.Stdin, p.Stdout, p.Stderr, p.SysProcAttr = out, out, out, attributes
	if err := p.Start(); err != nil {
		f.t.Fatal(err)
	}
	_ = out.Close()
	go func() {
		_ = p.Wait()
		close(p.ended)
	}()
	f.t.Cleanup(p.kill)
	return p
}

// readyAt reads what dev prints until it names its endpoint.
func readyAt(t *testing.T, printed *os.File) string {
	t.Helper()
	for lines := bufio.NewScanner(printed); lines.Scan(); {
		if _, after, found := strings.Cut(lines.Text(), "The agent is ready at "); found {
			return strings.Fields(after)[0]
		}
	}
	t.Fatal("dev is not ready")
	return ""
}

// survives checks that a process whose output has gone still serves after a line
// that it cannot write, and ends in order.
func (f *fleet) survives(t *testing.T, p *process, endpoint string) {
	t.Helper()
	f.signal(p, syscall.SIGHUP) // A line of the log follows.
	for range 10 {
		time.Sleep(100 * time.Millisecond)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, endpoint+"/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatalf("it does not survive: %v", err)
		}
		_ = answer.Body.Close()
	}
	f.endsInOrder("dev", p)
}

func (f *fleet) signal(p *process, s syscall.Signal) {
	f.t.Helper()
	if err := p.Process.Signal(s); err != nil {
		f.t.Fatal(err)
	}
}

// endsInOrder ends a process as systemd does.
func (f *fleet) endsInOrder(name string, p *process) {
	f.t.Helper()
	f.signal(p, syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(patience):
		f.t.Fatalf("%s does not end", name)
	}
	if status, ok := p.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signaled() {
		f.t.Errorf("%s was killed: %s", name, p.ProcessState)
	}
}

// awaitLog waits until a process has logged a text.
func (f *fleet) awaitLog(name, text string) {
	f.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		log, err := os.ReadFile(f.path(name + ".log"))
		if err != nil {
			f.t.Fatal(err)
		}
		if strings.Contains(string(log), text) {
			return
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("%s does not log %q:\n%s", name, text, log)
		}
	}
}

// openTerminal opens a terminal: what its user holds, and what a program in it has.
func openTerminal(t *testing.T) (terminal, inside *os.File) {
	t.Helper()
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	unlocked := unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCSPTLCK, 0)
	number, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPTN)
	if unlocked != nil || err != nil {
		t.Fatal(unlocked, err)
	}
	inside, err = os.OpenFile(filepath.Join("/dev/pts", fmt.Sprint(number)), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return terminal, inside
}
