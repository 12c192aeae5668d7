package compare_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/compare"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

func plan(system string, changes ...string) message.ChangeSet {
	p := message.ChangeSet{System: system}
	for i := 0; i < len(changes); i += 2 {
		p.Changes = append(p.Changes, message.Change{Name: changes[i], From: "0", To: changes[i+1]})
	}
	return p
}

func hosts(stage int, names string) (all []compare.Host) {
	for name := range strings.FieldsSeq(names) {
		all = append(all, compare.Host{Name: name, Stage: stage})
	}
	return all
}

// told is what people read of differing plans, and who is refused.
func told(p *compare.Plans, begun ...string) (lines []string) {
	has := map[string]bool{}
	for _, host := range begun {
		has[host] = true
	}
	all := p.Differing(has)
	lines = compare.Told(all).Texts()
	for _, r := range compare.Refused(all, has) {
		lines = append(lines, strings.Join(r.Hosts, " ")+": "+r.Why)
	}
	return lines
}

// TestFirstStageCounts checks which version counts: that of the first stage, however many hosts of the
// others plan another one, and of hosts of one stage that of most.
func TestFirstStageCounts(t *testing.T) {
	t.Parallel()
	p := compare.New()
	p.Add(plan("", "libssl3", "3.0.15"), hosts(0, "c1")...)
	p.Add(plan("", "libssl3", "3.0.16", "nginx", "1.2"), hosts(1, "h1 h2 h3 h4")...)
	p.Add(plan("", "nginx", "1.3"), hosts(1, "h5")...)
	want := []string{
		"libssl3: 3.0.15 on 1 host, 3.0.16 on 4: h1, h2, h3 and 1 more",
		"nginx: 1.2 on 4 hosts, 1.3 on 1: h5",
		"h1 h2 h3 h4: it would get libssl3 3.0.16 and other hosts 3.0.15, and packages.same of the release is true",
		"h5: it would get nginx 1.3 and other hosts 1.2, and packages.same of the release is true",
	}
	if got := told(p); !slices.Equal(got, want) {
		t.Errorf("it tells\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestBegunHostsCount checks that the version of hosts that have begun counts before that of any
// stage: it is installed already.
func TestBegunHostsCount(t *testing.T) {
	t.Parallel()
	p := compare.New()
	p.Add(plan("", "libssl3", "3.0.15"), hosts(1, "h1")...)
	p.Add(plan("", "libssl3", "3.0.16"), hosts(0, "c1 c2")...)
	want := []string{
		"libssl3: 3.0.15 on 1 host, 3.0.16 on 2: c1, c2",
		"c1 c2: it would get libssl3 3.0.16 and other hosts 3.0.15, and packages.same of the release is true",
	}
	if got := told(p, "h1"); !slices.Equal(got, want) {
		t.Errorf("it tells\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestSystemsApart checks that hosts are compared only with those of the same system, and that a
// package which is removed is not compared.
func TestSystemsApart(t *testing.T) {
	t.Parallel()
	p := compare.New()
	p.Add(plan("debian 12 amd64", "bash", "5.2"), hosts(0, "h1")...)
	p.Add(plan("debian 12 arm64", "bash", "5.2+b1"), hosts(0, "h2")...)
	p.Add(plan("debian 12 amd64", "bash", ""), hosts(0, "h3")...)
	if got := told(p); len(got) > 0 {
		t.Errorf("it tells %q", got)
	}
	p.Add(plan("debian 12 arm64", "bash", "5.3"), hosts(0, "h4")...)
	if got := told(p); len(got) != 2 || got[0] != "bash (debian 12 arm64): 5.2+b1 on 1 host, 5.3 on 1: h4" {
		t.Errorf("it tells %q", got)
	}
}

// TestFewAreTold checks that the packages that differ most are told, and how many more there are.
func TestFewAreTold(t *testing.T) {
	t.Parallel()
	p := compare.New()
	var first, second []string
	for n := range 500 {
		first, second = append(first, fmt.Sprintf("p%03d", n), "1"), append(second, fmt.Sprintf("p%03d", n), "2")
	}
	p.Add(plan("", first...), hosts(0, "h1")...)
	p.Add(plan("", second...), hosts(1, "h2")...)
	for n := range 20 {
		p.Add(plan("", "q", fmt.Sprint(n)), hosts(1, fmt.Sprintf("q%02d", n))...)
	}
	lines := compare.Told(p.Differing(nil)).Texts()
	if len(lines) != 6 || lines[0] != "q: 0 on 1 host, 1 on 1: q01, 10 on 1: q10, 11 on 1: q11, other versions on 16" || lines[5] != "and 496 more packages" {
		t.Errorf("it tells\n%s", strings.Join(lines, "\n"))
	}
}

// TestOthersGetTheSame checks with any plans: once the hosts are left out that are refused, no two
// hosts of a system plan different versions of a package, but for those that have begun; a host that
// has begun is not refused; a host that plans what all others plan is not refused; and the order in
// which plans come changes nothing.
func TestOthersGetTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		type planned struct {
			host compare.Host
			plan message.ChangeSet
		}
		var all []planned
		begun := map[string]bool{}
		for n := range rapid.IntRange(0, 8).Draw(rt, "hosts") {
			p := planned{host: compare.Host{Name: fmt.Sprintf("h%d", n), Stage: rapid.IntRange(0, 2).Draw(rt, "stage")}}
			p.plan.System = rapid.SampledFrom([]string{"", "", "debian"}).Draw(rt, "system")
			for _, name := range []string{"a", "b", "c"} {
				if to := rapid.SampledFrom([]string{"none", "", "1", "1", "2", "3"}).Draw(rt, "to"); to != "none" {
					p.plan.Changes = append(p.plan.Changes, message.Change{Name: name, From: "0", To: to})
				}
			}
			begun[p.host.Name] = rapid.IntRange(0, 9).Draw(rt, "begun") == 0
			all = append(all, p)
		}
		compared := func(all []planned) ([]compare.Package, []message.Refusal) {
			p := compare.New()
			for _, of := range all {
				p.Add(of.plan, of.host)
			}
			differing := p.Differing(begun)
			return differing, compare.Refused(differing, begun)
		}
		differing, refusals := compared(all)
		if again, refusedAgain := compared(rapid.Permutation(all).Draw(rt, "another order")); !reflect.DeepEqual(again, differing) || !reflect.DeepEqual(refusedAgain, refusals) {
			rt.Fatalf("in another order %+v and %+v, not %+v and %+v", again, refusedAgain, differing, refusals)
		}
		refused := map[string]bool{}
		for _, r := range refusals {
			for _, host := range r.Hosts {
				if refused[host] || begun[host] {
					rt.Fatalf("%s is refused twice, or has begun: %+v", host, refusals)
				}
				refused[host] = true
			}
		}
		versions := map[string]map[string]bool{}
		for _, of := range all {
			alike := true
			for _, c := range of.plan.Changes {
				key := of.plan.System + " " + c.Name
				if versions[key] == nil {
					versions[key] = map[string]bool{}
				}
				if c.To != "" && !refused[of.host.Name] && !begun[of.host.Name] {
					versions[key][c.To] = true
				}
				alike = alike && !slices.ContainsFunc(all, func(other planned) bool {
					return other.plan.System == of.plan.System && slices.ContainsFunc(other.plan.Changes, func(o message.Change) bool { return o.Name == c.Name && o.To != c.To && o.To != "" && c.To != "" })
				})
			}
			if alike && refused[of.host.Name] {
				rt.Fatalf("%s is refused, and no other host plans anything else: %+v", of.host.Name, refusals)
			}
		}
		for key, of := range versions {
			if len(of) > 1 {
				rt.Fatalf("the others would get %v of %s: %+v", slices.Sorted(maps.Keys(of)), key, refusals)
			}
		}
	})
}

// BenchmarkDiffering compares the plans of 10,000 hosts with 500 changes each; half of them are their
// own.
func BenchmarkDiffering(b *testing.B) {
	plans := make([]message.ChangeSet, 5001)
	for n := range plans {
		for i := range 500 {
			to := "1:2.36.1-9+deb12u10"
			if i == n%500 && n < 250 {
				to += "+local"
			}
			plans[n].Changes = append(plans[n].Changes, message.Change{Name: fmt.Sprintf("lib-of-a-package-%05d:amd64", i), From: fmt.Sprint(n), To: to})
		}
	}
	for b.Loop() {
		p := compare.New()
		for n, plan := range plans {
			of := []compare.Host{{Name: fmt.Sprintf("h%05d", n), Stage: 1}}
			if n == 5000 {
				for i := n + 1; i < 10_000; i++ {
					of = append(of, compare.Host{Name: fmt.Sprintf("h%05d", i), Stage: 1})
				}
			}
			p.Add(plan, of...)
		}
		if all := p.Differing(nil); len(all) != 250 {
			b.Fatalf("%d packages differ", len(all))
		}
	}
}

// TestInstalled checks what hosts have installed in common: exact versions of what all hosts with
// changes have changed, and apart from that what only some have, and what went to two versions.
func TestInstalled(t *testing.T) {
	t.Parallel()
	p := compare.New()
	p.Add(plan("debian 12 amd64", "bash", "5.2", "nginx", "1.2", "old", ""), hosts(0, "h1 h2")...)
	p.Add(plan("debian 12 amd64", "bash", "5.2"), hosts(1, "h3")...)
	p.Add(plan("debian 12 amd64", "old", ""), hosts(1, "h4")...)
	p.Add(plan("debian 12 amd64"), hosts(1, "h5")...)
	want := compare.Installed{Of: 3, Only: []string{"bash=5.2"}, Partly: []compare.Partly{{Name: "nginx", Hosts: 2}}}
	if got := p.Installed(); !reflect.DeepEqual(got, want) {
		t.Errorf("it is %+v, not %+v", got, want)
	}
	p.Add(plan("debian 13 amd64", "bash", "5.3"), hosts(1, "h6")...)
	if got := p.Installed(); len(got.Only) != 0 || len(got.Differing) != 1 || compare.Told(got.Differing).Texts()[0] != "bash: 5.2 on 3 hosts, 5.3 on 1: h6" {
		t.Errorf("it is %+v", got)
	}
}
