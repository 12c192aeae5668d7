package e2e

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// TestReplacedWorker has a worker with another state folder take the place of
// one that is stopped in order, as when a host was installed anew: one that is
// started after the stop, and one that stands by until then. Neither waits for
// the first one to be silent for long enough.
func TestReplacedWorker(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.gather(f.client(), 3)
	const inTime = 20 * time.Second
	begun := time.Now()
	f.stop("h01")
	later := f.another("h01")
	later.await(t, "is ready")
	after := time.Since(begun)
	beside := f.another("h02")
	beside.await(t, "is standing by")
	begun = time.Now()
	f.stop("h02")
	beside.await(t, "is ready")
	waiting := time.Since(begun)
	t.Logf("ready after the stop of the first: %s when it is started then, %s when it stands by", after.Round(time.Millisecond), waiting.Round(time.Millisecond))
	if after > inTime || waiting > inTime {
		t.Errorf("the lease is not given back: the next worker waits for one that was never silent")
	}
}

// stop ends a worker in order.
func (f *fleet) stop(host string) {
	f.t.Helper()
	if err := f.workers[host].Process.Signal(syscall.SIGTERM); err != nil {
		f.t.Fatal(err)
	}
	<-f.workers[host].ended
}

// other is a second worker of a host, with a state folder of its own.
type other struct {
	said chan string
}

// another starts one.
func (f *fleet) another(host string) other {
	f.t.Helper()
	log, err := os.Create(f.path("another-" + host + ".log"))
	if err != nil {
		f.t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(f.t.Context()), f.bin, "worker", "--tenant", "acme", "--host", host, //nolint:gosec // our own binary
		"--application", "appliance", "--state", f.path(host, "another"), "--nats-url", "nats://"+f.nats, "--key-file", f.path(host, "key"),
		"--scripts", f.path(host, "scripts"), "--boot-id-file", f.path(host, "boot-id"), "--reboot-command", "false")
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	o := other{said: make(chan string, 100)}
	ended := make(chan struct{})
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			o.said <- lines.Text()
		}
		_ = cmd.Wait()
		close(ended)
	}()
	f.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		_ = log.Close()
		text, _ := os.ReadFile(log.Name())
		f.t.Logf("the other worker of %s:\n%s", host, text)
	})
	return o
}

// await reads what a worker says until it says so.
func (o other) await(t *testing.T, want string) {
	t.Helper()
	deadline := time.After(2 * message.Silence)
	for {
		select {
		case line := <-o.said:
			if strings.Contains(line, want) {
				return
			}
		case <-deadline:
			t.Fatalf("the other worker does not say that it %s", want)
		}
	}
}
