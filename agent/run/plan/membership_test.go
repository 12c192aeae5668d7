package plan

import (
	"reflect"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestMembership checks in which environment a host is, and that one which several match is not
// moved.
func TestMembership(t *testing.T) {
	t.Parallel()
	shop := func(city string) v1.Environment {
		return v1.Environment{Match: v1.Match{Labels: map[string]string{"shop": city}}}
	}
	declared := map[string]v1.Environment{
		"basel": shop("basel"), "bern": shop("bern"), "kiosk": {Match: v1.Match{Labels: map[string]string{"kind": "kiosk", "till": "yes"}}},
		"canary": {Match: v1.Match{Hosts: []string{"h01"}}}, "lab": {Match: v1.Match{Hosts: []string{"h02"}, Roles: []string{"lab"}}},
		"databases": {Match: v1.Match{Roles: []string{"db"}}},
	}
	labels := func(all ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(all); i += 2 {
			m[all[i]] = all[i+1]
		}
		return m
	}
	both := []string{"basel", "databases"}
	for name, row := range map[string]struct {
		host Host
		was  *Where
		want Where
	}{
		"none matches":                            {Host{Name: "h09"}, nil, Where{}},
		"one matches by a label":                  {Host{Name: "h09", Labels: labels("shop", "bern")}, nil, Where{Environment: "bern"}},
		"one matches by all of its labels":        {Host{Name: "h09", Labels: labels("till", "yes", "kind", "kiosk")}, nil, Where{Environment: "kiosk"}},
		"one of its labels is missing":            {Host{Name: "h09", Labels: labels("kind", "kiosk")}, nil, Where{}},
		"one matches by role":                     {Host{Name: "h09", Role: "db"}, nil, Where{Environment: "databases"}},
		"its name wins over labels":               {Host{Name: "h01", Labels: labels("shop", "bern")}, &Where{Environment: "bern"}, Where{Environment: "canary"}},
		"it is named, and has not the role":       {Host{Name: "h02", Labels: labels("shop", "bern")}, nil, Where{Environment: "bern"}},
		"two match a new host":                    {Host{Name: "h09", Labels: labels("shop", "basel"), Role: "db"}, nil, Where{Unplaced: true, Matching: both}},
		"two match a host of one of them":         {Host{Name: "h09", Labels: labels("shop", "basel"), Role: "db"}, &Where{Environment: "basel"}, Where{Environment: "basel", Matching: both}},
		"two match a host of a third":             {Host{Name: "h09", Labels: labels("shop", "basel"), Role: "db"}, &Where{Environment: "bern"}, Where{Environment: "bern", Matching: both}},
		"two match a host of default":             {Host{Name: "h09", Labels: labels("shop", "basel"), Role: "db"}, &Where{}, Where{Matching: both}},
		"two match a host of one that is deleted": {Host{Name: "h09", Labels: labels("shop", "basel"), Role: "db"}, &Where{Environment: "gone"}, Where{Unplaced: true, Matching: both}},
		"two still match it":                      {Host{Name: "h09", Labels: labels("shop", "basel"), Role: "db"}, &Where{Unplaced: true}, Where{Unplaced: true, Matching: both}},
		"one matches it again":                    {Host{Name: "h09", Labels: labels("shop", "basel")}, &Where{Unplaced: true}, Where{Environment: "basel"}},
		"its environment is deleted":              {Host{Name: "h09"}, &Where{Environment: "gone"}, Where{}},
		"its label is gone":                       {Host{Name: "h09"}, &Where{Environment: "bern"}, Where{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := NewMembership(declared).Of(row.host, row.was); !reflect.DeepEqual(got, row.want) {
				t.Errorf("it is in %+v; want %+v", got, row.want)
			}
		})
	}
}
