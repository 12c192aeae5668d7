package window

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// zonesInTests change their clocks in every way: at midnight, across midnight,
// by half an hour, by two hours, by a day, never.
var zonesInTests = []string{
	"", "UTC", "Europe/Stockholm", "Europe/Dublin", "Europe/Chisinau", "America/New_York", "America/St_Johns",
	"America/Santiago", "America/Nuuk", "America/Havana", "America/Asuncion", "America/Caracas", "Africa/Cairo",
	"Africa/Casablanca", "Asia/Beirut", "Asia/Gaza", "Asia/Kolkata", "Asia/Pyongyang", "Atlantic/Azores",
	"Antarctica/Troll", "Australia/Lord_Howe", "Pacific/Apia", "Pacific/Chatham", "Pacific/Easter", "Pacific/Kiritimati",
}

// eventful are days near which some of those zones change their clocks.
var eventful = []string{
	"2007-12-09", "2011-12-30", "2015-08-15", "2018-05-05", "2024-12-31", "2026-03-08", "2026-03-22", "2026-03-29",
	"2026-04-05", "2026-04-24", "2026-09-06", "2026-09-27", "2026-10-04", "2026-10-25", "2026-10-30", "2026-11-01", "2028-12-31",
}

func drawWindow(t *rapid.T) Window {
	zone, err := ParseZone(rapid.SampledFrom(zonesInTests).Draw(t, "zone"))
	if err != nil {
		t.Fatal(err)
	}
	minutes := rapid.OneOf(
		rapid.IntRange(1, 24*60),
		rapid.SampledFrom([]int{23 * 60, 24 * 60, 25 * 60, 7*24*60 - 1, 7 * 24 * 60}),
		rapid.IntRange(1, 7*24*60),
	).Draw(t, "minutes")
	return Window{
		Days:     Days(rapid.OneOf(rapid.Uint8Range(1, 127), rapid.Just(uint8(127))).Draw(t, "days")),
		Start:    TimeOfDay{minutes: rapid.OneOf(rapid.IntRange(0, 4*60), rapid.IntRange(0, 24*60-1)).Draw(t, "start")},
		Zone:     zone,
		Duration: time.Duration(minutes) * time.Minute,
	}
}

func drawInstant(t *rapid.T) time.Time {
	day0, err := time.Parse(time.DateOnly, rapid.SampledFrom(eventful).Draw(t, "near"))
	if err != nil {
		t.Fatal(err)
	}
	return day0.Add(time.Duration(rapid.IntRange(-12*24*60, 12*24*60).Draw(t, "off by minutes")) * time.Minute)
}

func drawSite(t *rapid.T) *time.Location {
	site, err := time.LoadLocation(rapid.SampledFrom(zonesInTests).Draw(t, "site"))
	if err != nil {
		t.Fatal(err)
	}
	return site
}

// oracle reports for each minute from an instant on whether a window is open. It
// does not use offsets or zone periods: it reads the wall clock at each minute,
// and a window starts at the first minute at which the clock has reached its
// start.
func oracle(windows []Window, site *time.Location, from time.Time, minutes int) []bool {
	const before, after = 9 * 24 * 60, 25 * 60
	open := make([]bool, minutes)
	for _, w := range windows {
		location := w.Zone.Location(site)
		walls := make([]time.Time, before+minutes+after)
		exists := map[time.Time]bool{}
		for i := range walls {
			at := from.Add(time.Duration(i-before) * time.Minute).In(location)
			walls[i] = time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), 0, 0, time.UTC)
			exists[walls[i].Truncate(day)] = true
		}
		reached := walls[0]
		for i, now := range walls[:before+minutes] {
			for date := reached.Truncate(day); !date.After(now); date = date.Add(day) {
				start := date.Add(time.Duration(w.Start.minutes) * time.Minute)
				if exists[date] && w.Days.Has(date.Weekday()) && reached.Before(start) && !now.Before(start) {
					first := i - before
					for j := max(first, 0); j < min(minutes, first+int(w.Duration/time.Minute)); j++ {
						open[j] = true
					}
				}
			}
			if now.After(reached) {
				reached = now
			}
		}
	}
	return open
}

func TestUnionIsThatOfASlowOracle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		windows := rapid.SliceOfN(rapid.Custom(drawWindow), 1, 3).Draw(t, "windows")
		site, from := drawSite(t), drawInstant(t)
		const minutes = 4 * 24 * 60
		open := oracle(windows, site, from, minutes)
		for i := 0; i < minutes; {
			at := from.Add(time.Duration(i) * time.Minute)
			span, ok := Next(windows, site, at)
			if !ok || !span.End.After(at) {
				t.Fatalf("next of %v is %v, %v", at, span, ok)
			}
			for ; i < minutes && from.Add(time.Duration(i)*time.Minute).Before(span.End); i++ {
				at = from.Add(time.Duration(i) * time.Minute)
				if open[i] != span.Contains(at) {
					t.Fatalf("at %v open: %v; next span then is %v", at, open[i], span)
				}
			}
		}
	})
}

func TestEveryInstantOfASpanHasThatSpan(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		windows := rapid.SliceOfN(rapid.Custom(drawWindow), 1, 6).Draw(t, "windows")
		site, at := drawSite(t), drawInstant(t)
		span, ok := Next(windows, site, at)
		if !ok || span.End.Sub(span.Start) > longest {
			t.Fatalf("next span %v, %v", span, ok)
		}
		inside := rapid.Int64Range(0, int64(span.End.Sub(span.Start))-1).Draw(t, "inside")
		for _, instant := range []time.Time{span.Start, span.Start.Add(time.Duration(inside)), span.End.Add(-1)} {
			if other, ok := Current(windows, site, instant); !ok || other != span {
				t.Fatalf("at %v the span is %v, %v; want %v", instant, other, ok, span)
			}
		}
	})
}

func TestOrderAndRepetitionOfWindowsDoNotMatter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		windows := rapid.SliceOfN(rapid.Custom(drawWindow), 1, 4).Draw(t, "windows")
		site, at := drawSite(t), drawInstant(t)
		other := rapid.Permutation(append(windows, windows[0])).Draw(t, "other order")
		a, okA := Next(windows, site, at)
		b, okB := Next(other, site, at.In(time.Local))
		if a != b || okA != okB {
			t.Fatalf("%v, %v and %v, %v", a, okA, b, okB)
		}
	})
}

func TestEveryWindowSurvivesItsText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawWindow(t)
		days := strings.ToUpper(w.Days.String())
		again, problems := Parse(days, w.Start.String(), w.Zone.String(), FormatDuration(w.Duration))
		if len(problems) > 0 || again != w {
			t.Fatalf("%+v read again: %+v, %v", w, again, problems)
		}
	})
}
