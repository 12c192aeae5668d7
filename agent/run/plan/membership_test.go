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
		was  *Place
		want Place
	}{
		"none matches":                            {Host{Name: "h09"}, nil, Place{}},
		"one matches by a label":                  {Host{Name: "h09", Labels: labels("shop", "bern")}, nil, Place{Environment: "bern"}},
		"one matches by all of its labels":        {Host{Name: "h09", Labels: labels("till", "yes", "kind", "kiosk")}, nil, Place{Environment: "kiosk"}},
		"one of its labels is missing":            {Host{Name: "h09", Labels: labels("kind", "kiosk")}, nil, Place{}},
		"one matches by role":                     {Host{Name: "h09", Role: "db"}, nil, Place{Environment: "databases"}},
		"its name wins over labels":               {Host{Name: "h01", Labels: labels("shop", "bern")}, &Place{Environment: "bern"}, Place{Environment: "canary"}},
		"it is named, and has not the role":       {Host{Name: "h02", Labels: labels("shop", "bern")}, nil, Place{Environment: "bern"}},
		"two match a new host":                    {Host{Name: "h09", Labels: labels("shop", "basel"), Role: "db"}, nil, Place{Unplaced: true, Matching: both}},
		"two match a host of one of them":         {Host{Name: "h09", Labels: labels("shop", "basel"), Role: "db"}, &Place{Environment: "basel"}, Place{Environment: "basel", Matching: both}},
		"two match a host of a third":             {Host{Name: "h09", Labels: labels("shop", "basel"), Role: "db"}, &Place{Environment: "bern"}, Place{Environment: "bern", Matching: both}},
		"two match a host of default":             {Host{Name: "h09", Labels: labels("shop", "basel"), Role: "db"}, &Place{}, Place{Matching: both}},
		"two match a host of one that is deleted": {Host{Name: "h09", Labels: labels("shop", "basel"), Role: "db"}, &Place{Environment: "gone"}, Place{Unplaced: true, Matching: both}},
		"two still match it":                      {Host{Name: "h09", Labels: labels("shop", "basel"), Role: "db"}, &Place{Unplaced: true}, Place{Unplaced: true, Matching: both}},
		"one matches it again":                    {Host{Name: "h09", Labels: labels("shop", "basel")}, &Place{Unplaced: true}, Place{Environment: "basel"}},
		"its environment is deleted":              {Host{Name: "h09"}, &Place{Environment: "gone"}, Place{}},
		"its label is gone":                       {Host{Name: "h09"}, &Place{Environment: "bern"}, Place{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := NewMembership(declared).Of(row.host, row.was); !reflect.DeepEqual(got, row.want) {
				t.Errorf("it is in %+v; want %+v", got, row.want)
			}
		})
	}
}
