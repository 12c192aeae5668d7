// Package compare finds the packages that would go to two versions on hosts of one run, from what each
// host plans.
//
// It decides which of the versions counts: that of the hosts that have begun, or else of the first stage
// that plans the package, because that is what is tried out before the rest gets it. In a stage the
// version of most hosts counts. Hosts are compared only with those that run the same system: another one
// has other versions of the same package. It reads no clock and no store.
package compare

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

const (
	// maxPackages bounds the packages that are told, maxVersions the versions of each, and maxNamed the
	// hosts that are named of one.
	maxPackages, maxVersions, maxNamed = 5, 4, 3
)

// Host is a host of a run, in the stage of an index.
type Host struct {
	Name  string
	Stage int
}

// Plans are what hosts of one run plan.
type Plans struct {
	hosts    []Host
	packages map[key]*planned
	// differing are the packages with more than one version.
	differing []*planned
	// changing counts the hosts that change anything.
	changing int
}

// key is a package of a system.
type key struct{ system, name string }

// planned is what hosts plan for a package.
type planned struct {
	key
	versions []version
}

// version is a version with the indices of the hosts that plan it.
type version struct {
	to    string
	hosts []int32
}

// New returns no plans.
func New() *Plans { return &Plans{packages: map[key]*planned{}} }

// Add adds the plan of some hosts, of which none was added before. A package that is removed has no
// version, and is not compared.
func (p *Plans) Add(plan message.ChangeSet, hosts ...Host) {
	first := len(p.hosts)
	p.hosts = append(p.hosts, hosts...)
	if slices.ContainsFunc(plan.Changes, func(c message.Change) bool { return c.To != "" }) {
		p.changing += len(hosts)
	}
	for _, c := range plan.Changes {
		if c.To == "" {
			continue
		}
		k := key{plan.System, c.Name}
		of := p.packages[k]
		if of == nil {
			of = &planned{key: k}
			p.packages[k] = of
		}
		if of.add(c.To, first, len(p.hosts)) && len(of.versions) == 2 {
			p.differing = append(p.differing, of)
		}
	}
}

// add notes that hosts from one index to another plan a version, and reports whether it is a new one.
func (p *planned) add(to string, from, end int) (isNew bool) {
	n := slices.IndexFunc(p.versions, func(v version) bool { return v.to == to })
	if isNew = n < 0; isNew {
		n = len(p.versions)
		p.versions = append(p.versions, version{to: to})
	}
	for i := from; i < end; i++ {
		p.versions[n].hosts = append(p.versions[n].hosts, int32(i))
	}
	return isNew
}

// Package is a package that would go to more than one version.
type Package struct {
	System, Name string
	// Versions are those that hosts plan: first the one that counts, then the one of most hosts.
	Versions []Version
}

// Version is a version with the hosts that plan it, by name.
type Version struct {
	Version string
	Hosts   []string
}

// Differing returns the packages that would go to more than one version: first those of which most
// hosts plan another than the one that counts. begun are the hosts with which the run has begun.
func (p *Plans) Differing(begun map[string]bool) []Package {
	all := make([]Package, 0, len(p.differing))
	for _, of := range p.differing {
		all = append(all, p.inOrder(of, begun))
	}
	slices.SortFunc(all, func(a, b Package) int {
		return cmp.Or(b.others()-a.others(), cmp.Compare(a.Name, b.Name), cmp.Compare(a.System, b.System))
	})
	return all
}

// inOrder returns what hosts plan for a package, with its versions in order.
func (p *Plans) inOrder(of *planned, begun map[string]bool) Package {
	type ranked struct {
		Version
		// rank is the first stage with a host that plans the version, -1 if one has begun; first
		// counts such hosts.
		rank, first int
	}
	versions := make([]ranked, 0, len(of.versions))
	for _, v := range of.versions {
		r := ranked{Version: Version{Version: v.to, Hosts: make([]string, 0, len(v.hosts))}}
		for n, i := range v.hosts {
			host := p.hosts[i]
			r.Hosts = append(r.Hosts, host.Name)
			rank := host.Stage
			if begun[host.Name] {
				rank = -1
			}
			if n == 0 || rank < r.rank {
				r.rank, r.first = rank, 0
			}
			if rank == r.rank {
				r.first++
			}
		}
		slices.Sort(r.Hosts)
		versions = append(versions, r)
	}
	byCount := func(a, b ranked) int {
		return cmp.Or(len(b.Hosts)-len(a.Hosts), cmp.Compare(a.Version.Version, b.Version.Version))
	}
	slices.SortFunc(versions, func(a, b ranked) int { return cmp.Or(a.rank-b.rank, b.first-a.first, byCount(a, b)) })
	slices.SortFunc(versions[1:], byCount)
	shown := Package{System: of.system, Name: of.name}
	for _, v := range versions {
		shown.Versions = append(shown.Versions, v.Version)
	}
	return shown
}

// others counts the hosts that plan another version than the one that counts.
func (p Package) others() (n int) {
	for _, v := range p.Versions[1:] {
		n += len(v.Hosts)
	}
	return n
}

// Told returns what people are told of packages that differ.
func Told(all []Package) (told message.Differing) {
	for _, p := range all[:min(len(all), maxPackages)] {
		told.Packages = append(told.Packages, p.told())
	}
	told.More = len(all) - len(told.Packages)
	return told
}

func (p Package) told() message.DifferingPackage {
	told := message.DifferingPackage{Name: p.Name, System: p.System, Others: p.others()}
	for n, v := range p.Versions[:min(len(p.Versions), maxVersions)] {
		shown := message.PlannedVersion{Version: v.Version, Count: len(v.Hosts)}
		if n > 0 {
			shown.Hosts = v.Hosts[:min(len(v.Hosts), maxNamed)]
			told.Others -= len(v.Hosts)
		}
		told.Versions = append(told.Versions, shown)
	}
	return told
}

// Refused returns which hosts must not be upgraded if all are to get the same: those that plan another
// version than the one that counts, of the packages in their order. A host that has begun is not among
// them.
func Refused(all []Package, begun map[string]bool) []message.Refusal {
	var refused []message.Refusal
	named := map[string]bool{}
	for _, p := range all {
		for _, v := range p.Versions[1:] {
			hosts := slices.DeleteFunc(slices.Clone(v.Hosts), func(host string) bool { return named[host] || begun[host] })
			if len(hosts) == 0 {
				continue
			}
			for _, host := range hosts {
				named[host] = true
			}
			refused = append(refused, message.Refusal{Hosts: hosts, Why: fmt.Sprintf(
				"it would get %s %s and other hosts %s, and packages.same of the release is true", p.Name, v.Version, p.Versions[0].Version)})
		}
	}
	return refused
}
