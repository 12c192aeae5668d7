package window

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

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
		{"twice", "Friday, friday", `"friday" is there twice; name each day once`},
		{"several at once", "Munday, Friday, Friday, Sonday", `"Munday" is not a day; did you mean Monday?, and "Friday" is there twice; name each day once, and "Sonday" is not a day; did you mean Monday?`},
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
