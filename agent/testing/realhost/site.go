package realhost

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Tenant and Application are those of a [Site].
const (
	Tenant      = "acme"
	Application = "appliance"
)

// Site is a site of its own: the real program, on loopback, with one tenant.
type Site struct {
	// Endpoint and Token are for the REST API.
	Endpoint, Token string
	// Client calls it.
	Client *client.Client

	t       testing.TB
	dir     string
	program string
	// api and log are where it listens, also after a restart.
	api, log string
	process  *exec.Cmd
}

// Program builds the agent, of this version, and returns its path. It runs in each
// tree, since it needs no library.
func Program(t testing.TB, version string) string {
	t.Helper()
	return build(t, "osupgrade-agent", "", version)
}

// Worker is Program without the server, as the unit of the worker runs it.
func Worker(t testing.TB, version string) string {
	t.Helper()
	return build(t, "osupgrade-worker", "worker", version)
}

func build(t testing.TB, name, tags, version string) string {
	t.Helper()
	dir := filepath.Join(root(), ".cache", "realhost")
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // nothing secret
		t.Fatal(err)
	}
	// Tests of several packages build it at once; go build does so once.
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Close() }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	built := filepath.Join(dir, name+"-"+version)
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-tags", tags, "-ldflags", "-s -w -X main.version="+version, "-o", built, "./agent") //nolint:gosec // our own program
	build.Dir, build.Env = root(), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build the agent: %v\n%s", err, out)
	}
	// The next build may replace it.
	own := filepath.Join(t.TempDir(), name)
	if os.Link(built, own) == nil {
		return own
	}
	data, err := os.ReadFile(built)
	if err == nil {
		err = os.WriteFile(own, data, 0o755) //nolint:gosec // a program
	}
	if err != nil {
		t.Fatal(err)
	}
	return own
}

// NewSite starts a site. Its tenant has the worker application, and neither windows nor
// hosts.
func NewSite(t testing.TB) *Site {
	t.Helper()
	s := &Site{t: t, dir: t.TempDir(), program: Program(t, "0.0.1"), api: "127.0.0.1:0", log: "127.0.0.1:0"}
	s.Start()
	t.Cleanup(func() {
		s.Stop()
		if t.Failed() {
			text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			t.Logf("the site says, at its end:\n%s", text[max(0, len(text)-4000):])
		}
	})
	s.Endpoint = "http://" + s.api
	token, code := s.Command("credentials", "token", "--data", s.Data(), "--tenant", Tenant, "--name", "test")
	if code != 0 {
		t.Fatal(token)
	}
	s.Token = strings.TrimSpace(token)
	var err error
	if s.Client, err = client.New(client.Options{Endpoint: s.Endpoint, Token: s.Token}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Client.Close)
	config := v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: Application}}}
	if _, err := s.Client.PutConfig(t.Context(), Tenant, config, client.Precondition{}); err != nil {
		t.Fatal(err)
	}
	return s
}

// Data is the folder of the site.
func (s *Site) Data() string { return filepath.Join(s.dir, "data") }

// Log is where workers connect, HOST:PORT of this machine.
func (s *Site) Log() string { return s.log }

var ready = regexp.MustCompile(`REST API at (?:http://)?([^ ,]+), hosts connect at (?:nats://)?([^ ,]+),`)

// Start starts it again after Stop or Kill.
func (s *Site) Start() {
	s.t.Helper()
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	s.process = exec.CommandContext(context.WithoutCancel(s.t.Context()), s.program, "serve", "--data", s.Data(), "--tenants", Tenant, "--listen", s.api, "--nats-listen", s.log) //nolint:gosec // our own program
	s.process.Stderr = log
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := s.process.StdoutPipe()
	if err == nil {
		err = s.process.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	reader := bufio.NewReader(out)
	line, err := reader.ReadString('\n')
	if err != nil {
		_ = s.process.Wait()
		text, _ := os.ReadFile(log.Name())
		s.t.Fatalf("the site does not start: %v\n%s", err, text)
	}
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	where := ready.FindStringSubmatch(line)
	if where == nil {
		s.t.Fatalf("the site says %q", line)
	}
	s.api, s.log = where[1], where[2]
}

// Stop ends it as systemd does. It may have ended.
func (s *Site) Stop() { s.end(syscall.SIGTERM) }

// Kill ends it at once.
func (s *Site) Kill() { s.end(syscall.SIGKILL) }

func (s *Site) end(signal syscall.Signal) {
	_ = s.process.Process.Signal(signal)
	_ = s.process.Wait()
}

// Command runs a command of the agent as an operator does, and returns what it prints
// and its exit code.
func (s *Site) Command(args ...string) (string, int) {
	s.t.Helper()
	command := exec.CommandContext(s.t.Context(), s.program, args...)
	command.Env = append(os.Environ(), "OSUPGRADE_ENDPOINT="+s.Endpoint, "OSUPGRADE_TOKEN="+s.Token, "OSUPGRADE_TENANT="+Tenant)
	out, err := command.CombinedOutput()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		s.t.Fatal(err)
	}
	return string(out), command.ProcessState.ExitCode()
}

// AddHost installs the worker of a host of the site: program, unit, key and
// configuration, in which settings are more keys. The worker starts with the machine.
func (s *Site) AddHost(m Machine, host string, settings map[string]string) {
	s.t.Helper()
	key := filepath.Join(s.dir, host+".key")
	if out, code := s.Command("credentials", "host", "--data", s.Data(), "--tenant", Tenant, "--host", host, "--out", key); code != 0 {
		s.t.Fatal(out)
	}
	copies := []struct {
		from, to string
		mode     os.FileMode
	}{
		{Worker(s.t, "0.0.1"), "/usr/local/bin/osupgrade-worker", 0o755},
		{key, "/etc/osupgrade/host.key", 0o600},
		{filepath.Join(root(), "examples", "systemd", "osupgrade-worker.service"), "/etc/systemd/system/osupgrade-worker.service", 0o644},
	}
	for _, file := range copies {
		data, err := os.ReadFile(file.from)
		if err != nil {
			s.t.Fatal(err)
		}
		m.put(file.to, data, file.mode)
	}
	all := map[string]string{
		"nats-url": "nats://" + m.Reach(s.log), "tenant": Tenant, "host": host, "application": Application, "key-file": "/etc/osupgrade/host.key",
	}
	maps.Copy(all, settings)
	var config strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&config, "%s: %s\n", name, all[name])
	}
	m.WriteFile("/etc/osupgrade/worker.yaml", config.String())
	m.Enable("osupgrade-worker.service")
}

// Online waits until hosts of the site are online.
func (s *Site) Online(hosts ...string) {
	s.t.Helper()
	Until(s.t, strings.Join(hosts, ", ")+" online", bootLimit, func() bool {
		known, err := s.Client.Hosts(s.t.Context(), Tenant, "")
		if err != nil {
			s.t.Fatal(err)
		}
		online := 0
		for _, h := range known {
			if h.Online && slices.Contains(hosts, h.Hostname) {
				online++
			}
		}
		return online == len(hosts)
	})
}

// Upgrade starts a run and waits for its end.
func (s *Site) Upgrade() v1.Run {
	s.t.Helper()
	return s.Ended(s.Begin())
}

// Begin starts a run.
func (s *Site) Begin() v1.Run {
	s.t.Helper()
	return s.begin(v1.Start{OverrideWindow: true})
}

// Declare declares a release.
func (s *Site) Declare(name string, r release.Release) {
	s.t.Helper()
	if _, err := client.ReleaseNamed(name).Put(s.t.Context(), s.Client, Tenant, client.Stored[v1.Release]{}, r, client.Precondition{}); err != nil {
		s.t.Fatal(err)
	}
}

// BeginRelease starts a run that installs a release.
func (s *Site) BeginRelease(name string) v1.Run {
	s.t.Helper()
	return s.begin(v1.Start{OverrideWindow: true, Release: name})
}

// BeginRollback starts a run that rolls back another one.
func (s *Site) BeginRollback(run uint64) v1.Run {
	s.t.Helper()
	return s.begin(v1.Start{RollbackOf: run})
}

func (s *Site) begin(request v1.Start) v1.Run {
	s.t.Helper()
	request.Reason = "a test"
	run, err := s.Client.Start(s.t.Context(), Tenant, request)
	if err != nil {
		s.t.Fatal(err)
	}
	return run
}

// runLimit bounds a run of few hosts.
const runLimit = 15 * time.Minute

// Ended waits for the end of a run.
func (s *Site) Ended(run v1.Run) v1.Run {
	s.t.Helper()
	Until(s.t, fmt.Sprintf("run %d ends", run.ID), runLimit, s.ended(&run))
	return run
}

// EndedOn is Ended with a limit in the time that the host of the run has had.
func (s *Site) EndedOn(m Machine, run v1.Run) v1.Run {
	s.t.Helper()
	UntilOn(s.t, m, fmt.Sprintf("run %d ends", run.ID), runLimit, s.ended(&run))
	return run
}

// ended reads a run and reports whether it has ended.
func (s *Site) ended(run *v1.Run) func() bool {
	return func() bool {
		now, err := s.Client.Run(s.t.Context(), Tenant, run.ID)
		if err != nil {
			s.t.Fatal(err)
		}
		*run = now
		return run.Phase == "finished"
	}
}
