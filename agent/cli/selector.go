package cli

import (
	"context"
	"errors"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// selectorFlags choose hosts in all environments, in each command that acts on several or shows them.
type selectorFlags struct {
	matchFlags
	Environments []string `name:"environment" help:"Only this environment (repeatable: one of them); default has the hosts that are in no other." placeholder:"NAME" complete:"environments"`
}

// environmentFlag names an environment, in each command that is about one run.
type environmentFlag struct {
	Environment string `help:"The environment, if there are several; default has the hosts that are in no other." placeholder:"NAME" complete:"environments"`
}

// environments are what the flag chooses; nil is any.
func (f environmentFlag) environments() []string {
	if f.Environment == "" {
		return nil
	}
	return []string{f.Environment}
}

// matchFlags choose hosts by what they are.
type matchFlags struct {
	Hosts  []string `name:"host" help:"Only this host (repeatable: one of them)." placeholder:"NAME" complete:"hosts"`
	Labels []string `name:"label" help:"Only hosts with this label (repeatable: all of them); KEY=VALUE,VALUE is one of several values." placeholder:"KEY=VALUE" sep:"none" complete:"labels"`
	Roles  []string `name:"role" help:"Only hosts with this role (repeatable: one of them)." placeholder:"ROLE" sep:"none" complete:"roles"`
}

// selector returns what the flags choose.
func (f selectorFlags) selector() (v1.Selector, error) {
	selector, wrong := v1.ParseSelector(f.Hosts, f.Labels, f.Roles, f.Environments)
	return selector, wrongFlags(wrong)
}

// selector returns what the flags choose.
func (f matchFlags) selector() (v1.Selector, error) {
	return selectorFlags{matchFlags: f}.selector()
}

// isGiven reports whether any of the flags is.
func (f matchFlags) isGiven() bool { return len(f.Hosts)+len(f.Labels)+len(f.Roles) > 0 }

// chosenHosts are the hosts of a run that a selector chooses; without names, all.
type chosenHosts struct {
	selector v1.Selector
	names    map[string]bool
}

// hostsOf asks the site which hosts the flags choose. Names need no answer, and may be of hosts
// that the site no longer knows.
func (f matchFlags) hostsOf(ctx context.Context, api *client.Client, tenant string) (chosenHosts, error) {
	selector, err := f.selector()
	if err != nil || selector.IsZero() {
		return chosenHosts{}, err
	}
	names := selector.Hosts
	if len(selector.Labels)+len(selector.Roles) > 0 {
		var why []v1.IntentWarning
		if names, why, err = api.HostNames(ctx, tenant, selector); err == nil && len(names) == 0 {
			err = errors.New(selector.MatchesNone(why))
		}
	}
	chosen := chosenHosts{selector, map[string]bool{}}
	for _, name := range names {
		chosen.names[name] = true
	}
	return chosen, err
}

// has reports whether a host is chosen.
func (c chosenHosts) has(name string) bool { return c.names == nil || c.names[name] }

// only returns a run with only the hosts that are chosen.
func (c chosenHosts) only(r v1.Run) v1.Run {
	if c.names == nil || r.Hosts == nil {
		return r
	}
	hosts := []v1.RunHost{}
	for _, h := range r.Hosts {
		if c.has(h.Hostname) {
			hosts = append(hosts, h)
		}
	}
	r.Hosts = hosts
	return r
}

// fact tells how the hosts fare in a run that are chosen.
func (c chosenHosts) fact(f *facts, r v1.Run) {
	if c.names == nil {
		return
	}
	line := "no host of the run"
	if counts, members := countHosts(c.only(r)); members > 0 {
		line = countLine(r, counts, members)
	}
	f.add("chosen", c.selector.String()+": "+line)
}
