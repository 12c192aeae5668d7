package realhost_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// rig is one Debian host, upgraded by the strategy apt, with its site and repository.
type rig struct {
	*realhost.Site
	t          *testing.T
	repository *realhost.Repository
	// past has what the repository had on some days.
	past *realhost.Past
	// c is its host, or what its host was made of.
	c       *realhost.Container
	machine realhost.Machine
}

// settings are those of the worker beside what the site needs.
var settings = map[string]string{"strategy": "apt", "apt-versions": `["appliance*", "osupgrade-agent"]`}

// newRig returns a rig whose host is online and has the packages of the repository.
func newRig(t *testing.T, o realhost.ContainerOptions, debs ...realhost.Deb) *rig {
	t.Helper()
	r := &rig{Site: realhost.NewSite(t), t: t, repository: realhost.NewRepository(t), past: realhost.NewPast(t), c: realhost.NewContainer(t, o)}
	r.repository.Publish(debs...)
	realhost.AddRepository(r.c, "appliance", r.repository)
	r.addHost(r.c)
	// So that the worker starts after the packages are there.
	r.c.WriteFile("/etc/systemd/system/osupgrade-worker.service.d/test.conf", "[Unit]\nConditionPathExists=/var/lib/installed\n")
	r.c.Start()
	r.c.Must("apt-get -q update && apt-get -q -y install " + names(debs) + " && touch /var/lib/installed && systemctl start osupgrade-worker")
	r.Online("h01")
	return r
}

// addHost adds the worker of a host, which finds at the mirror with dates what the repository had.
func (r *rig) addHost(m realhost.Machine) {
	r.t.Helper()
	dated := maps.Clone(settings)
	dated["apt-snapshot"] = "http://" + m.Reach(r.past.Address()) + "/{date}/appliance/"
	r.AddHost(m, "h01", dated)
	r.machine = m
}

// names are the names of packages, as arguments.
func names(debs []realhost.Deb) string {
	var all []string
	for _, d := range debs {
		all = append(all, d.Name)
	}
	return strings.Join(all, " ")
}

// has fails the test unless the packages, "NAME VERSION", are installed and configured,
// and dpkg finds nothing wrong.
func (r *rig) has(packages ...string) {
	r.t.Helper()
	for _, p := range packages {
		name, version, _ := strings.Cut(p, " ")
		if got := r.machine.Must("dpkg-query -W -f '${db:Status-Abbrev}${Version}' " + name); got != "ii "+version && got != "hi "+version {
			r.t.Errorf("%s is %q, want version %s", name, got, version)
		}
	}
	if audit := r.machine.Must("dpkg --audit"); audit != "" {
		r.t.Errorf("dpkg --audit: %s", audit)
	}
}

// Ended waits for the end of a run of the host.
func (r *rig) Ended(run v1.Run) v1.Run {
	r.t.Helper()
	return r.EndedOn(r.machine, run)
}

// Upgrade starts a run of the host and waits for its end.
func (r *rig) Upgrade() v1.Run {
	r.t.Helper()
	return r.Ended(r.Begin())
}

// upgraded runs an upgrade that completes.
func (r *rig) upgraded() v1.Run {
	r.t.Helper()
	return r.completed(r.Upgrade())
}

func (r *rig) completed(run v1.Run) v1.Run {
	r.t.Helper()
	if run.Result != "completed" || run.Hosts[0].Status != "upgraded" {
		r.t.Fatalf("run %d ended as %s: %s: %+v", run.ID, run.Result, run.Reason, run.Hosts)
	}
	return run
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// number is a number as people write it.
func number[N int | uint64](n N) string { return fmt.Sprint(n) }

// squeeze makes one space of the spaces between the columns of a table.
func squeeze(table string) string {
	var lines []string
	for line := range strings.Lines(table) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}

// tells waits until the operator of a run that goes on is told of progress with these
// words.
func (r *rig) tells(run v1.Run, words ...string) {
	r.t.Helper()
	told := ""
	realhost.Until(r.t, "the operator is told "+strings.Join(words, ", "), patience, func() bool {
		now, err := r.Client.Run(r.t.Context(), realhost.Tenant, run.ID)
		if err != nil || now.Phase == "finished" {
			r.t.Fatalf("the run did not wait: %v, %+v; the operator was told %q", err, now.Hosts, told)
		}
		told = now.Hosts[0].Progress
		return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(told, word) })
	})
	r.t.Logf("the operator is told: %s", told)
}

// fails runs an upgrade that fails with a class, and what the operator is told has these
// words.
func (r *rig) fails(class string, words ...string) {
	r.t.Helper()
	run := r.Upgrade()
	if run.Result == "completed" || run.Hosts[0].Status != "failed" {
		r.t.Fatalf("run %d ended as %s: %+v", run.ID, run.Result, run.Hosts)
	}
	for _, word := range words {
		if !strings.Contains(run.Hosts[0].Error, word) {
			r.t.Errorf("the operator is told %q, without %q", run.Hosts[0].Error, word)
		}
	}
	if strings.Contains(run.Hosts[0].Error, "output in /") {
		r.t.Errorf("the operator is told a file of the host: %q", run.Hosts[0].Error)
	}
	if run.Hosts[0].Class != class {
		r.t.Errorf("the class is %q, want %q", run.Hosts[0].Class, class)
	}
	r.t.Logf("the operator is told: %s: %s", class, run.Hosts[0].Error)
}
