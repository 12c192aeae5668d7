package calendar

import (
	"strings"
	"testing"
	"time"
)

// mostInAYear is the largest number of occurrences in a year, in the fuzz tests.
const mostInAYear = 12 * MaxOccurrences

func FuzzParseRule(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		start := dateTime{wall: time.Date(2026, 2, 28, 1, 30, 0, 0, time.UTC), zone: utc}
		r, err := parseRule(text, start)
		if err != nil {
			if len(err.Error()) > 500 {
				t.Fatalf("error of %d bytes", len(err.Error()))
			}
			return
		}
		last, count := time.Time{}, 0
		r.starts(start.wall.AddDate(7, 0, 0), start.wall.AddDate(8, 0, 0), func(wall time.Time) bool {
			if !wall.After(last) {
				t.Fatalf("%q: %v after %v", text, wall, last)
			}
			last = wall
			count++
			return true
		})
		if count > 367*maxTimes {
			t.Fatalf("%q happens %d times a year", text, count)
		}
	})
}

func FuzzParseICS(f *testing.F) {
	f.Add(outlook("Customized Time Zone", standard("+0200", "+0100", "-1SU", 10), daylight("+0100", "+0200", "-1SU", 3)))
	f.Fuzz(func(t *testing.T, text string) {
		c, problems := Parse("fuzz", Text{Kind: "freeze", ICS: new(text)})
		for _, p := range problems {
			if !strings.HasPrefix(p.Path, "ics") || len(p.Error()) > 1000 {
				t.Fatalf("problem %v", p)
			}
		}
		if c == nil {
			return
		}
		from, to := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
		count := 0
		for o := range c.Occurrences(nil, from, to) {
			if !o.Start.Before(to) || !o.End.After(from) || o.Length() <= 0 || o.Length() > MaxFreeze+2*day {
				t.Fatalf("%q: %v", text, o)
			}
			count++
		}
		if count > mostInAYear {
			t.Fatalf("%d occurrences in a year", count)
		}
		sameAsEvents(t, c, text, from, to)
	})
}

func FuzzParseEvent(f *testing.F) {
	f.Fuzz(func(t *testing.T, start, end, duration, zone, date string, allDay bool) {
		text := EventText{Start: start, End: end, Duration: duration, Timezone: zone, AllDay: allDay, RRule: "FREQ=DAILY"}
		if date != "" {
			text.RDate, text.ExDate = []string{date}, []string{date}
		}
		c, problems := Parse("fuzz", Text{Kind: "allow", Events: []EventText{text}})
		for _, p := range problems {
			if !strings.HasPrefix(p.Path, "events[0].") || len(p.Error()) > 1000 {
				t.Fatalf("problem %v", p)
			}
		}
		if (c == nil) != (len(problems) > 0) {
			t.Fatalf("%v and %v", c, problems)
		}
	})
}
