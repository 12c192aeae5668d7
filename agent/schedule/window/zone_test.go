package window

import (
	"slices"
	"testing"
	"time"
)

func TestParseZone(t *testing.T) {
	t.Parallel()
	stockholm := mustLocation(t, "Europe/Stockholm")
	for _, row := range []struct{ text, canonical, location string }{
		{"", "site-local", "Europe/Stockholm"},
		{"site-local", "site-local", "Europe/Stockholm"},
		{"UTC", "UTC", "UTC"},
		{"America/Argentina/Buenos_Aires", "America/Argentina/Buenos_Aires", "America/Argentina/Buenos_Aires"},
		{"Etc/GMT+5", "Etc/GMT+5", "Etc/GMT+5"},
		{"Japan", "Japan", "Japan"},
		{"NZ-CHAT", "NZ-CHAT", "NZ-CHAT"},
	} {
		t.Run(row.text, func(t *testing.T) {
			t.Parallel()
			zone, err := ParseZone(row.text)
			if err != nil || zone.String() != row.canonical || zone.Location(stockholm).String() != row.location {
				t.Fatalf("ParseZone(%q) = %v, %v", row.text, zone, err)
			}
			again, err := ParseZone(zone.String())
			if err != nil || again != zone {
				t.Fatalf("read again: %v, %v; want the same", again, err)
			}
		})
	}
}

func TestParseZoneErrors(t *testing.T) {
	t.Parallel()
	const hint = " is not a time zone; use site-local, UTC or an IANA name"
	for _, row := range []struct{ name, text, want string }{
		{"misspelt city", "Europe/Stokholm", `"Europe/Stokholm"` + hint + "; did you mean Europe/Stockholm?"},
		{"city alone", "stockholm", `"stockholm"` + hint + "; did you mean Europe/Stockholm?"},
		{"misspelt city alone", "Stokholm", `"Stokholm"` + hint + "; did you mean Europe/Stockholm?"},
		{"blank in a city", "New York", `"New York"` + hint + "; did you mean America/New_York?"},
		{"other case", "europe/rome", `"europe/rome"` + hint + "; did you mean Europe/Rome?"},
		{"upper case", "EUROPE/ROME", `"EUROPE/ROME"` + hint + "; did you mean Europe/Rome?"},
		{"site-local misspelt", "site_local", `"site_local"` + hint + "; did you mean site-local?"},
		{"lower case utc", "utc", `"utc"` + hint + "; did you mean UTC?"},
		{"the machine's own zone", "Local", `"Local"` + hint + " such as Europe/Stockholm"},
		{"offset", "+02:00", `"+02:00"` + hint + " such as Europe/Stockholm"},
		{"offset that the database knows", "GMT+0", `"GMT+0"` + hint + "; did you mean Etc/GMT+0?"},
		{"the machine's link", "localtime", `"localtime"` + hint + " such as Europe/Stockholm"},
		{"folder of an area", "America/Indiana", `"America/Indiana"` + hint + "; did you mean America/Indiana/Indianapolis?"},
		{"way out of the folder", "../../etc/passwd", `"../../etc/passwd"` + hint + " such as Europe/Stockholm"},
		{"way round in the folder", "Europe/../Europe/Rome", `"Europe/../Europe/Rome"` + hint + "; did you mean Europe/Rome?"},
		{"doubled slash", "Europe//Rome", `"Europe//Rome"` + hint + "; did you mean Europe/Rome?"},
		{"dot", "Europe/./Rome", `"Europe/./Rome"` + hint + "; did you mean Europe/Rome?"},
		{"absolute", "/Europe/Rome", `"/Europe/Rome"` + hint + "; did you mean Europe/Rome?"},
		{"leap seconds", "right/Europe/Rome", `"right/Europe/Rome"` + hint + "; did you mean Europe/Rome?"},
		{"POSIX rule", "CET-1CEST,M3.5.0,M10.5.0/3", `"CET-1CEST,M3.5.0,M10.5.0/3"` + hint + " such as Europe/Stockholm"},
		{"blank at the end", "UTC ", `"UTC "` + hint + "; did you mean UTC?"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if zone, err := ParseZone(row.text); err == nil || err.Error() != row.want {
				t.Fatalf("ParseZone(%q) = %v,\n%v; want error\n%s", row.text, zone, err, row.want)
			}
		})
	}
}

func TestEveryListedZoneExists(t *testing.T) {
	t.Parallel()
	if !slices.IsSorted(zoneNames()) || len(zoneNames()) < 590 {
		t.Fatalf("%d names, sorted: %v", len(zoneNames()), slices.IsSorted(zoneNames()))
	}
	for _, name := range zoneNames() {
		if zone, err := ParseZone(name); err != nil || zone.String() != name {
			t.Errorf("ParseZone(%q) = %v, %v", name, zone, err)
		}
	}
}

func TestSiteLocalWithoutASiteIsUTC(t *testing.T) {
	t.Parallel()
	if got := (Zone{}).Location(nil); got != time.UTC {
		t.Fatalf("location %v; want UTC", got)
	}
}

func mustLocation(t *testing.T, name string) *time.Location {
	t.Helper()
	location, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return location
}
