package v1

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

var fridays = OSUpgrade{
	WorkerApplications: []WorkerApplication{{Name: "os-upgrade-debian"}},
	MaintenanceWindows: []MaintenanceWindow{{DaysOfWeek: "Friday, Saturday", StartTime: "01:00", Timezone: "UTC", Duration: "4h"}},
}

func TestSame(t *testing.T) {
	t.Parallel()
	window := fridays.MaintenanceWindows[0]
	with := func(change func(*MaintenanceWindow)) OSUpgrade {
		w := window
		change(&w)
		return OSUpgrade{WorkerApplications: fridays.WorkerApplications, MaintenanceWindows: []MaintenanceWindow{w}}
	}
	for name, row := range map[string]struct {
		other OSUpgrade
		want  bool
	}{
		"itself":             {fridays, true},
		"another spelling":   {with(func(w *MaintenanceWindow) { w.DaysOfWeek, w.Duration = "SATURDAY, friday", "3h60m" }), true},
		"another day":        {with(func(w *MaintenanceWindow) { w.DaysOfWeek = "Friday" }), false},
		"another start":      {with(func(w *MaintenanceWindow) { w.StartTime = "01:01" }), false},
		"another timezone":   {with(func(w *MaintenanceWindow) { w.Timezone = "site-local" }), false},
		"another duration":   {with(func(w *MaintenanceWindow) { w.Duration = "5h" }), false},
		"no applications":    {OSUpgrade{MaintenanceWindows: fridays.MaintenanceWindows}, false},
		"a window twice":     {OSUpgrade{WorkerApplications: fridays.WorkerApplications, MaintenanceWindows: []MaintenanceWindow{window, window}}, false},
		"nothing configured": {OSUpgrade{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			there, back := SameOSUpgrade(fridays, row.other), SameOSUpgrade(row.other, fridays)
			if there != row.want || back != row.want {
				t.Errorf("same is %t and, the other way round, %t; want %t", there, back, row.want)
			}
		})
	}
	if !SameOSUpgrade(OSUpgrade{}, OSUpgrade{WorkerApplications: []WorkerApplication{}}) {
		t.Error("an absent list and an empty one differ")
	}
}

func TestSameInAnyOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		config := OSUpgrade{
			MaintenanceWindows: rapid.SliceOf(rapid.Custom(func(t *rapid.T) MaintenanceWindow {
				return MaintenanceWindow{
					DaysOfWeek: rapid.SampledFrom([]string{"Monday", "Friday, Monday", "nonsense"}).Draw(t, "days"),
					StartTime:  rapid.SampledFrom([]string{"01:00", "02:00"}).Draw(t, "start"),
					Timezone:   rapid.SampledFrom([]string{"", "UTC"}).Draw(t, "timezone"),
					Duration:   rapid.SampledFrom([]string{"2h", "120m", "3h"}).Draw(t, "duration"),
				}
			})).Draw(t, "windows"),
		}
		shuffled := config
		shuffled.MaintenanceWindows = rapid.Permutation(config.MaintenanceWindows).Draw(t, "order")
		before := slices.Clone(config.MaintenanceWindows)
		if !SameOSUpgrade(config, shuffled) {
			t.Fatalf("%+v is not the same as %+v", config, shuffled)
		}
		if !slices.Equal(before, config.MaintenanceWindows) {
			t.Fatal("comparing has changed what was compared")
		}
		if len(shuffled.MaintenanceWindows) > 0 {
			shuffled.MaintenanceWindows = shuffled.MaintenanceWindows[1:]
			if SameOSUpgrade(config, shuffled) {
				t.Fatal("a window more is no difference")
			}
		}
	})
}

func TestSameRollout(t *testing.T) {
	t.Parallel()
	careful := Rollout{Stages: []Stage{{Name: "canary", Match: &Match{Hosts: []string{"h01"}}, Soak: "90m"}, {Name: "rest"}}}
	bold := Rollout{Stages: []Stage{{Name: "all", MaxUnavailable: "100%"}}, OnFailure: "continue"}
	for name, row := range map[string]struct {
		a, b Rollout
		want bool
	}{
		"itself":               {careful, careful, true},
		"another":              {careful, bold, false},
		"another spelling":     {Rollout{Splay: "90m"}, Rollout{Splay: "1h30m"}, true},
		"defaults written out": {Rollout{}, Rollout{}.WithDefaults(), true},
		"no stages":            {Rollout{}, Rollout{Stages: []Stage{}}, true},
		"paused":               {Rollout{}, Rollout{Paused: true}, false},
		"another label": {
			Rollout{Exempt: &Match{Labels: map[string]string{"a": "1"}}}, Rollout{Exempt: &Match{Labels: map[string]string{"a": "2"}}}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			there, back := SameRollout(row.a, row.b), SameRollout(row.b, row.a)
			if there != row.want || back != row.want {
				t.Errorf("same is %t and, the other way round, %t; want %t", there, back, row.want)
			}
		})
	}
}
