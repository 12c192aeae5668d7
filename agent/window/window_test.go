package window

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	t.Parallel()
	got, problems := Parse("Saturday,friday", "01:00", "", "240m")
	want := Window{Days: 1<<time.Friday | 1<<time.Saturday, Start: TimeOfDay{minutes: 60}, Duration: 4 * time.Hour}
	if len(problems) > 0 || got != want {
		t.Fatalf("got %+v, %v; want %+v", got, problems, want)
	}
	other, problems := Parse("Friday, Saturday", "01:00", "site-local", "4h")
	if len(problems) > 0 || got != other {
		t.Fatalf("the same window spelt differently: %+v, %v", other, problems)
	}
}

func TestParseTellsOfEveryField(t *testing.T) {
	t.Parallel()
	w, problems := Parse("Firday", "25:00", "Local", "8d")
	var got []string
	for _, p := range problems {
		got = append(got, fmt.Sprintf("%s %s: %v", p.Field, p.Value, p.Err))
	}
	want := []string{
		`days-of-week Firday: "Firday" is not a day; did you mean Friday?`,
		`start-time 25:00: "25:00" is not a time of day; use HH:MM from 00:00 to 23:59`,
		`timezone Local: "Local" is not a time zone; use site-local, UTC or an IANA name such as Europe/Stockholm`,
		`duration 8d: "8d" is too long; use 1m to 7d`,
	}
	if w != (Window{}) || !slices.Equal(got, want) {
		t.Fatalf("got %+v, %q; want %q", w, got, want)
	}
}

func TestParseLength(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, text, problem string }{
		{"shortest", "1m", ""},
		{"longest", "7d", ""},
		{"too short", "59s", `"59s" is too short; use 1m to 7d`},
		{"nothing", "0s", `"0s" is too short; use 1m to 7d`},
		{"too long", "7d1s", `"7d1s" is too long; use 1m to 7d`},
		{"beyond what can be held", "106752d", `"106752d" is too long; use 1m to 7d`},
		{"no duration", "long", `"long" is not a duration; use days, hours, minutes and seconds in this order, such as 4h or 1d4h18s`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			d, err := ParseLength(row.text)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != row.problem || (err == nil) != (d > 0) {
				t.Fatalf("ParseLength(%q) = %v, %v; want %q", row.text, d, err, row.problem)
			}
		})
	}
}

// mustParse makes a window for a test from "days|start|zone|duration".
func mustParse(t testing.TB, days, start, zone, duration string) Window {
	t.Helper()
	w, problems := Parse(days, start, zone, duration)
	if len(problems) > 0 {
		t.Fatalf("window %s %s %s %s: %v", days, start, zone, duration, problems)
	}
	return w
}
