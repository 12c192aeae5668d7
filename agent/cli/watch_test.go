package cli

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// as adds to a command how to reach an API.
func as(t *testing.T, endpoint, token, tenant string, args ...string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	return append(args, "--endpoint", endpoint, "--token-file", file, "--tenant", tenant)
}

// TestWatchOneRun checks that the run asked for is followed and no other.
func TestWatchOneRun(t *testing.T) {
	t.Parallel()
	const tenant = "acme"
	underWay := v1.Run{ID: 5, Phase: "upgrading", Hosts: []v1.RunHost{{Hostname: "h01", Stage: "all", Status: "upgrading"}}}
	finish := func(s *fakeapi.Server, result string) { s.FinishRun(tenant, 5, result, "so it is") }
	addTwo := func(s *fakeapi.Server) {
		finish(s, "completed")
		s.AddRun(tenant, v1.Run{ID: 6, Phase: "upgrading", Hosts: []v1.RunHost{{Hostname: "h01", Stage: "all", Status: "upgrading"}, {Hostname: "h02", Stage: "all", Status: "prepared"}}})
	}
	// asks has something happen between the first question about run 5 and the
	// second; overtake is why there is a second: the watcher misses the end of
	// run 5, for what it hears next is of run 7.
	asks := func(then func(s *fakeapi.Server)) func(s *fakeapi.Server) {
		return func(s *fakeapi.Server) {
			s.Inject("GET", "/runs/5", fakeapi.First(func() {}), fakeapi.First(func() { then(s) }))
		}
	}
	overtake := func(s *fakeapi.Server) {
		s.AwaitStreams(1)
		s.AddRun(tenant, v1.Run{ID: 7, Phase: "preparing"})
	}
	nextOne := func(s *fakeapi.Server) {
		s.AwaitStreams(1)
		s.AddRun(tenant, v1.Run{ID: 9, Phase: "preparing"})
		s.FinishRun(tenant, 9, "completed", "so it is")
	}
	for name, c := range map[string]struct {
		before, during func(s *fakeapi.Server)
		id             string
		code           int
		want           string
	}{
		"unknown":            {nil, nil, "77", exitFailed, "run 77: there is no such run (GET /v1/state/tenants/acme/os-upgrade/runs/77: 404 Not Found)"},
		"completed long ago": {func(s *fakeapi.Server) { finish(s, "completed"); s.AddRun(tenant, v1.Run{ID: 7}) }, nil, "5", exitOK, "run 5: completed: so it is"},
		"failed long ago":    {func(s *fakeapi.Server) { finish(s, "failed"); s.AddRun(tenant, v1.Run{ID: 7}) }, nil, "5", exitNotCompleted, "run 5: failed: so it is"},
		"one host":           {func(s *fakeapi.Server) { finish(s, "completed") }, nil, "5", exitOK, "run 5: 1 host, not after "},
		"two hosts":          {func(s *fakeapi.Server) { addTwo(s); s.FinishRun(tenant, 6, "completed", "so it is") }, nil, "6", exitOK, "run 6: 2 hosts, not after "},
		"a rollback": {func(s *fakeapi.Server) {
			finish(s, "completed")
			s.EditRun(tenant, 5, func(r *v1.Run) { r.RollbackOf = 4 })
		}, nil, "5", exitOK, "run 5: 1 host, rollback of run 4, not after "},
		"ends while followed":    {nil, func(s *fakeapi.Server) { s.AwaitStreams(1); finish(s, "completed") }, "5", exitOK, "h01  upgraded"},
		"fails while followed":   {nil, func(s *fakeapi.Server) { s.AwaitStreams(1); finish(s, "failed") }, "5", exitNotCompleted, "run 5: failed"},
		"the one in progress":    {nil, func(s *fakeapi.Server) { s.AwaitStreams(1); finish(s, "completed") }, "", exitOK, "run 5: completed"},
		"ends unseen":            {asks(func(s *fakeapi.Server) { finish(s, "completed") }), overtake, "5", exitOK, "run 5: completed"},
		"fails unseen":           {asks(func(s *fakeapi.Server) { finish(s, "failed") }), overtake, "5", exitNotCompleted, "run 5: failed"},
		"two at once":            {nil, overtake, "5", exitFailed, "has not ended, though a later one has started"},
		"waits for the next one": {func(s *fakeapi.Server) { finish(s, "failed") }, nextOne, "", exitOK, "run 9: completed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fakeapi.New(t)
			s.AddRun(tenant, underWay)
			if c.before != nil {
				c.before(s)
			}
			if c.during != nil {
				go c.during(s)
			}
			args := as(t, s.URL, s.Token, tenant, "watch")
			if c.id != "" {
				args = append(args, c.id)
			}
			code, stdout, stderr := call(t, args...)
			if code != c.code || !strings.Contains(stdout+stderr, c.want) || strings.Contains(stdout, "run 7") {
				t.Errorf("exit code %d, not %d, or no word of %q, or some of another run:\n%s%s", code, c.code, c.want, stdout, stderr)
			}
		})
	}
}

// TestStartAndWait checks that the run that was started decides the exit code,
// also when it has ended before anybody could watch it.
func TestStartAndWait(t *testing.T) {
	t.Parallel()
	for result, code := range map[string]int{"completed": exitOK, "timed-out": exitNotCompleted} {
		s := fakeapi.New(t)
		s.OnStart(func(tenant string, r v1.Run) {
			s.FinishRun(tenant, r.ID, result, "so it is")
			s.AddRun(tenant, v1.Run{Phase: "preparing"})
		})
		got, stdout, stderr := call(t, as(t, s.URL, s.Token, "acme", "start", "--wait")...)
		if got != code || !strings.Contains(stdout, "run 41: "+result) || strings.Contains(stdout, "run 42") {
			t.Errorf("%s: exit code %d:\n%s%s", result, got, stdout, stderr)
		}
	}
}

// TestStartTellsOfItsHosts checks the sentence about a run of one host and of
// several.
func TestStartTellsOfItsHosts(t *testing.T) {
	t.Parallel()
	for hosts, want := range map[string]string{
		`{"hostname": "h01", "stage": "all"}, {"hostname": "h03"}`:                 "Run 46 has begun with 1 host; no host starts after Sat 2026-11-21 05:45:00 CET, and it ends by Sat 2026-11-21 06:00:00 CET.\n",
		`{"hostname": "h01", "stage": "all"}, {"hostname": "h02", "stage": "all"}`: "Run 46 has begun with 2 hosts; no host starts after Sat 2026-11-21 05:45:00 CET, and it ends by Sat 2026-11-21 06:00:00 CET.\n",
	} {
		s := fakeapi.New(t)
		s.Inject("POST", "/start", fakeapi.Raw(201, "application/json", `{"id": 46, "not-after": "2026-11-21T04:45:00Z", "ends-by": "2026-11-21T05:00:00Z", "hosts": [`+hosts+`]}`))
		if code, stdout, stderr := call(t, as(t, s.URL, s.Token, "acme", "start")...); code != exitOK || stdout != want {
			t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
		}
	}
}

// TestInterruptedWatch checks that Ctrl-C leaves the run alone, and says so.
func TestInterruptedWatch(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{"5": "stopped watching; the run continues\n", "": "stopped watching; no run has started\n"} {
		s := fakeapi.New(t)
		if id != "" {
			s.AddRun("acme", v1.Run{ID: 5, Phase: "upgrading"})
		}
		ctx, interrupt := context.WithCancel(t.Context())
		go func() {
			s.AwaitStreams(1)
			interrupt()
		}()
		var stdout, stderr bytes.Buffer
		args := as(t, s.URL, s.Token, "acme", strings.Fields("watch "+id)...)
		if code := Run(ctx, "1.2.3", args, strings.NewReader(""), &stdout, &stderr); code != exitInterrupted || stderr.String() != "osupgrade-agent: "+want {
			t.Errorf("exit code %d:\n%s%s", code, stdout.String(), stderr.String())
		}
	}
}

// full is a pipe or a disk that takes no more.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// TestWatchThatCannotPrint checks that output that is lost is an error.
func TestWatchThatCannotPrint(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	s.AddRun("acme", v1.Run{ID: 5, Phase: "upgrading", Hosts: []v1.RunHost{{Hostname: "h01"}}})
	for _, output := range []string{"text", "json"} {
		var stderr bytes.Buffer
		code := Run(t.Context(), "1.2.3", as(t, s.URL, s.Token, "acme", "watch", "5", "--output", output), strings.NewReader(""), full{}, &stderr)
		if code != exitFailed || !strings.Contains(stderr.String(), "no space left") {
			t.Errorf("%s: exit code %d: %s", output, code, stderr.String())
		}
	}
}

// TestProgressTellsOfResume checks that who watches reads that a run that was paused goes
// on.
func TestProgressTellsOfResume(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := newProgress(&out, &operator{ofTenant: ofTenant{Output: "text"}}, 5)
	var f followed
	paused := v1.Run{ID: 5, Phase: "upgrading", Paused: "by ann: lunch", WaitingFor: &v1.WaitingFor{What: "resume", Detail: "a resume: paused by ann: lunch"}}
	p.show(&f, paused, nil)
	p.show(&f, paused, nil)
	p.show(&f, v1.Run{ID: 5, Phase: "upgrading"}, nil)
	p.show(&f, v1.Run{ID: 5, Phase: "finished", Result: "completed"}, nil)
	if text := out.String(); strings.Count(text, "run 5: resumed\n") != 1 {
		t.Errorf("shown is:\n%s", text)
	}
}

// TestProgressForecast checks that what a run expects is shown when it changes,
// and not again with each host.
func TestProgressForecast(t *testing.T) {
	t.Parallel()
	const waits = "no forecast while it waits for h03 (it is silent)"
	var out bytes.Buffer
	p := newProgress(&out, &operator{ofTenant: ofTenant{Output: "text"}}, 5)
	var f followed
	for _, status := range []string{"upgrading", "rebooting", "upgraded"} {
		soon, host := time.Date(2126, 11, 21, 2, 0, 0, 0, time.UTC), v1.RunHost{Hostname: "h01", Status: status}
		p.show(&f, v1.Run{
			ID: 5, Phase: "upgrading", Forecast: waits, Hosts: []v1.RunHost{host},
			WaitingFor: &v1.WaitingFor{What: "host", Detail: "h01 to answer " + status, Hosts: []string{"h01"}, Until: &soon},
		}, []v1.RunHost{host})
	}
	p.show(&f, v1.Run{ID: 5, Phase: "finished", Result: "completed", Forecast: waits}, nil)
	if text := out.String(); strings.Count(text, waits) != 1 || strings.Contains(text, "waiting for") {
		t.Errorf("shown is:\n%s", text)
	}
}

// cable is a network between a command and its site: while it is cut, nothing arrives at
// either end, and neither is told.
type cable struct{ cut atomic.Bool }

// link is a connection over a cable.
type link struct {
	net.Conn
	cable *cable
}

func (l link) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	for err == nil && l.cable.cut.Load() {
		n, err = l.Conn.Read(b)
	}
	return n, err
}

func (l link) Write(b []byte) (int, error) {
	if l.cable.cut.Load() {
		return len(b), nil
	}
	return l.Conn.Write(b)
}

// TestWatchTellsOfItsSite checks that who watches reads within 10 seconds that the site
// cannot be reached and since when, though no connection breaks, and then that it is back.
func TestWatchTellsOfItsSite(t *testing.T) {
	t.Parallel()
	var during, out string
	play(t, intended{windows: saturdays}, []string{"h01"}, func(s *scene) {
		var network cable
		s.dialed = func(c net.Conn) net.Conn { return link{c, &network} }
		var printed bytes.Buffer
		ctx, cancel := context.WithCancel(s.t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.run(ctx, &printed, "watch", "--utc")
		}()
		s.until(0, 50, 0)
		network.cut.Store(true)
		s.until(0, 50, 10)
		during = printed.String()
		s.until(0, 55, 0)
		network.cut.Store(false)
		s.until(0, 56, 0)
		cancel()
		<-done
		out = printed.String()
	})
	const lost = "the site has been unreachable since Fri 2026-11-20 23:49:5"
	if !strings.Contains(during, lost) || !strings.Contains(during, "nothing was heard for 9s\n") {
		t.Errorf("10 seconds after the network was cut, shown is:\n%s", during)
	}
	if strings.Count(out, lost) != 1 || strings.Count(out, "the site is back; it could not be reached since Fri 2026-11-20 23:49:5") != 1 || !strings.Contains(out, ", for 5m") {
		t.Errorf("after it is back, shown is:\n%s", out)
	}
}

// TestWatchOfNoSite checks that a watch that finds no site says so instead of nothing.
func TestWatchOfNoSite(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	refused := fakeapi.Status(503, "it is starting")
	s.Inject("GET", "/events", refused, refused)
	s.AddRun("acme", v1.Run{ID: 5, Phase: "finished", Result: "completed"})
	go func() {
		s.AwaitStreams(1)
		s.AddRun("acme", v1.Run{ID: 6, Phase: "upgrading"})
		s.FinishRun("acme", 6, "completed", "so it is")
	}()
	code, stdout, stderr := call(t, as(t, s.URL, s.Token, "acme", "watch")...)
	if code != exitOK || strings.Count(stdout, "the site has been unreachable since ") != 1 || !strings.Contains(stdout, ": 503 Service Unavailable\n") || strings.Count(stdout, "the site is back") != 1 {
		t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
	}
}

// TestWatchIsOfOneTenant checks that who watches all tenants is told at once that watch is of one.
func TestWatchIsOfOneTenant(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := call(t, as(t, "http://127.0.0.1:1", "token", "*", "watch")...)
	if code != exitFailed || stdout != "" || !strings.Contains(stderr, "osupgrade-agent status --tenant '*'") {
		t.Errorf("it ends with %d: %s%s", code, stdout, stderr)
	}
}
