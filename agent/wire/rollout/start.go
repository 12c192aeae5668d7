package rollout

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
)

// StartCheck is a check that is asked before a run prepares any host.
type StartCheck struct {
	Check
	// Match selects the hosts of the run on which it is asked; nil asks it once, at the site.
	Match *Match `json:"match,omitempty"`
}

func (c StartCheck) inspect(i *inspector, field string) {
	c.Check.inspect(i, field)
	if c.Match != nil {
		c.Match.inspect(i, field+".match")
	}
}

// inspectPlace refuses a check on hosts that can be asked at the site only.
func (c StartCheck) inspectPlace(i *inspector, field string) {
	if kind, known := kindOf(CheckKinds, c.Type); known && kind.AtSite && c.Match != nil {
		i.add(field+".match", "", fmt.Sprintf("a check of type %s is asked at the site; leave match out", c.Type))
	}
}

// StartGroup are hosts that are asked the same checks before a run prepares any host.
type StartGroup struct {
	// Hosts are members of the run; none means that the checks are asked once, at the site.
	Hosts []string `json:"hosts,omitempty"`
	// Checks are the places of the checks in Checks.Start, in their order.
	Checks []int `json:"checks"`
}

// maxStart bounds the checks of a list, as its tag does.
const maxStart = 20

// GroupStart divides hosts into groups by the checks that they are asked, those at the site first.
// asks reports whether a host is asked the check with a place in the list.
func (r *Resolved) GroupStart(hosts []string, asks func(host, check int) bool) {
	var atSite []int
	for n, c := range r.Checks.Start {
		if c.Match == nil {
			atSite = append(atSite, n)
		}
	}
	if len(atSite) > 0 {
		r.Start = append(r.Start, StartGroup{Checks: atSite})
	}
	groups := map[string]int{}
	for h, name := range hosts {
		var key string
		var checks []int
		for n, c := range r.Checks.Start {
			if c.Match != nil && asks(h, n) {
				key, checks = key+" "+strconv.Itoa(n), append(checks, n)
			}
		}
		if len(checks) == 0 {
			continue
		}
		at, known := groups[key]
		if !known {
			at = len(r.Start)
			groups[key] = at
			r.Start = append(r.Start, StartGroup{Checks: checks})
		}
		r.Start[at].Hosts = append(r.Start[at].Hosts, name)
	}
	for n := range r.Checks.Start { // The hosts are named from here on.
		r.Checks.Start[n].Match = nil
	}
}

// checkStart returns an error for groups that cannot be asked.
func (r *Resolved) checkStart() error {
	seen, site := map[string]bool{}, false
	for n, g := range r.Start {
		if len(g.Checks) == 0 || len(g.Checks) > maxStart || !slices.IsSorted(g.Checks) || g.Checks[0] < 0 || g.Checks[len(g.Checks)-1] >= len(r.Checks.Start) {
			return fmt.Errorf("start[%d].checks: %v are not places in a list of %d", n, g.Checks, len(r.Checks.Start))
		}
		if len(g.Hosts) == 0 && site {
			return fmt.Errorf("start[%d]: it is the second one at the site", n)
		}
		site = site || len(g.Hosts) == 0
		for _, host := range g.Hosts {
			if !names.ValidHost(host) || seen[host] {
				return fmt.Errorf("start[%d].hosts: %q is not a host name, or named twice", n, host)
			}
			seen[host] = true
		}
	}
	return nil
}

// StartPlace is the site, which has no name, or a host, and what it is asked before a run prepares any
// host.
type StartPlace struct {
	Host   string
	Checks []Check
	// At are the places of the checks in Checks.Start. The places of a group share both lists.
	At []int
}

// StartPlaces returns the site, if it is asked something, and the hosts that are.
func (r *Resolved) StartPlaces() (places []StartPlace) {
	for _, g := range r.Start {
		p := StartPlace{Checks: make([]Check, len(g.Checks)), At: g.Checks}
		for i, n := range g.Checks {
			p.Checks[i] = r.Checks.Start[n].Check
		}
		if len(g.Hosts) == 0 {
			places = append(places, p)
		}
		for _, p.Host = range g.Hosts {
			places = append(places, p)
		}
	}
	return places
}
