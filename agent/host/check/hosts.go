package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// mostNamed is how many hosts an outcome names of each kind.
const mostNamed = 5

// present tries a hosts check.
func (r *Runner) present(ctx context.Context, t message.Task, c rollout.Check) error {
	hosts, err := r.Hosts(ctx, t.Environment)
	if err != nil {
		return err
	}
	return judgeHosts(c, hosts)
}

// judgeHosts returns what is wrong with the hosts of a check, which are those expected or else all
// of the environment; nil when all of them are present and alike.
func judgeHosts(c rollout.Check, known []message.Present) error {
	byName := map[string]message.Present{}
	for _, h := range known {
		byName[h.Name] = h
	}
	of := c.Expected
	if len(of) == 0 {
		of = slices.Sorted(maps.Keys(byName))
	}
	if len(of) == 0 {
		return errors.New("no host is known")
	}
	var absent, silent []string
	for _, name := range of {
		if h, is := byName[name]; !is {
			absent = append(absent, name)
		} else if !h.Online {
			silent = append(silent, name)
		}
	}
	var wrong []string
	if len(absent) > 0 {
		wrong = append(wrong, "not in the environment: "+text.List(absent, mostNamed))
	}
	if len(silent) > 0 {
		wrong = append(wrong, "silent: "+text.List(silent, mostNamed))
	}
	if c.SameVersion != "" {
		if differs := differing(c.SameVersion, of, byName); differs != "" {
			wrong = append(wrong, differs)
		}
	}
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "; "))
	}
	return nil
}

// differing says which versions of a package hosts have, the one of most hosts first; empty when
// they all have the same.
func differing(name string, of []string, known map[string]message.Present) string {
	hosts := map[string][]string{}
	for _, host := range of {
		if h, is := known[host]; is {
			hosts[h.Versions[name]] = append(hosts[h.Versions[name]], host)
		}
	}
	if _, unknown := hosts[""]; len(hosts) < 2 && !unknown {
		return ""
	}
	versions := slices.SortedFunc(maps.Keys(hosts), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(hosts[b]), len(hosts[a])), strings.Compare(a, b))
	})
	var parts []string
	for _, version := range versions[:min(len(versions), mostNamed)] {
		parts = append(parts, fmt.Sprintf("%s on %s", cmp.Or(version, "no version"), text.List(hosts[version], mostNamed)))
	}
	return fmt.Sprintf("%s is %s", name, strings.Join(parts, ", "))
}
