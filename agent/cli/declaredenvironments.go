package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/intent"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/plan"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// environments are those that a text declares, next to those of the site.
type environments struct {
	// declared are those of the text, before those of the site, and after what there is once the
	// text is written.
	declared, before, after map[string]v1.Environment
}

// environmentsWith reads the environments of the site if a text declares some.
func (d *siteIntent) environmentsWith(ctx context.Context, want intent.Intent) (environments, error) {
	e := environments{declared: want.Environments, before: map[string]v1.Environment{}}
	if len(want.Environments) == 0 {
		return e, nil
	}
	before, err := d.environmentsOfSite(ctx)
	e.before, e.after = before, environmentsAfter(before, want)
	return e, err
}

// compare returns what a text does to what the site has. Environments that the text does not name count
// in the order in which those are written that come after each other.
func (d *siteIntent) compare(ctx context.Context, want intent.Intent) ([]intent.ObjectChange, error) {
	has := d.has
	if ordered := slices.ContainsFunc(slices.Collect(maps.Values(want.Environments)), func(e v1.Environment) bool { return e.After != nil }); ordered {
		others, err := d.environmentsOfSite(ctx)
		if err != nil {
			return nil, err
		}
		maps.DeleteFunc(others, func(name string, _ v1.Environment) bool {
			_, named := want.Environments[name]
			return named
		})
		maps.Copy(others, has.Environments)
		has.Environments = others
	}
	return intent.Compare(has, want), nil
}

// environmentsOfSite reads the environments of the site, by name.
func (d *siteIntent) environmentsOfSite(ctx context.Context) (map[string]v1.Environment, error) {
	all := map[string]v1.Environment{}
	stored, err := d.api.StoredEnvironments(ctx, d.tenant)
	if client.Missing(err) {
		return all, nil
	}
	for name, one := range stored {
		all[name] = one.Value
	}
	return all, err
}

// environmentsAfter returns the environments that there are once a text is written.
func environmentsAfter(before map[string]v1.Environment, want intent.Intent) map[string]v1.Environment {
	after := maps.Clone(before)
	for key := range want.Deletions {
		if key.Kind == intent.Environment {
			delete(after, key.Name)
		}
	}
	maps.Copy(after, want.Environments)
	return after
}

// cycles refuses declared environments that would come after themselves. The site, which sees one
// after the other, would find it when some are written.
func (e environments) cycles() (refused []error) {
	for _, name := range slices.Sorted(maps.Keys(e.declared)) {
		if way := v1.Cycle(e.after, name); way != nil {
			refused = append(refused, fmt.Errorf("environment %s: after.environments: %q makes a cycle: %s; remove one of them",
				name, strings.Join(e.declared[name].After.Environments, ", "), strings.Join(way, " comes after ")))
		}
	}
	return refused
}

// checked returns what the site can check of an environment before those that come with it are
// written: without its order where that makes a cycle with what they are now.
func (e environments) checked(want intent.Intent, key intent.Key) intent.Intent {
	one, is := e.declared[key.Name]
	if key.Kind != intent.Environment || !is {
		return want
	}
	now := maps.Clone(e.before)
	if now[key.Name] = one; v1.Cycle(now, key.Name) != nil {
		want.Environments = maps.Clone(want.Environments)
		one.After = nil
		want.Environments[key.Name] = one
	}
	return want
}

// overlaps warns of the hosts that several environments of a text match, and that the site cannot tell
// of before they are written.
func (e environments) overlaps(ctx context.Context, d *siteIntent) (found []v1.IntentWarning) {
	if len(e.declared) < 2 {
		return nil
	}
	hosts, err := d.api.Hosts(ctx, d.tenant, "")
	if err != nil { // The token may not read hosts: the writes are warned of.
		return nil
	}
	before, after := plan.NewMembership(e.before), plan.NewMembership(e.after)
	shared := map[string][]string{}
	for _, h := range hosts {
		one := plan.Host{Name: h.Hostname, Application: h.Application, Role: h.Role, Labels: h.Labels}
		var was *plan.Where
		if h.Assigned {
			was = &plan.Where{Assigned: h.Environment}
		}
		names, now := after.Of(one, was).Matching, before.Of(one, nil)
		known := append(now.Matching, now.Environment)
		if len(names) > 1 && !slices.ContainsFunc(names, func(name string) bool { return slices.Contains(known, name) }) {
			of := strings.Join(names, ",")
			shared[of] = append(shared[of], h.Hostname)
		}
	}
	for _, of := range slices.Sorted(maps.Keys(shared)) {
		names, hosts := strings.Split(of, ","), shared[of]
		slices.Sort(hosts)
		found = append(found, v1.IntentWarning{
			Object: v1.EnvironmentObject(names[0]), Field: "match",
			Text: fmt.Sprintf("environments %s match the same %s (%s), and those in default go to the one that is written first; change the matches so that each host fits one",
				text.List(names, mostNames), text.Count(len(hosts), "host", "hosts"), text.List(hosts, mostNames)),
		})
	}
	return found
}
