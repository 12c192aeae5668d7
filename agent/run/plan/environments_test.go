package plan

import (
	"fmt"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// shop is an environment of the hosts with one value of the label shop.
func shop(city string) v1.Environment {
	return v1.Environment{Match: v1.Match{Labels: map[string]string{"shop": city}}}
}

// TestWarningsOfEnvironments checks what a write of the environment basel is warned of.
func TestWarningsOfEnvironments(t *testing.T) {
	t.Parallel()
	host := func(name, city, role string) Host {
		return Host{Name: name, Application: "app", Role: role, Labels: map[string]string{"shop": city}}
	}
	fleet := []Host{host("b1", "basel", "till"), host("b2", "basel", "till"), host("l1", "lugano", "edge")}
	inForce := map[string]v1.Environment{"lugano": shop("lugano"), "tills": {Match: v1.Match{Roles: []string{"till"}}}, "one": {Match: v1.Match{Hosts: []string{"b2"}}}}
	staged := func(matches ...v1.Match) v1.Environment {
		e := shop("lugano")
		e.Rollout = &v1.Rollout{}
		for i := range matches {
			e.Rollout.Stages = append(e.Rollout.Stages, v1.Stage{Name: fmt.Sprintf("s%d", i), Match: &matches[i]})
		}
		return e
	}
	named := func(calendars ...string) v1.Environment {
		e := shop("lugano")
		e.Calendars = calendars
		return e
	}
	after := func(environments ...string) v1.Environment {
		e := shop("lugano")
		e.After = &v1.After{Environments: environments}
		return e
	}
	for what, row := range map[string]struct {
		written v1.Environment
		inForce map[string]v1.Environment
		where   map[string]Where
		want    string
	}{
		"hosts of its own":                   {shop("basel"), nil, nil, "[]"},
		"no host":                            {shop("bern"), nil, nil, `[environments.basel.match.labels.shop: no known host has "bern" as label shop; hosts have basel, lugano]`},
		"no host fits all of it":             {v1.Environment{Match: v1.Match{Roles: []string{"edge"}, Labels: map[string]string{"shop": "basel"}}}, nil, nil, "[environments.basel.match: no known host matches all of it]"},
		"one name is wrong":                  {v1.Environment{Match: v1.Match{Hosts: []string{"b1", "b9"}}}, nil, nil, `[environments.basel.match.hosts[1]: no known host is named "b9"]`},
		"two match a host, which is new":     {shop("basel"), inForce, nil, "[environments.basel.match: tills matches 1 host, too (b1), so no run upgrades it; change one of the matches, or type osupgrade-agent move HOST --environment NAME]"},
		"two match a host, which stays":      {shop("basel"), inForce, map[string]Where{"b1": {Environment: "tills"}}, "[environments.basel.match: tills matches 1 host, too (b1), so it stays in environment tills; change one of the matches, or type osupgrade-agent move HOST --environment NAME]"},
		"two match a host of default":        {shop("basel"), inForce, map[string]Where{"b1": {}}, "[environments.basel.match: tills matches 1 host, too (b1), so it stays in environment default; change one of the matches, or type osupgrade-agent move HOST --environment NAME]"},
		"two match a host that was moved":    {shop("basel"), inForce, map[string]Where{"b1": {Environment: "tills", Assigned: "tills"}}, "[environments.basel.match: no host is left for it: each known host that it matches is named by another environment or assigned to one (b1, b2)]"},
		"two match hosts":                    {v1.Environment{Match: v1.Match{Roles: []string{"till", "edge"}}}, map[string]v1.Environment{"lugano": shop("lugano"), "tills": {Match: v1.Match{Roles: []string{"till"}}}}, nil, "[environments.basel.match: lugano matches 1 host, too (l1), so no run upgrades it; change one of the matches, or type osupgrade-agent move HOST --environment NAME environments.basel.match: tills matches 2 hosts, too (b1, b2), so no run upgrades them; change one of the matches, or type osupgrade-agent move HOST --environment NAME]"},
		"another names its only host":        {v1.Environment{Match: v1.Match{Roles: []string{"till"}, Labels: map[string]string{"shop": "basel"}}}, map[string]v1.Environment{"one": {Match: v1.Match{Hosts: []string{"b1", "b2"}}}}, nil, "[environments.basel.match: no host is left for it: each known host that it matches is named by another environment or assigned to one (b1, b2)]"},
		"its own former self":                {shop("basel"), map[string]v1.Environment{"basel": shop("lugano")}, nil, "[]"},
		"stages":                             {staged(v1.Match{Roles: []string{"edge"}}), nil, nil, "[]"},
		"a stage of hosts of another":        {staged(v1.Match{Roles: []string{"till"}}), nil, nil, `[environments.basel.rollout.stages[0].match.roles[0]: no host of the environment has role "till"; hosts have edge]`},
		"its calendars":                      {named("nights"), nil, nil, "[]"},
		"a calendar that is not there":       {named("nihgts"), nil, nil, `[environments.basel.calendars[0]: there is no calendar "nihgts", so it opens no window; there are nights, stocktaking]`},
		"an order":                           {after("lugano", "basel", "default"), map[string]v1.Environment{"lugano": shop("bern")}, nil, "[]"},
		"an order with a name that is wrong": {after("lugano", "luagno"), map[string]v1.Environment{"lugano": shop("bern")}, nil, `[environments.basel.after.environments[1]: there is no environment "luagno", so no window opens a run before it is declared]`},
		"a freeze":                           {named("nights", "stocktaking"), nil, nil, `[environments.basel.calendars[1]: calendar "stocktaking" is of kind freeze: it counts for every environment and opens no window; name calendars of kind allow]`},
	} {
		k := Known{Hosts: fleet, Where: row.where, InForce: &Intent{Environments: row.inForce}, Calendars: map[string]string{"nights": "allow", "stocktaking": "freeze"}}
		if got := fmt.Sprint(Unmatched(Intent{Environments: map[string]v1.Environment{"basel": row.written}}, k)); got != row.want {
			t.Errorf("%s:\n%s, want\n%s", what, got, row.want)
		}
	}
}

// TestWarningsOfAllEnvironments checks that of those in force each host that two match is told once,
// and that there are not more warnings than anybody reads.
func TestWarningsOfAllEnvironments(t *testing.T) {
	t.Parallel()
	k := Known{Hosts: []Host{{Name: "b1", Labels: map[string]string{"shop": "basel"}}}}
	both := Unmatched(Intent{Environments: map[string]v1.Environment{"a": shop("basel"), "b": shop("basel")}}, k)
	if len(both) != 1 || both[0].Object != "environments.a" {
		t.Errorf("of a host that two match: %v", both)
	}
	many := map[string]v1.Environment{}
	for n := range 3 * maxUnmatched {
		many[fmt.Sprintf("e%02d", n)] = shop("bern")
	}
	if got := Unmatched(Intent{Environments: many}, k); len(got) != maxUnmatched+1 || got[maxUnmatched].String() != "environments: 40 further warnings" {
		t.Errorf("of many without hosts there are %d warnings, the last %v", len(got), got[len(got)-1])
	}
}
