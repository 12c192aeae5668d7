package realhost_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

// ofPackages turns the releases of the example, which are data for simulated hosts, into
// packages of a Debian machine.
var ofPackages = [][2]string{
	{`"osupgrade/osupgrade"`, `"` + acctest.Source + `"`},
	{`"os-upgrade-simulated"`, `"` + realhost.Application + `"`},
	{`installs = { kernel = each.value }`, `installs = { appliance = each.value }`},
	{`data     = jsonencode({ kernel = each.value })`, `packages = { as_of = { october = "2026-10-01T06:00:00Z", november = "2026-11-01T06:00:00Z" }[each.key] }`},
	{`h.versions["kernel"]`, `h.versions["appliance"]`},
}

// promoted is a site with the hosts h01 and h02, whose mirror with dates has the releases of
// October and November, and the workspace of the example.
type promoted struct {
	*realhost.Site
	t         *testing.T
	hosts     map[string]*realhost.Container
	terraform *acctest.Workspace
	// fetched returns what was fetched of what the repository has now.
	fetched func() []string
}

// together are packages of one version: the appliance, its kernel, and one more.
func together(version, other string, fields ...string) []realhost.Deb {
	return []realhost.Deb{appliance(version), kernel(version), {Name: other, Version: version, Fields: fields}}
}

func newPromoted(t *testing.T) *promoted {
	t.Helper()
	p := &promoted{Site: realhost.NewSite(t), t: t, hosts: map[string]*realhost.Container{}}
	repository, past := realhost.NewRepository(t), realhost.NewPast(t)
	has := together("6.1.9", "appliance-old")
	repository.Publish(has...)
	past.Keep("2026-10-01", "appliance", plain, together("6.1.10", "appliance-old")...)
	november := together("6.1.11", "appliance-new", "Conflicts: appliance-old")
	november[0].Fields = []string{"Depends: appliance-new"}
	past.Keep("2026-11-01", "appliance", plain, november...)
	for _, name := range []string{"h01", "h02"} {
		c := realhost.NewContainer(t, realhost.ContainerOptions{Hostname: name})
		realhost.AddRepository(c, "appliance", repository)
		c.Start()
		c.Must("apt-get -q update && apt-get -q -y install " + names(has))
		c.Cut()
		p.AddHost(c, name, map[string]string{
			"strategy": "apt", "apt-versions": settings["apt-versions"], "apt-removals": "allow",
			"apt-snapshot": "http://" + c.Reach(past.Address()) + "/{date}/appliance/",
		})
		c.Start()
		p.hosts[name] = c
	}
	repository.Publish(together("9.0", "appliance-old")...)
	asked := len(repository.Asked())
	p.fetched = func() []string {
		return slices.DeleteFunc(repository.Asked()[asked:], func(path string) bool { return !strings.HasPrefix(path, "pool/") })
	}
	p.Online("h01", "h02")
	stages := v1.Rollout{Stages: []v1.Stage{{Name: "canary", Match: &v1.Match{Hosts: []string{"h01"}}}, {Name: "rest"}}}
	if _, err := p.Client.PutRollout(t.Context(), realhost.Tenant, stages, client.Precondition{}); err != nil {
		t.Fatal(err)
	}
	example := read(t, "../../../examples/release/main.tf")
	for _, pair := range ofPackages {
		if strings.Count(example, pair[0]) != 1 {
			t.Fatalf("the example does not have %q once", pair[0])
		}
		example = strings.Replace(example, pair[0], pair[1], 1)
	}
	server := acctest.Server{Endpoint: p.Endpoint, Token: p.Token, Tenant: realhost.Tenant}
	p.terraform = acctest.NewWorkspace(t, server.Env()...)
	p.terraform.Write(t, "main.tf", example)
	return p
}

// apply has Terraform select a release, and returns the run and all packages that both hosts
// have then.
func (p *promoted) apply(release, version string) (run v1.Run, packages string) {
	p.t.Helper()
	boots := map[string]string{}
	for name, c := range p.hosts {
		boots[name] = c.BootID()
	}
	variable := "release=" + release
	p.terraform.Run(p.t, 0, "apply", "-auto-approve", "-no-color", "-var", variable)
	p.terraform.Run(p.t, 0, "plan", "-detailed-exitcode", "-no-color", "-var", variable)
	runs, err := p.Client.Runs(p.t.Context(), realhost.Tenant, v1.RunFilter{})
	if err != nil || len(runs) == 0 {
		p.t.Fatal(runs, err)
	}
	run = p.Ended(runs[0])
	if run.Result != "completed" {
		p.t.Fatalf("the run to %s ended as %s: %s: %+v", release, run.Result, run.Reason, run.Hosts)
	}
	for name, c := range p.hosts {
		if c.BootID() == boots[name] {
			p.t.Errorf("%s: %s did not boot", release, name)
		}
		if files := c.Must("cat /usr/share/appliance/0 /boot/appliance-kernel"); files != version+" 0\n"+version+"\n" {
			p.t.Errorf("%s: %s has the files %q", release, name, files)
		}
		has := c.Must(`dpkg --audit; dpkg-query -W -f '${binary:Package} ${Version} ${db:Status-Abbrev}\n'; apt-mark showmanual`)
		if packages != "" && has != packages {
			p.t.Errorf("%s: the hosts have\n%s\nand\n%s", release, packages, has)
		}
		packages = has
	}
	return run, packages
}

// appliances are the packages of the test among all packages of a host.
func appliances(packages string) (all []string) {
	for line := range strings.Lines(packages) {
		if fields := strings.Fields(line); len(fields) == 3 && strings.HasPrefix(line, "appliance") {
			all = append(all, strings.Join(fields, " "))
		}
	}
	return all
}

// TestRealPromotion applies the example of releases to two Debian machines: with
// -var release=october they install what the mirror had on a day of October, november moves on,
// and october rolls that back, in the reverse order of stages. Then each has exactly the packages
// that it had before november, though the repository has gone on.
func TestRealPromotion(t *testing.T) {
	realhost.Need(t, realhost.Quick)
	t.Parallel()
	p := newPromoted(t)
	_, october := p.apply("october", "6.1.10")
	forward, november := p.apply("november", "6.1.11")
	back, again := p.apply("october", "6.1.10")

	for _, one := range []struct {
		packages string
		want     []string
	}{
		{october, []string{"appliance 6.1.10 ii", "appliance-kernel 6.1.10 ii", "appliance-old 6.1.10 ii"}},
		{november, []string{"appliance 6.1.11 ii", "appliance-kernel 6.1.11 ii", "appliance-new 6.1.11 ii"}},
	} {
		if got := appliances(one.packages); !slices.Equal(got, one.want) {
			t.Errorf("the hosts have %v, want %v", got, one.want)
		}
	}
	if again != october {
		t.Errorf("before november the hosts had\n%s\nand after the way back\n%s", october, again)
	}
	if fetched := p.fetched(); len(fetched) > 0 {
		t.Errorf("the hosts fetched what the repository has now: %v", fetched)
	}
	if back.RollbackOf != forward.ID || forward.RollbackOf != 0 {
		t.Errorf("run %d rolls back %d, and run %d %d", back.ID, back.RollbackOf, forward.ID, forward.RollbackOf)
	}
	if order, reverse := ended(forward), ended(back); !slices.Equal(order, []string{"h01", "h02"}) || !slices.Equal(reverse, []string{"h02", "h01"}) {
		t.Errorf("november came to %v, and was rolled back on %v", order, reverse)
	}
}

// ended are the hosts of a run in the order in which they were done.
func ended(run v1.Run) (hosts []string) {
	slices.SortFunc(run.Hosts, func(a, b v1.RunHost) int { return a.Since.Compare(*b.Since) })
	for _, h := range run.Hosts {
		hosts = append(hosts, h.Hostname)
	}
	return hosts
}
