package e2e

import (
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestWorkerProgram checks the program of a host: it has no server in it, whose package
// alone wakes a process each second, it says where the commands of a site are, and it
// carries out the actions of a strategy, for which a worker starts its own program.
func TestWorkerProgram(t *testing.T) {
	t.Parallel()
	contains := func(tags string) []string {
		list, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags", tags, "..").Output()
		if err != nil {
			t.Fatalf("cannot list the dependencies: %v", err)
		}
		return strings.Fields(string(list))
	}
	const ours = "github.com/osupgrade/terraform-provider-osupgrade/agent/"
	site := []string{
		"github.com/nats-io/nats-server/v2/server", ours + "log/natsd", ours + "site", ours + "site/dev", ours + "api", ours + "controller", ours + "log/store",
		ours + "tell/metrics", "github.com/prometheus/client_golang/prometheus",
	}
	all, small := contains(""), contains("worker")
	for _, name := range site {
		if !slices.Contains(all, name) {
			t.Errorf("not even the program of a site contains %s; has it another name?", name)
		}
		if slices.Contains(small, name) {
			t.Errorf("the program of a host contains %s", name)
		}
	}
	program := buildAgent(t, "-tags", "worker")
	run := func(stdin string, args ...string) (out string, code int) {
		command := exec.CommandContext(t.Context(), program, args...) //nolint:gosec // our own program
		command.Stdin = strings.NewReader(stdin)
		text, _ := command.CombinedOutput()
		return string(text), command.ProcessState.ExitCode()
	}
	help, _ := run("", "--help")
	if !strings.Contains(help, "join a site") || strings.Contains(help, "\n  serve ") || strings.Contains(help, "credentials") {
		t.Errorf("the help is\n%s", help)
	}
	for _, args := range [][]string{{"serve", "--config", "/etc/osupgrade/serve.yaml"}, {"credentials", "token", "--name", "ann"}, {"backup"}, {"dev", "--help"}} {
		out, code := run("", args...)
		if code != 2 || !strings.Contains(out, args[0]+" is a command of a site") || !strings.Contains(out, "use osupgrade-agent") {
			t.Errorf("%q ends with %d: %s", args, code, out)
		}
	}
	if out, code := run(`{"format":1,"action":"versions"}`, "strategy", "nonesuch", "versions"); code == 0 || !strings.Contains(out, "is not a strategy; use one of exec, apt") {
		t.Errorf("an unknown strategy ends with %d: %s", code, out)
	}
}

// TestWorkerMemory checks what a worker that has nothing to do takes of the memory of
// its host, as it is packaged: static. What it has mapped of its own file does not count:
// the kernel takes that back when it needs it, and decides how much it maps at a time.
func TestWorkerMemory(t *testing.T) {
	t.Parallel()
	f := newProgram(t)
	f.record()
	f.startSite()
	f.writeHost("h01")
	f.command("credentials", "host", "--data", f.dir+"/site", "--tenant", "acme", "--host", "h01", "--out", f.path("h01", "key"))
	f.bin = buildAgent(t, "-tags", "worker,netgo,osusergo")
	// Its first line says that the site has answered it.
	worker := f.startWorker("h01")
	status := read(t, fmt.Sprintf("/proc/%d/status", worker.Process.Pid))
	found := regexp.MustCompile(`RssAnon:\s+(\d+) kB`).FindStringSubmatch(status)
	if found == nil {
		t.Fatalf("the kernel says\n%s", status)
	}
	t.Logf("the worker takes %s KiB", found[1])
	const most = 10 << 10
	if kib, err := strconv.Atoi(found[1]); err != nil || kib > most {
		t.Errorf("the worker takes %s KiB, more than %d", found[1], most)
	}
}
