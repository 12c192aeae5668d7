package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// patience bounds the wait for something that has to happen. It is no
// measurement: whatever takes so long does not happen at all.
const patience = time.Minute

// fleet is a site and three workers, each a process of its own, and a recorder
// outside of them: a pipe into which their scripts write what they do.
type fleet struct {
	t   *testing.T
	dir string
	bin string
	// tenant is the hosts'.
	tenant string
	// api and nats are where the site listens, also after a restart.
	api, nats string
	token     string
	site      *process
	workers   map[string]*process
	// env is what processes that are launched have beside the environment of the test.
	env      []string
	recorded []string
	lines    chan string
}

// process is one of ours that runs.
type process struct {
	*exec.Cmd
	ended chan struct{}
}

// TestKilledProcesses runs serve and three workers with exec scripts, kills
// each kind with SIGKILL in the middle of its work, and sees the run complete
// with each host upgraded exactly once.
func TestKilledProcesses(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	api := f.client()
	if _, err := api.PutConfig(t.Context(), "acme", v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: "appliance"}}}, client.Precondition{}); err != nil {
		t.Fatal(err)
	}
	f.gather(api, 3)
	run, err := api.Start(t.Context(), "acme", v1.Start{OverrideWindow: true, Reason: "a test"})
	if err != nil {
		t.Fatal(err)
	}
	// h01: the worker dies while its script works; the script goes on alone.
	f.await("h01 upgrade begins")
	f.workers["h01"].kill()
	f.workers["h01"] = f.startWorker("h01")
	f.release("h01")
	// h02: the site dies while the host works, and comes back only after that.
	f.await("h02 upgrade begins")
	f.site.kill()
	f.release("h02")
	f.await("h02 upgrade ends")
	f.startSite()
	// h03 asks for a reboot; its worker is told to end while the command works,
	// as it is when an operator restarts its service.
	f.release("h03")
	f.await("h03 reboot begins")
	f.stop("h03")
	if err := os.WriteFile(f.path("h03", "off"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f.await("h03 reboots")
	f.workers["h03"] = f.startWorker("h03")
	ended := f.finished(api, run.ID)
	if ended.Result != "completed" {
		t.Fatalf("the run ended as %s: %s", ended.Result, ended.Reason)
	}
	for _, host := range []string{"h01", "h02", "h03"} {
		if n := f.count(host + " upgrade begins"); n != 1 {
			t.Errorf("%s was upgraded %d times", host, n)
		}
	}
	if n := f.count("h03 reboots"); n != 1 {
		t.Errorf("h03 was rebooted %d times", n)
	}
	hosts, err := api.Hosts(t.Context(), "acme", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hosts {
		if h.Versions["appliance"] != "2" {
			t.Errorf("%s reports %v", h.Hostname, h.Versions)
		}
	}
}

// buildAgent builds the agent with flags of go build.
func buildAgent(t *testing.T, flags ...string) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "osupgrade-agent")
	args := append(append([]string{"build"}, flags...), "-o", bin, "..")
	if out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput(); err != nil { //nolint:gosec // our own program
		t.Fatalf("cannot build: %v\n%s", err, out)
	}
	return bin
}

// newProgram builds the program; nothing runs yet.
func newProgram(t *testing.T) *fleet {
	t.Helper()
	dir := t.TempDir()
	// Before the folder is removed, and after all that ends the processes of a test.
	t.Cleanup(func() { endScripts(t, dir) })
	return &fleet{t: t, dir: dir, tenant: "acme", bin: buildAgent(t), workers: map[string]*process{}, lines: make(chan string, 100)}
}

// endScripts ends what still runs of a folder: a script outlives its worker, waits for
// what the test does not do any more, and holds what it has inherited.
func endScripts(t *testing.T, dir string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		left := processesOf(dir)
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if time.Now().After(deadline) {
			t.Errorf("processes %v of the test cannot be ended", left)
			return
		}
	}
}

// processesOf returns the processes that have a path below a folder as an argument.
func processesOf(dir string) (pids []int) {
	commands, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range commands {
		// A process may have ended, and one that has no parent yet has no arguments left.
		text, err := os.ReadFile(file)
		pid, bad := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && bad == nil && pid != os.Getpid() && strings.Contains(string(text), dir+"/") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// newFleet runs a site and three workers, whose processes have further variables.
func newFleet(t *testing.T, env ...string) *fleet {
	t.Helper()
	f := newProgram(t)
	f.env = env
	f.record()
	f.startSite()
	f.token = f.command("credentials", "token", "--data", f.dir+"/site", "--tenant", "acme", "--name", "test")
	for _, host := range []string{"h01", "h02", "h03"} {
		f.writeHost(host)
		f.command("credentials", "host", "--data", f.dir+"/site", "--tenant", "acme", "--host", host, "--out", f.path(host, "key"))
		f.workers[host] = f.startWorker(host)
	}
	return f
}

func (f *fleet) path(parts ...string) string {
	return filepath.Join(append([]string{f.dir}, parts...)...)
}

// record opens the pipe that all scripts write to.
func (f *fleet) record() {
	f.t.Helper()
	if err := syscall.Mkfifo(f.path("recorder"), 0o600); err != nil {
		f.t.Fatal(err)
	}
	// Open for writing too, so that it never ends.
	pipe, err := os.OpenFile(f.path("recorder"), os.O_RDWR, 0)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = pipe.Close() })
	go func() {
		scanner := bufio.NewScanner(pipe)
		for scanner.Scan() {
			f.lines <- scanner.Text()
		}
	}()
}

// await reads the recorder until it says so.
func (f *fleet) await(line string) {
	f.t.Helper()
	deadline := time.After(patience)
	for !slices.Contains(f.recorded, line) {
		select {
		case got := <-f.lines:
			f.recorded = append(f.recorded, got)
		case <-deadline:
			f.t.Fatalf("%q does not happen; so far: %q", line, f.recorded)
		}
	}
}

func (f *fleet) count(line string) int {
	for {
		select {
		case got := <-f.lines:
			f.recorded = append(f.recorded, got)
			continue
		default:
		}
		n := 0
		for _, got := range f.recorded {
			if got == line {
				n++
			}
		}
		return n
	}
}

// release lets the upgrade script of a host go on: it waits on a pipe.
func (f *fleet) release(host string) {
	f.t.Helper()
	if err := os.WriteFile(f.path(host, "go"), []byte("go\n"), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// writeHost makes a host: a version file, a boot id and its scripts.
func (f *fleet) writeHost(host string) {
	f.t.Helper()
	if err := os.MkdirAll(f.path(host, "scripts"), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := syscall.Mkfifo(f.path(host, "go"), 0o600); err != nil {
		f.t.Fatal(err)
	}
	end := "exit 0"
	if host == "h03" {
		end = "exit 10"
	}
	record := func(what string) string { return fmt.Sprintf("echo '%s %s' > %s\n", host, what, f.path("recorder")) }
	version := f.path(host, "version")
	for name, text := range map[string]string{
		"versions": "echo appliance $(cat " + version + ")\n",
		"upgrade": record("upgrade begins") + "read line < " + f.path(host, "go") + "\necho 2 > " + version + "\n" +
			record("upgrade ends") + end + "\n",
		"resume": "test $(cat " + version + ") = 2 || exit 11\n" + end + "\n",
		"verify": "test $(cat " + version + ") = 2\n",
	} {
		if err := os.WriteFile(f.path(host, "scripts", name), []byte("#!/bin/sh\n"+text), 0o755); err != nil { //nolint:gosec // a script
			f.t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"version": "1\n", "boot-id": "boot-1\n"} {
		if err := os.WriteFile(f.path(host, name), []byte(text), 0o600); err != nil {
			f.t.Fatal(err)
		}
	}
}

// command runs a command of the agent to its end and returns what it printed.
func (f *fleet) command(args ...string) string {
	f.t.Helper()
	cmd := exec.CommandContext(f.t.Context(), f.bin, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		f.t.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out))
}

// launch starts a process of ours and returns its first line.
func (f *fleet) launch(name string, args ...string) (*process, string) {
	f.t.Helper()
	log, err := os.OpenFile(f.path(name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = log.Close() })
	p := &process{Cmd: exec.CommandContext(context.WithoutCancel(f.t.Context()), f.bin, args...), ended: make(chan struct{})} //nolint:gosec // our own binary
	p.Stderr, p.Env = log, append(os.Environ(), f.env...)
	out, err := p.StdoutPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		p.kill()
		if f.t.Failed() {
			text, _ := os.ReadFile(log.Name())
			f.t.Logf("%s:\n%s", name, text)
		}
	})
	reader := bufio.NewReader(out)
	first, err := reader.ReadString('\n')
	if err != nil {
		_ = p.Wait()
		close(p.ended)
		text, _ := os.ReadFile(log.Name())
		f.t.Fatalf("%s did not start: %v\n%s", name, err, text)
	}
	go func() {
		_, _ = io.Copy(io.Discard, reader)
		_ = p.Wait()
		close(p.ended)
	}()
	return p, first
}

func (p *process) kill() {
	_ = p.Process.Kill()
	<-p.ended
}

var addresses = regexp.MustCompile(`REST API at (\S+), hosts connect at (\S+),`)

func (f *fleet) startSite() {
	f.t.Helper()
	api, nats := f.api, f.nats
	if api == "" {
		api, nats = "127.0.0.1:0", "127.0.0.1:0"
	}
	var line string
	f.site, line = f.launch("serve", "serve", "--data", f.dir+"/site", "--tenants", "acme", "--listen", api, "--nats-listen", nats)
	found := addresses.FindStringSubmatch(line)
	if found == nil {
		f.t.Fatalf("serve says %q", line)
	}
	f.api, f.nats = found[1], found[2]
}

func (f *fleet) startWorker(host string) *process {
	f.t.Helper()
	reboot := fmt.Sprintf("echo '%[1]s reboot begins' > %[2]s; until [ -e %[3]s ]; do sleep 0.1; done; echo off; echo boot-2 > %[4]s; echo '%[1]s reboots' > %[2]s",
		host, f.path("recorder"), f.path(host, "off"), f.path(host, "boot-id"))
	p, _ := f.launch("worker-"+host, "worker", "--tenant", "acme", "--host", host, "--application", "appliance",
		"--state", f.path(host, "state"), "--nats-url", "nats://"+f.nats, "--key-file", f.path(host, "key"),
		"--scripts", f.path(host, "scripts"), "--boot-id-file", f.path(host, "boot-id"), "--reboot-command", reboot)
	return p
}

func (f *fleet) client() *client.Client {
	f.t.Helper()
	api, err := client.New(client.Options{Endpoint: "http://" + f.api, Token: f.token})
	if err != nil {
		f.t.Fatal(err)
	}
	return api
}

// gather waits until so many hosts are online: a start before that is refused.
func (f *fleet) gather(api *client.Client, want int) {
	f.t.Helper()
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		hosts, err := api.Hosts(f.t.Context(), f.tenant, "")
		if err != nil {
			f.t.Fatal(err)
		}
		online := 0
		for _, h := range hosts {
			if h.Online {
				online++
			}
		}
		if online == want {
			return
		}
	}
	f.t.Fatalf("%d hosts do not come online", want)
}

// finished follows the run until it ends, across the restart of the site.
func (f *fleet) finished(api *client.Client, id uint64) v1.Run {
	f.t.Helper()
	ctx, stop := context.WithTimeout(f.t.Context(), patience)
	defer stop()
	var last v1.Run
	err := api.Watch(ctx, f.tenant, func(r v1.Run) bool {
		last = r
		return r.ID != id || !r.Finished()
	})
	if err != nil {
		f.t.Fatalf("the run does not end: %v; last: %+v", err, last)
	}
	return last
}
