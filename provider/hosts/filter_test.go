package hosts

import (
	"testing"
	"time"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

func TestFilter(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	h := v1.Host{
		Application: "a", Role: "db", Online: true, Labels: map[string]string{"ring": "0", "empty": ""},
		Versions: map[string]string{"kernel": "6.12"}, OutdatedSince: &at, MissedSince: &at, Busy: &v1.HostBusy{Reason: "backup"},
	}
	for name, row := range map[string]struct {
		filter filter
		kept   bool
	}{
		"none":                   {filter{}, true},
		"all that fits":          {filter{application: "a", state: "online", fits: v1.Selector{Roles: []string{"db"}, Labels: map[string]string{"ring": "0"}}.Matcher(), versions: map[string]string{"kernel": "< 6.13"}, outdatedSince: at}, true},
		"another application":    {filter{application: "b"}, false},
		"another role":           {filter{fits: v1.Selector{Roles: []string{"web"}}.Matcher()}, false},
		"offline":                {filter{state: "offline"}, false},
		"busy":                   {filter{state: "busy"}, true},
		"outdated":               {filter{state: "outdated"}, true},
		"missed":                 {filter{state: "missed"}, true},
		"another label":          {filter{fits: v1.Selector{Labels: map[string]string{"ring": "1"}}.Matcher()}, false},
		"one of two labels":      {filter{fits: v1.Selector{Labels: map[string]string{"ring": "0", "zone": "x"}}.Matcher()}, false},
		"an empty label":         {filter{fits: v1.Selector{Labels: map[string]string{"empty": ""}}.Matcher()}, true},
		"an empty label, absent": {filter{fits: v1.Selector{Labels: map[string]string{"zone": ""}}.Matcher()}, false},
		"newer":                  {filter{versions: map[string]string{"kernel": "> 6.12"}}, false},
		"a package it lacks":     {filter{versions: map[string]string{"glibc": "> 0"}}, false},
		"outdated for longer":    {filter{outdatedSince: at.Add(time.Hour)}, true},
		"outdated for less":      {filter{outdatedSince: at.Add(-time.Second)}, false},
	} {
		if got := row.filter.keeps(h); got != row.kept {
			t.Errorf("%s: got %v, want %v", name, got, row.kept)
		}
	}
	for state, kept := range map[string]bool{"online": false, "offline": true, "busy": false, "outdated": false, "missed": false} {
		if got := (filter{state: state}).keeps(v1.Host{}); got != kept {
			t.Errorf("an idle host that is offline is %s: got %v", state, got)
		}
	}
	if (filter{outdatedSince: at}).keeps(v1.Host{}) {
		t.Error("a host that is not outdated is kept")
	}
}
