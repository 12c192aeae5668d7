package e2e

import (
	"bytes"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// notified is the socket of systemd for one service.
type notified struct {
	address string
	mu      sync.Mutex
	states  []string
}

func newNotified(t *testing.T, f *fleet, name string) *notified {
	t.Helper()
	n := &notified{address: f.path(name)}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: n.address, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		text := make([]byte, 4096)
		for {
			size, err := conn.Read(text)
			if err != nil {
				return
			}
			n.mu.Lock()
			n.states = append(n.states, string(bytes.Clone(text[:size])))
			n.mu.Unlock()
		}
	}()
	return n
}

// count is how often systemd was told so.
func (n *notified) count(state string) (times int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, got := range n.states {
		if strings.HasPrefix(got, state) {
			times++
		}
	}
	return times
}

// env makes processes that are launched services of type notify, with a beat of a
// second.
func (n *notified) env() []string {
	return []string{"NOTIFY_SOCKET=" + n.address, "WATCHDOG_USEC=3000000"}
}

func (n *notified) await(t *testing.T, state string, times int) {
	t.Helper()
	for deadline := time.Now().Add(patience); n.count(state) < times; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("systemd is not told %q %d times: %q", state, times, n.states)
		}
	}
}

// TestReplacedProgram replaces the program of a worker and of a site in the middle of an
// upgrade, as a package does. Both go on until they have no work in hand, feed the
// watchdog meanwhile, and end by themselves; systemd starts them anew.
func TestReplacedProgram(t *testing.T) {
	t.Parallel()
	f := newProgram(t)
	f.record()
	site, worker := newNotified(t, f, "site.sock"), newNotified(t, f, "worker.sock")
	f.env = site.env()
	f.startSite()
	f.token = f.command("credentials", "token", "--data", f.dir+"/site", "--tenant", "acme", "--name", "test")
	f.writeHost("h01")
	f.newKey()
	f.env = worker.env()
	f.workers["h01"] = f.startWorker("h01")
	site.await(t, "READY=1", 1)
	worker.await(t, "READY=1", 1)
	worker.await(t, "STATUS=Host h01 of tenant acme is ready.", 1)
	api := f.client()
	if _, err := api.PutConfig(t.Context(), "acme", v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: "appliance"}}}, client.Precondition{}); err != nil {
		t.Fatal(err)
	}
	f.gather(api, 1)
	run, err := api.Start(t.Context(), "acme", v1.Start{OverrideWindow: true, Reason: "a test"})
	if err != nil {
		t.Fatal(err)
	}
	f.await("h01 upgrade begins")
	replace(t, f.bin)
	// Three beats: whoever did not wait would be gone.
	siteBeats, workerBeats := site.count("WATCHDOG=1"), worker.count("WATCHDOG=1")
	site.await(t, "WATCHDOG=1", siteBeats+3)
	worker.await(t, "WATCHDOG=1", workerBeats+3)
	if site.count("STOPPING=1")+worker.count("STOPPING=1") > 0 {
		t.Fatal("a process ends in the middle of an upgrade")
	}
	f.release("h01")
	if ended := f.finished(api, run.ID); ended.Result != "completed" {
		t.Errorf("the run ended as %s: %s", ended.Result, ended.Reason)
	}
	for name, p := range map[string]*process{"site": f.site, "worker": f.workers["h01"]} {
		select {
		case <-p.ended:
		case <-time.After(patience):
			t.Fatalf("the %s does not make room for the new program", name)
		}
		if code := p.ProcessState.ExitCode(); code != 0 {
			t.Errorf("the %s ends with %d", name, code)
		}
	}
	if site.count("STOPPING=1") != 1 || worker.count("STOPPING=1") != 1 {
		t.Error("systemd is not told that they end in order")
	}
	if n := f.count("h01 upgrade begins"); n != 1 {
		t.Errorf("h01 was upgraded %d times", n)
	}
	// The new ones stay.
	f.env = nil
	f.startSite()
	f.workers["h01"] = f.startWorker("h01")
	f.gather(f.client(), 1)
}

// replace puts another file of the same content in the place of a program, as dpkg
// does.
func replace(t *testing.T, program string) {
	t.Helper()
	body, err := os.ReadFile(program)
	if err == nil {
		err = errors.Join(os.WriteFile(program+".new", body, 0o755), os.Rename(program+".new", program)) //nolint:gosec // a program
	}
	if err != nil {
		t.Fatal(err)
	}
}
