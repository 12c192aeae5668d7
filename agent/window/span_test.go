package window

import (
	"strings"
	"testing"
	"time"
)

const week7 = "Monday,Tuesday,Wednesday,Thursday,Friday,Saturday,Sunday"

// Each window is "days start zone duration"; a span is "start end", both in UTC
// as "02T15:04" of November 2026, whose 1st is a Sunday, unless the row says
// otherwise.
func TestCurrentAndNext(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		windows []string
		at      string
		current string
		next    string
	}{
		{"no window", nil, "02T00:00", "", ""},
		{"before it opens", []string{"Friday 01:00 UTC 4h"}, "06T00:59", "", "06T01:00 06T05:00"},
		{"as it opens", []string{"Friday 01:00 UTC 4h"}, "06T01:00", "06T01:00 06T05:00", "06T01:00 06T05:00"},
		{"just before it closes", []string{"Friday 01:00 UTC 4h"}, "06T04:59", "06T01:00 06T05:00", "06T01:00 06T05:00"},
		{"as it closes", []string{"Friday 01:00 UTC 4h"}, "06T05:00", "", "13T01:00 13T05:00"},
		{"across midnight the day is that of the start", []string{"Friday 23:00 UTC 6h"}, "07T02:00", "06T23:00 07T05:00", "06T23:00 07T05:00"},
		{"across midnight it does not open on the day it closes", []string{"Friday 23:00 UTC 6h"}, "06T02:00", "", "06T23:00 07T05:00"},
		{"longer than a day", []string{"Friday 22:00 UTC 2d"}, "08T21:59", "06T22:00 08T22:00", "06T22:00 08T22:00"},
		{"the day of another zone", []string{"Monday 00:30 Asia/Tokyo 1h"}, "08T15:30", "08T15:30 08T16:30", "08T15:30 08T16:30"},
		{"site-local is the site's zone", []string{"Friday 01:00 site-local 4h"}, "06T00:00", "06T00:00 06T04:00", "06T00:00 06T04:00"},
		{"overlapping windows are one span", []string{"Friday 01:00 UTC 4h", "Friday 03:00 UTC 4h"}, "06T01:00", "06T01:00 06T07:00", "06T01:00 06T07:00"},
		{"touching windows are one span", []string{"Friday 05:00 UTC 2h", "Friday 01:00 UTC 4h"}, "06T06:59", "06T01:00 06T07:00", "06T01:00 06T07:00"},
		{"windows a minute apart are two", []string{"Friday 01:00 UTC 4h", "Friday 05:01 UTC 2h"}, "06T05:00", "", "06T05:01 06T07:01"},
		{"a window inside another changes nothing", []string{"Friday 01:00 UTC 4h", "Friday 02:00 UTC 1h"}, "06T02:30", "06T01:00 06T05:00", "06T01:00 06T05:00"},
		{"windows of two zones overlap in elapsed time", []string{"Friday 01:00 UTC 1h", "Friday 03:00 Europe/Stockholm 1h"}, "06T01:30", "06T01:00 06T03:00", "06T01:00 06T03:00"},
		{"every day around the clock is a span a day", []string{week7 + " 00:00 UTC 24h"}, "06T12:00", "06T00:00 07T00:00", "06T00:00 07T00:00"},
		{"a whole week is a span a week", []string{"Monday 00:00 UTC 7d"}, "06T12:00", "02T00:00 09T00:00", "02T00:00 09T00:00"},
		{"one that never breaks is cut at every start", []string{week7 + " 00:00 UTC 24h", "Friday 06:00 UTC 2h"}, "06T07:00", "06T06:00 07T00:00", "06T06:00 07T00:00"},
		{"five days in a row are one span", []string{"Monday,Tuesday,Wednesday,Thursday,Friday 00:00 UTC 24h"}, "04T12:00", "02T00:00 07T00:00", "02T00:00 07T00:00"},
		{"six days and a window that reaches over the seventh", []string{"Monday 00:00 UTC 6d", "Saturday 20:00 UTC 23h"}, "04T12:00", "02T00:00 08T19:00", "02T00:00 08T19:00"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			site := mustLocation(t, "Europe/Stockholm")
			var windows []Window
			for _, text := range row.windows {
				f := strings.Fields(text)
				windows = append(windows, mustParse(t, f[0], f[1], f[2], f[3]))
			}
			at := november(t, row.at)
			if got := spanText(Current(windows, site, at)); got != row.current {
				t.Errorf("current span %q; want %q", got, row.current)
			}
			if got := spanText(Next(windows, site, at)); got != row.next {
				t.Errorf("next span %q; want %q", got, row.next)
			}
		})
	}
}

func TestLengthIsElapsedTimeAcrossAChangeOfTheClock(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, date string }{
		{"an hour is missing", "2026-03-28T23:00:00Z"},
		{"an hour is there twice", "2026-10-24T22:00:00Z"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			start, err := time.Parse(time.RFC3339, row.date)
			if err != nil {
				t.Fatal(err)
			}
			windows := []Window{mustParse(t, "Sunday", "00:00", "Europe/Stockholm", "6h")}
			span, ok := Current(windows, nil, start.Add(time.Hour))
			if want := (Span{start, start.Add(6 * time.Hour)}); !ok || span != want {
				t.Fatalf("span %v, %v; want %v", span, ok, want)
			}
		})
	}
}

func TestEveryDayAroundTheClockBreaksForTheHourThatIsThereTwice(t *testing.T) {
	t.Parallel()
	windows := []Window{mustParse(t, week7, "00:00", "Europe/Stockholm", "24h")}
	want := Span{time.Date(2026, 10, 24, 22, 0, 0, 0, time.UTC), time.Date(2026, 10, 25, 22, 0, 0, 0, time.UTC)}
	if span, ok := Current(windows, nil, want.Start); !ok || span != want {
		t.Fatalf("current span %v, %v; want %v", span, ok, want)
	}
	if span, ok := Current(windows, nil, want.End); ok {
		t.Fatalf("span %v in the hour between the days", span)
	}
}

func TestNextPassesOverADateThatDoesNotExist(t *testing.T) {
	t.Parallel()
	windows := []Window{mustParse(t, "Friday", "10:00", "Pacific/Apia", "1h")}
	after := time.Date(2011, 12, 23, 21, 0, 0, 0, time.UTC)
	span, ok := Next(windows, nil, after)
	if want := time.Date(2012, 1, 5, 20, 0, 0, 0, time.UTC); !ok || !span.Start.Equal(want) {
		t.Fatalf("next span %v, %v; want start %v", span, ok, want)
	}
}

func november(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse("2006-01-02T15:04", "2026-11-"+text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func spanText(s Span, ok bool) string {
	if !ok {
		return ""
	}
	return s.Start.Format("02T15:04") + " " + s.End.Format("02T15:04")
}
