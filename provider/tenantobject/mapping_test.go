package tenantobject

import "testing"

func TestDoubtful(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		unknown, field string
		doubtful       bool
	}{
		"itself":                {"reserve", "reserve", true},
		"another at the top":    {"reserve", "splay", false},
		"beside":                {"checks.fleet[0].type", "checks.fleet[0].script", true},
		"another element":       {"checks.fleet[0].type", "checks.fleet[1].script", false},
		"an element like it":    {"checks.fleet[1].type", "checks.fleet[11].script", false},
		"below what is beside":  {"stages[0].match.hosts[0]", "stages[0].name", true},
		"above":                 {"stages", "stages[0].name", true},
		"the list of the wrong": {"checks.fleet[0].args[1]", "checks.fleet[0].args[0]", true},
		"the neighbouring list": {"checks.fleet", "checks.before-host[0].type", false},
		"a name that begins so": {"exempt", "exempt-reboot.roles", false},
		"the hook beside":       {"hooks.drain.type", "hooks.undrain.script", false},
	} {
		if got := doubtful([]string{row.unknown}, row.field); got != row.doubtful {
			t.Errorf("%s: got %v, want %v", name, got, row.doubtful)
		}
	}
}

// TestClash: a conflict is told of the deepest attribute that has all of it.
func TestClash(t *testing.T) {
	t.Parallel()
	stages := func(soak ...string) []any {
		var list []any
		for _, s := range soak {
			list = append(list, map[string]any{"soak": s, "match": map[string]any{"roles": []any{"db"}}})
		}
		return list
	}
	for name, row := range map[string]struct {
		was, stored, want any
		field             string
	}{
		"one member of one element": {stages("0s", "0s"), stages("0s", "5m"), stages("0s", "9m"), "stages[1].soak"},
		"and what is wanted beside": {stages("0s", "0s"), stages("0s", "5m"), stages("1m", "9m"), "stages"},
		"two elements":              {stages("0s", "0s"), stages("5m", "5m"), stages("0s", "0s"), "stages"},
		"another length":            {stages("0s"), stages("0s", "5m"), stages("0s"), "stages"},
		"another shape":             {"x", stages("0s"), stages("1m"), "stages"},
		"a text":                    {"x", "y", "z", "stages"},
		"gone":                      {stages("0s"), nil, stages("1m"), "stages"},
	} {
		c := clash{field: "stages", means: [3]any{row.was, row.stored, row.want}}
		if got := c.narrowed().field; !c.conflicts() || got != row.field {
			t.Errorf("%s: it is told of %s, want %s", name, got, row.field)
		}
	}
}
