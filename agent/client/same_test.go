package client

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

func TestSame(t *testing.T) {
	t.Parallel()
	window := weekly.MaintenanceWindows[0]
	with := func(change func(*v1.MaintenanceWindow)) v1.OSUpgrade {
		w := window
		change(&w)
		return v1.OSUpgrade{WorkerApplications: weekly.WorkerApplications, MaintenanceWindows: []v1.MaintenanceWindow{w}}
	}
	for name, row := range map[string]struct {
		other v1.OSUpgrade
		want  bool
	}{
		"itself":             {weekly, true},
		"another spelling":   {with(func(w *v1.MaintenanceWindow) { w.DaysOfWeek, w.Duration = "SATURDAY, friday", "3h60m" }), true},
		"another day":        {with(func(w *v1.MaintenanceWindow) { w.DaysOfWeek = "Friday" }), false},
		"another start":      {with(func(w *v1.MaintenanceWindow) { w.StartTime = "01:01" }), false},
		"another timezone":   {with(func(w *v1.MaintenanceWindow) { w.Timezone = "site-local" }), false},
		"another duration":   {with(func(w *v1.MaintenanceWindow) { w.Duration = "5h" }), false},
		"no applications":    {v1.OSUpgrade{MaintenanceWindows: weekly.MaintenanceWindows}, false},
		"a window twice":     {v1.OSUpgrade{WorkerApplications: weekly.WorkerApplications, MaintenanceWindows: []v1.MaintenanceWindow{window, window}}, false},
		"nothing configured": {v1.OSUpgrade{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantEqual(t, "same", same(weekly, row.other), row.want)
			wantEqual(t, "same the other way round", same(row.other, weekly), row.want)
		})
	}
	wantEqual(t, "absent and empty lists", same(v1.OSUpgrade{}, v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{}}), true)
}

func TestSameInAnyOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		config := v1.OSUpgrade{
			MaintenanceWindows: rapid.SliceOf(rapid.Custom(func(t *rapid.T) v1.MaintenanceWindow {
				return v1.MaintenanceWindow{
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
		if !same(config, shuffled) {
			t.Fatalf("%+v is not the same as %+v", config, shuffled)
		}
		if !slices.Equal(before, config.MaintenanceWindows) {
			t.Fatal("comparing has changed what was compared")
		}
		if len(shuffled.MaintenanceWindows) > 0 {
			shuffled.MaintenanceWindows = shuffled.MaintenanceWindows[1:]
			if same(config, shuffled) {
				t.Fatal("a window more is no difference")
			}
		}
	})
}
