package window

import (
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"pgregory.net/rapid"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

func w(days, start, zone, length string) v1.MaintenanceWindow {
	return v1.MaintenanceWindow{DaysOfWeek: days, StartTime: start, Timezone: zone, Duration: length}
}

func TestKey_sameAndDifferent(t *testing.T) {
	t.Parallel()
	base := w("Friday, Saturday", "01:00", "site-local", "4h")
	for name, row := range map[string]struct {
		other v1.MaintenanceWindow
		same  bool
	}{
		"itself":                     {base, true},
		"days the other way":         {w("saturday,FRIDAY", "01:00", "site-local", "4h"), true},
		"no timezone":                {w("Friday, Saturday", "01:00", "", "4h"), true},
		"length in minutes":          {w("Friday, Saturday", "01:00", "site-local", "240m"), true},
		"length in mixed units":      {w("Friday, Saturday", "01:00", "site-local", "3h60m"), true},
		"one day less":               {w("Friday", "01:00", "site-local", "4h"), false},
		"a minute later":             {w("Friday, Saturday", "01:01", "site-local", "4h"), false},
		"another zone":               {w("Friday, Saturday", "01:00", "UTC", "4h"), false},
		"a second longer":            {w("Friday, Saturday", "01:00", "site-local", "4h1s"), false},
		"a day that nobody knows":    {w("Fri-Sat", "01:00", "site-local", "4h"), false},
		"a length that nobody knows": {w("Friday, Saturday", "01:00", "site-local", "4 hours"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Key(row.other) == Key(base); got != row.same {
				t.Errorf("%q and %q: same is %v, want %v", Key(row.other), Key(base), got, row.same)
			}
		})
	}
}

// drawn is a window in one of several forms, some of which our rules cannot parse.
func drawn() *rapid.Generator[v1.MaintenanceWindow] {
	return rapid.Custom(func(t *rapid.T) v1.MaintenanceWindow {
		return w(
			rapid.SampledFrom([]string{"Friday", "friday", "Friday, Saturday", "saturday, friday", "Mon-Fri", ""}).Draw(t, "days"),
			rapid.SampledFrom([]string{"01:00", "02:00", "1"}).Draw(t, "start"),
			rapid.SampledFrom([]string{"", "site-local", "UTC", "+02:00"}).Draw(t, "zone"),
			rapid.SampledFrom([]string{"4h", "240m", "1w"}).Draw(t, "length"),
		)
	})
}

func models(windows []v1.MaintenanceWindow) []Model {
	list := make([]Model, 0, len(windows))
	for _, w := range windows {
		list = append(list, FromAPI(w))
	}
	return list
}

func windows(list []Model) []v1.MaintenanceWindow {
	back := make([]v1.MaintenanceWindow, 0, len(list))
	for _, m := range list {
		back = append(back, m.API())
	}
	return back
}

// TestKeep_meansWhatTheServerHas checks that for any state the result of Keep has the
// meaning of the server's windows, and that a state with that meaning stays as it is.
func TestKeep_meansWhatTheServerHas(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		state := models(rapid.SliceOfN(drawn(), 0, 5).Draw(t, "state"))
		server := rapid.SliceOfN(drawn(), 0, 5).Draw(t, "server")
		kept := Keep(state, server)
		if !Same(windows(kept), windows(models(server))) {
			t.Fatalf("kept %v of server %v", windows(kept), server)
		}
		again := Keep(kept, rapid.Permutation(server).Draw(t, "order"))
		for i := range kept {
			if kept[i].API() != again[i].API() {
				t.Fatalf("reading again moved %v to %v", windows(kept), windows(again))
			}
		}
	})
}

func TestKeep_placesAndSpelling(t *testing.T) {
	t.Parallel()
	a, b, c := w("Friday", "01:00", "site-local", "240m"), w("Monday", "02:00", "UTC", "1h"), w("Sunday", "03:00", "UTC", "1h")
	for name, row := range map[string]struct{ state, server, want []v1.MaintenanceWindow }{
		"the state's order and spelling": {[]v1.MaintenanceWindow{a, b}, []v1.MaintenanceWindow{b, w("Friday", "01:00", "", "4h")}, []v1.MaintenanceWindow{a, b}},
		"a changed one keeps its place":  {[]v1.MaintenanceWindow{a, b}, []v1.MaintenanceWindow{b, c}, []v1.MaintenanceWindow{c, b}},
		"a new one comes last":           {[]v1.MaintenanceWindow{a}, []v1.MaintenanceWindow{c, a}, []v1.MaintenanceWindow{a, c}},
		"one that is gone":               {[]v1.MaintenanceWindow{a, b}, []v1.MaintenanceWindow{b}, []v1.MaintenanceWindow{b}},
		"all gone":                       {[]v1.MaintenanceWindow{a, b}, nil, []v1.MaintenanceWindow{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := windows(Keep(models(row.state), row.server)); !slices.Equal(got, row.want) {
				t.Errorf("got %v, want %v", got, row.want)
			}
		})
	}
}

func TestDuplicate(t *testing.T) {
	t.Parallel()
	a, b, otherForm := w("Friday", "01:00", "", "4h"), w("Monday", "01:00", "", "4h"), w("friday", "01:00", "site-local", "240m")
	if _, _, found := Duplicate([]v1.MaintenanceWindow{a, b}); found {
		t.Error("two different windows are no duplicate")
	}
	if earlier, later, found := Duplicate([]v1.MaintenanceWindow{a, b, otherForm}); !found || earlier != 0 || later != 2 {
		t.Errorf("got %d, %d, %v, want 0, 2, true", earlier, later, found)
	}
}

func TestModel_roundTrip(t *testing.T) {
	t.Parallel()
	var diags diag.Diagnostics
	want := []v1.MaintenanceWindow{w("Friday, Saturday", "01:00", DefaultTimezone, "4h"), w("Monday", "22:30", "UTC", "2h")}
	list := List(t.Context(), models(want), &diags)
	if got := ToAPI(t.Context(), list, &diags); diags.HasError() || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, diags, want)
	}
}

func FuzzKey(f *testing.F) {
	f.Add("Friday, Saturday", "01:00", "site-local", "4h")
	f.Add("Mon-Fri", "1:00", "+02:00", "1w")
	f.Fuzz(func(t *testing.T, days, start, zone, length string) {
		once := w(days, start, zone, length)
		// The conversion to attributes must not change the meaning of a window.
		if back := FromAPI(once).API(); Key(once) != Key(back) {
			t.Errorf("%q became %q", Key(once), Key(back))
		}
	})
}
