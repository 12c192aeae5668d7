package compare

import (
	"cmp"
	"maps"
	"slices"
)

// Installed is what the plans of hosts amount to as one list of exact versions.
type Installed struct {
	// Only are the packages that each host with changes has changed, as name=version.
	Only []string
	// Partly are the packages that only some of them have changed: a list of exact versions would
	// install them on hosts that do not have them. Of is how many hosts have changes.
	Partly []Partly
	Of     int
	// Differing are the packages that have gone to more than one version.
	Differing []Package
}

// Partly is a package that so many hosts have changed.
type Partly struct {
	Name  string
	Hosts int
}

// Installed returns what the hosts have in common. A package that was removed is not in it.
func (p *Plans) Installed() Installed {
	all := map[string][]*planned{}
	for _, of := range p.packages {
		all[of.name] = append(all[of.name], of)
	}
	found := Installed{Of: p.changing}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		whole := Package{Name: name}
		hosts := 0
		for _, of := range all[name] {
			for _, v := range p.inOrder(of, nil).Versions {
				hosts += len(v.Hosts)
				n := slices.IndexFunc(whole.Versions, func(w Version) bool { return w.Version == v.Version })
				if n < 0 {
					whole.Versions = append(whole.Versions, v)
					continue
				}
				whole.Versions[n].Hosts = slices.Sorted(slices.Values(slices.Concat(whole.Versions[n].Hosts, v.Hosts)))
			}
		}
		slices.SortFunc(whole.Versions, func(a, b Version) int {
			return cmp.Or(len(b.Hosts)-len(a.Hosts), cmp.Compare(a.Version, b.Version))
		})
		switch {
		case len(whole.Versions) > 1:
			found.Differing = append(found.Differing, whole)
		case hosts < p.changing:
			found.Partly = append(found.Partly, Partly{name, hosts})
		default:
			found.Only = append(found.Only, name+"="+whole.Versions[0].Version)
		}
	}
	return found
}
