package v1

import (
	"reflect"
	"testing"
)

func TestCanonical(t *testing.T) {
	t.Parallel()
	given := OSUpgrade{
		WorkerApplications: []WorkerApplication{{Name: "b"}, {Name: "a"}},
		MaintenanceWindows: []MaintenanceWindow{
			{DaysOfWeek: "saturday,FRIDAY", StartTime: "01:00", Duration: "60m"},
			{DaysOfWeek: "Firday", StartTime: "1:00", Duration: "60m"},
			{DaysOfWeek: "Sunday,Monday", StartTime: "10:30", Timezone: "Europe/Stockholm", Duration: "28h0m18s"},
		},
	}
	want := OSUpgrade{
		WorkerApplications: given.WorkerApplications,
		MaintenanceWindows: []MaintenanceWindow{
			{DaysOfWeek: "Friday, Saturday", StartTime: "01:00", Timezone: "site-local", Duration: "1h"},
			{DaysOfWeek: "Firday", StartTime: "1:00", Duration: "60m"},
			{DaysOfWeek: "Monday, Sunday", StartTime: "10:30", Timezone: "Europe/Stockholm", Duration: "1d4h18s"},
		},
	}
	got := given.Canonical()
	if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(got.Canonical(), want) {
		t.Fatalf("got %+v; want %+v", got, want)
	}
	if given.MaintenanceWindows[0].Duration != "60m" {
		t.Fatal("the given configuration has changed")
	}
	if empty := (OSUpgrade{}).Canonical(); empty.MaintenanceWindows != nil {
		t.Fatal("an absent list is there")
	}
	if empty := (OSUpgrade{MaintenanceWindows: []MaintenanceWindow{}}).Canonical(); empty.MaintenanceWindows == nil {
		t.Fatal("an empty list is absent")
	}
}
