package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// beforeReleases is the last commit whose agent knows no releases. make test says at its end if this copy of
// the repository lacks it.
const beforeReleases = "ee38b4ae0d490617675d7e1de1272cd6eebaf4f3"

// buildBefore builds the agent of an earlier commit, from the history of this repository.
func buildBefore(t *testing.T, commit string, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "git", "-C", "../..", "cat-file", "-e", commit+"^{commit}").CombinedOutput(); err != nil {
		t.Skipf("needs commit %s, which this copy of the repository lacks; run: git fetch --unshallow (%s)", commit[:12], strings.TrimSpace(string(out)))
	}
	bin := filepath.Join(dir, "osupgrade-agent")
	script := `git -C ../.. archive "$1" | tar -x -C "$2"; cd "$2"; go build -trimpath -o "$3" "${@:4}" ./agent`
	args := append([]string{"-euo", "pipefail", "-c", script, "bash", commit, dir, bin}, flags...)
	if out, err := exec.CommandContext(t.Context(), "bash", args...).CombinedOutput(); err != nil { //nolint:gosec // our own program
		t.Fatalf("cannot build the agent of commit %s: %v\n%s", commit, err, out)
	}
	return bin
}

// The versions of the programs of a mixed fleet: one that knows no releases, and this one.
const before, now = "0.1.0", "0.2.0"

// versioned are the flags of go build for a version.
func versioned(version string) []string { return []string{"-ldflags", "-X main.version=" + version} }

// mixed is a fleet with programs of two versions. The script of each host installs what the release
// says, and without a release "latest".
type mixed struct {
	*fleet
	// programs are by version.
	programs map[string]string
}

// newMixed starts a site of a version, which knows some hosts. No worker runs yet.
func newMixed(t *testing.T, programs map[string]string, site string, hosts ...string) (*mixed, *client.Client) {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() { endScripts(t, dir) })
	m := &mixed{&fleet{t: t, dir: dir, tenant: "acme", bin: programs[site], workers: map[string]*process{}}, programs}
	m.startSite()
	m.token = m.command("credentials", "token", "--data", m.dir+"/site", "--tenant", m.tenant, "--name", "test")
	for _, host := range hosts {
		m.writeHost(host)
		version := m.path(host, "version")
		upgrade := `while [ -e ` + m.path("hold") + ` ]; do sleep 0.05; done; if [ -n "${OSUPGRADE_RELEASE_JSON:-}" ]; then sed 's/.*"installs":{"appliance":"\([^"]*\)".*/\1/' "$OSUPGRADE_RELEASE_JSON"; else echo latest; fi > ` + version
		for name, text := range map[string]string{"upgrade": upgrade, "resume": "exit 11", "verify": "test $(cat " + version + ") != 1"} {
			if err := os.WriteFile(m.path(host, "scripts", name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil { //nolint:gosec // a script
				t.Fatal(err)
			}
		}
		m.command("credentials", "host", "--data", m.dir+"/site", "--tenant", m.tenant, "--host", host, "--out", m.path(host, "key"))
	}
	api := m.client()
	if _, err := api.PutConfig(t.Context(), m.tenant, v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: "appliance"}}}, client.Precondition{}); err != nil {
		t.Fatal(err)
	}
	return m, api
}

// declare declares a release that installs a version.
func (m *mixed) declare(api *client.Client, name, version string) {
	m.t.Helper()
	r := v1.Release{Data: []byte(`{}`), Installs: map[string]string{"appliance": version}}
	if _, err := client.ReleaseNamed(name).Put(m.t.Context(), api, m.tenant, client.Stored[v1.Release]{}, r, client.Precondition{}); err != nil {
		m.t.Fatal(err)
	}
}

// run starts a run and returns it when it has ended.
func (m *mixed) run(api *client.Client, request v1.Start) v1.Run {
	m.t.Helper()
	request.OverrideWindow, request.Reason = true, "a test"
	run, err := api.Start(m.t.Context(), m.tenant, request)
	if err != nil {
		m.t.Fatal(err)
	}
	return m.finished(api, run.ID)
}

// upgrades runs an upgrade that completes, after which host h01 has a version.
func (m *mixed) upgrades(api *client.Client, request v1.Start, version string) {
	m.t.Helper()
	if run := m.run(api, request); run.Result != "completed" {
		m.t.Errorf("the run ended as %s: %s: %+v", run.Result, run.Reason, run.Hosts)
	}
	m.has("h01", version)
}

// has fails the test unless a host has a version.
func (m *mixed) has(host, version string) {
	m.t.Helper()
	if got := strings.TrimSpace(read(m.t, m.path(host, "version"))); got != version {
		m.t.Errorf("%s has version %s, not %s", host, got, version)
	}
}

// until waits until f returns true.
func (m *mixed) until(what string, f func() bool) {
	m.t.Helper()
	for deadline := time.Now().Add(patience); !f(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			m.t.Fatalf("%s: not within %s", what, patience)
		}
	}
}

// hosts are those of the site.
func (m *mixed) hosts(api *client.Client) []v1.Host {
	m.t.Helper()
	hosts, err := api.Hosts(m.t.Context(), m.tenant, "")
	if err != nil {
		m.t.Fatal(err)
	}
	return hosts
}

// online waits until the site hears a host, whose worker is of a version.
func (m *mixed) online(api *client.Client, host, version string) {
	m.t.Helper()
	m.until(host+" is online with version "+version, func() bool {
		return slices.ContainsFunc(m.hosts(api), func(h v1.Host) bool { return h.Hostname == host && h.Online && h.AgentVersion == version })
	})
}

// replaced stops the worker of a host and starts that of a version, with the same journal.
func (m *mixed) replaced(api *client.Client, host, version string) {
	m.t.Helper()
	if m.workers[host] != nil {
		m.stop(host)
	}
	m.bin = m.programs[version]
	m.workers[host] = m.startWorker(host)
	m.online(api, host, version)
}

// note returns what a run says of a host that it leaves out; empty for a host that it has.
func note(run v1.Run, host string) string {
	for _, h := range run.Hosts {
		if h.Hostname == host && h.Stage == "" {
			return h.Note
		}
	}
	return ""
}

// TestMixedVersions has sites and workers of which one knows releases and the other does not.
func TestMixedVersions(t *testing.T) {
	t.Parallel()
	programs := map[string]string{
		before: buildBefore(t, beforeReleases, versioned(before)...),
		now:    buildAgent(t, versioned(now)...),
	}
	for name, test := range map[string]func(*testing.T, map[string]string){
		"a worker from before": workerBeforeReleases, "a worker that goes back": workerGoesBack, "a site from before": siteBeforeReleases,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, programs)
		})
	}
}

// workerBeforeReleases has a host with a worker that knows no releases at a site that does. A run
// with a release leaves it out by name, and one without upgrades it as ever. With a new worker, which
// goes on with its journal, it is upgraded to releases, and with the old one again it is left out again.
func workerBeforeReleases(t *testing.T, programs map[string]string) {
	m, api := newMixed(t, programs, now, "h01", "h02")
	m.replaced(api, "h01", before)
	m.replaced(api, "h02", now)
	for version := range 4 {
		m.declare(api, fmt.Sprintf("v%d", version+2), strconv.Itoa(version+2))
	}
	const why = "its agent cannot carry out releases; upgrade the agent"
	leftOut := func(release string) {
		t.Helper()
		was := read(t, m.path("h01", "version"))
		if run := m.run(api, v1.Start{Release: release}); run.Result != "completed" || note(run, "h01") != why {
			t.Errorf("the run ended as %s: %s: %+v", run.Result, run.Reason, run.Hosts)
		}
		m.has("h01", strings.TrimSpace(was))
		m.has("h02", strings.TrimPrefix(release, "v"))
		request := v1.Start{Release: release, Hosts: []string{"h01"}, OverrideWindow: true, Reason: "a test"}
		if _, err := api.Start(t.Context(), m.tenant, request); err == nil || !strings.Contains(err.Error(), "h01: "+why) {
			t.Errorf("a run of this host alone is answered %v", err)
		}
	}
	leftOut("v2")
	m.upgrades(api, v1.Start{Hosts: []string{"h01"}}, "latest")
	m.replaced(api, "h01", now)
	m.upgrades(api, v1.Start{Release: "v3"}, "3")
	m.has("h02", "3")
	m.replaced(api, "h01", before)
	leftOut("v4")
	m.upgrades(api, v1.Start{}, "latest")
	m.replaced(api, "h01", now)
	m.upgrades(api, v1.Start{Release: "v5"}, "5")
}

// workerGoesBack replaces the worker of a host by one that knows no releases: when a run with a release
// has begun, and when that has prepared the host. Each time the old worker gets no command of the run and
// installs nothing, the site tells why, and the next worker goes on.
func workerGoesBack(t *testing.T, programs map[string]string) {
	m, api := newMixed(t, programs, now, "h01", "h02")
	m.declare(api, "v2", "2")
	m.declare(api, "v3", "3")
	for _, host := range []string{"h01", "h02"} {
		m.replaced(api, host, now)
	}
	begin := func(release string) v1.Run {
		t.Helper()
		run, err := api.Start(t.Context(), m.tenant, v1.Start{Release: release, OverrideWindow: true, Reason: "a test"})
		if err != nil {
			t.Fatal(err)
		}
		return run
	}
	goesOn := func(run v1.Run, host, was, release string) {
		t.Helper()
		m.until("the site tells why it waits, or the host is upgraded", func() bool {
			return strings.TrimSpace(read(t, m.path(host, "version"))) != was || slices.ContainsFunc(m.hosts(api), func(h v1.Host) bool {
				return h.Hostname == host && slices.ContainsFunc(h.Warnings, func(w v1.Warning) bool {
					return w.Text == fmt.Sprintf("run %d has this host, whose agent cannot carry out releases; upgrade the agent", run.ID)
				})
			})
		})
		m.has(host, was)
		m.replaced(api, host, now)
		if run = m.finished(api, run.ID); run.Result != "completed" {
			t.Errorf("the run ended as %s: %s: %+v", run.Result, run.Reason, run.Hosts)
		}
		for _, host := range []string{"h01", "h02"} {
			m.has(host, strings.TrimPrefix(release, "v"))
		}
	}

	m.workers["h01"].kill() // So that the site does not know yet that it is gone.
	delete(m.workers, "h01")
	run := begin("v2")
	m.bin = m.programs[before]
	m.workers["h01"] = m.startWorker("h01")
	goesOn(run, "h01", "1", "v2")

	// One host after the other: the second waits while the first is held up in its upgrade.
	if err := os.WriteFile(m.path("hold"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	run = begin("v3")
	status := func(want string) (hosts []string) {
		now, err := api.Run(t.Context(), m.tenant, run.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range now.Hosts {
			if h.Status == want {
				hosts = append(hosts, h.Hostname)
			}
		}
		return hosts
	}
	m.until("the first host is upgraded", func() bool { return len(status("upgrading")) == 1 })
	second := status("prepared")
	if len(second) != 1 {
		t.Fatalf("prepared are %v", second)
	}
	m.replaced(api, second[0], before)
	if err := os.Remove(m.path("hold")); err != nil {
		t.Fatal(err)
	}
	m.until("the second host is commanded to upgrade", func() bool { return len(status("upgrading")) == 1 && status("upgrading")[0] == second[0] })
	time.Sleep(time.Second) // An old worker that gets the command carries it out at once.
	goesOn(run, second[0], "2", "v3")
}

// siteBeforeReleases has a worker of this version at a site that knows no releases: it is upgraded
// as ever. The next site goes on with the log of that one, and upgrades the host to a release.
func siteBeforeReleases(t *testing.T, programs map[string]string) {
	m, api := newMixed(t, programs, before, "h01")
	m.replaced(api, "h01", now)
	m.upgrades(api, v1.Start{}, "latest")
	m.site.kill()
	m.bin = m.programs[now]
	m.startSite()
	m.online(api, "h01", now)
	m.declare(api, "v2", "2")
	m.upgrades(api, v1.Start{Release: "v2"}, "2")
}
