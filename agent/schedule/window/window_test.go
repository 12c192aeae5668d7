package window

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
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

func TestParseDays(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, text, want string }{
		{"one", "Friday", "Friday"},
		{"as documented", "Friday, Saturday", "Friday, Saturday"},
		{"other order", "Saturday, Friday", "Friday, Saturday"},
		{"Sunday is last", "Sunday, Monday", "Monday, Sunday"},
		{"any case", "fRIDAY, SATURDAY", "Friday, Saturday"},
		{"no blanks", "Friday,Saturday", "Friday, Saturday"},
		{"many blanks", " \tFriday ,\n  Saturday ", "Friday, Saturday"},
		{"all", "Sunday,Saturday,Friday,Thursday,Wednesday,Tuesday,Monday", "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			days, err := ParseDays(row.text)
			if err != nil || days.String() != row.want {
				t.Fatalf("ParseDays(%q) = %q, %v; want %q", row.text, days, err, row.want)
			}
		})
	}
}

func TestParseDaysErrors(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, text, want string }{
		{"empty", "", `"" names no day; use Monday to Sunday, separated by commas`},
		{"blank", "  ", `"  " names no day; use Monday to Sunday, separated by commas`},
		{"misspelt", "Firday", `"Firday" is not a day; did you mean Friday?`},
		{"short", "Fri", `"Fri" is not a day; did you mean Friday?`},
		{"unknown", "Weekend", `"Weekend" is not a day; use Monday to Sunday, separated by commas`},
		{"no comma", "Friday Saturday", `"Friday Saturday" is not a day; use Monday to Sunday, separated by commas`},
		{"trailing comma", "Friday,", `"" is not a day; use Monday to Sunday, separated by commas`},
		{"twice", "Friday, friday", `"friday" is repeated; name each day once`},
		{"several at once", "Munday, Friday, Friday, Sonday", `"Munday" is not a day; did you mean Monday?, and "Friday" is repeated; name each day once, and "Sonday" is not a day; did you mean Monday?`},
		{"endless", strings.Repeat("Friday,", 1000), `"Friday,Friday,Friday,Friday,Friday,Friday,Friday,Friday,Friday,Friday,Friday,Fri"... is too long to be a list of days; use Monday to Sunday, separated by commas`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			days, err := ParseDays(row.text)
			if err == nil || err.Error() != row.want {
				t.Fatalf("ParseDays(%q) = %v, %v; want error %q", row.text, days, err, row.want)
			}
		})
	}
}

func TestDaysBitIsWeekday(t *testing.T) {
	t.Parallel()
	for w := time.Sunday; w <= time.Saturday; w++ {
		days, err := ParseDays(w.String())
		if err != nil || days != 1<<w || !days.Has(w) {
			t.Errorf("ParseDays(%q) = %b, %v", w.String(), days, err)
		}
	}
}

func TestEverySetOfDaysSurvivesItsText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		days := Days(rapid.Uint8Range(1, 127).Draw(t, "days"))
		names := rapid.Permutation(days.Names()).Draw(t, "names")
		again, err := ParseDays(strings.Join(names, ","))
		if err != nil || again != days {
			t.Fatalf("%v read as %v, %v", names, again, err)
		}
	})
}

func TestEveryMinuteOfTheDaySurvivesItsText(t *testing.T) {
	t.Parallel()
	for minute := range 24 * 60 {
		text := fmt.Sprintf("%02d:%02d", minute/60, minute%60)
		got, err := ParseTimeOfDay(text)
		if err != nil || got.minutes != minute || got.String() != text {
			t.Errorf("ParseTimeOfDay(%q) = %v, %v", text, got, err)
		}
	}
}

func TestParseTimeOfDayErrors(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, text string }{
		{"empty", ""},
		{"hour too large", "25:00"},
		{"midnight at the end of the day", "24:00"},
		{"minute too large", "23:60"},
		{"one digit of the hour", "1:00"},
		{"one digit of the minute", "01:0"},
		{"seconds", "01:00:00"},
		{"blank before", " 1:00"},
		{"sign", "+1:00"},
		{"no colon", "01.00"},
		{"minutes since midnight", "630"},
		{"half past one in the afternoon", "01:30pm"},
		{"digits of another script", "٠١:٠٠"},
		{"letters below zero", "0/:00"},
		{"letters above nine", "0a:00"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			want := fmt.Sprintf("%q is not a time of day; use HH:MM from 00:00 to 23:59", row.text)
			if got, err := ParseTimeOfDay(row.text); err == nil || err.Error() != want {
				t.Fatalf("ParseTimeOfDay(%q) = %v, %v; want error %q", row.text, got, err, want)
			}
		})
	}
}
