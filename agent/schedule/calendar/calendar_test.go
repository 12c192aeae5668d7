package calendar

import (
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
)

// spans formats the occurrences of a calendar between two times, in UTC. < marks a
// start and > an end that a change of the clock moved.
func spans(c *Calendar, site *time.Location, from, to time.Time) string {
	var all []string
	p := window.Schedule{Allow: []window.Calendar{c}, Site: site}
	for o := range p.Ahead(from, to, 20) {
		text := o.Start.Format("2006-01-02T15:04") + " " + o.Length().String()
		if o.StartMoved() {
			text += " <"
		}
		if o.EndMoved() {
			text += " >"
		}
		all = append(all, strings.ReplaceAll(strings.ReplaceAll(text, "m0s", "m"), "h0m", "h"))
	}
	return strings.Join(all, ", ")
}

// The rows are computed by hand from the documented rules.
func TestEventsHappenWhenTheClockShowsIt(t *testing.T) {
	t.Parallel()
	const zone = "Europe/Stockholm"
	for _, row := range []struct {
		name  string
		event EventText
		want  string
	}{
		{"from one time to another", EventText{Start: "2026-06-05T18:00", End: "2026-06-06T06:00", Timezone: zone}, "2026-06-05T16:00 12h"},
		{"for a length of time", EventText{Start: "2026-06-05T18:00", Duration: "1d4h", Timezone: zone}, "2026-06-05T16:00 28h"},
		{"all day", EventText{Start: "2026-06-05", AllDay: true, Timezone: zone}, "2026-06-04T22:00 24h"},
		{"several days", EventText{Start: "2026-06-05", End: "2026-06-08", AllDay: true, Timezone: zone}, "2026-06-04T22:00 72h"},
		{"days as a duration", EventText{Start: "2026-06-05", Duration: "3d", AllDay: true, Timezone: zone}, "2026-06-04T22:00 72h"},
		{"site-local", EventText{Start: "2026-06-05T18:00", Duration: "1h"}, "2026-06-05T09:00 1h"},

		{"a day that is an hour short", EventText{Start: "2026-03-29", AllDay: true, Timezone: zone}, "2026-03-28T23:00 23h"},
		{"a day that is an hour long", EventText{Start: "2026-10-25", AllDay: true, Timezone: zone}, "2026-10-24T22:00 25h"},
		{"24 hours from the midnight before", EventText{Start: "2026-03-29T00:00", Duration: "24h", Timezone: zone}, "2026-03-28T23:00 24h >"},
		{"a night that is an hour short", EventText{Start: "2026-03-28T22:00", End: "2026-03-29T06:00", Timezone: zone}, "2026-03-28T21:00 7h"},
		{"a night that is an hour long", EventText{Start: "2026-10-24T22:00", End: "2026-10-25T06:00", Timezone: zone}, "2026-10-24T20:00 9h"},
		{"the start is in the gap", EventText{Start: "2026-03-29T02:30", End: "2026-03-29T04:00", Timezone: zone}, "2026-03-29T01:00 1h <"},
		{"the start is in the gap, for a length", EventText{Start: "2026-03-29T02:30", Duration: "90m", Timezone: zone}, "2026-03-29T01:00 1h30m < >"},
		{"the end is in the gap", EventText{Start: "2026-03-29T01:00", End: "2026-03-29T02:30", Timezone: zone}, "2026-03-29T00:00 1h >"},
		{"all of it is in the gap", EventText{Start: "2026-03-29T02:15", End: "2026-03-29T02:45", Timezone: zone}, ""},
		{"the start is there twice", EventText{Start: "2026-10-25T02:30", End: "2026-10-25T04:00", Timezone: zone}, "2026-10-25T00:30 2h30m"},
		{"the end is there twice", EventText{Start: "2026-10-25T01:00", End: "2026-10-25T02:30", Timezone: zone}, "2026-10-24T23:00 1h30m"},
		{"midnight is in the gap", EventText{Start: "2026-09-06", AllDay: true, Timezone: "America/Santiago"}, "2026-09-06T04:00 23h <"},
		{"midnight is there twice", EventText{Start: "2026-10-30", AllDay: true, Timezone: "Africa/Cairo"}, "2026-10-29T22:00 24h"},
		{"half an hour is missing", EventText{Start: "2026-10-04T01:30", End: "2026-10-04T03:00", Timezone: "Australia/Lord_Howe"}, "2026-10-03T15:00 1h"},
		{"a date that does not exist", EventText{Start: "2011-12-30", AllDay: true, Timezone: "Pacific/Apia"}, ""},
		{"a time on a date that does not exist", EventText{Start: "2011-12-30T10:00", Duration: "2h", Timezone: "Pacific/Apia"}, ""},
		{"days of which one does not exist", EventText{Start: "2011-12-29", End: "2012-01-01", AllDay: true, Timezone: "Pacific/Apia"}, "2011-12-29T10:00 48h"},
		{"days of which the first does not exist", EventText{Start: "2011-12-30", End: "2012-01-01", AllDay: true, Timezone: "Pacific/Apia"}, "2011-12-30T10:00 24h <"},

		{"each keeps its time across changes", EventText{Start: "2026-03-28T02:30", Duration: "1h", Timezone: zone, RRule: "FREQ=DAILY;COUNT=3"}, "2026-03-28T01:30 1h, 2026-03-29T01:00 1h < >, 2026-03-30T00:30 1h"},
		{"a start that the rule does not have counts", EventText{Start: "2026-06-05T10:00", Duration: "1h", Timezone: "UTC", RRule: "FREQ=WEEKLY;BYDAY=MO;COUNT=3"}, "2026-06-05T10:00 1h, 2026-06-08T10:00 1h, 2026-06-15T10:00 1h"},
		{"until a day, that included", EventText{Start: "2026-06-05T10:00", Duration: "1h", Timezone: "UTC", RRule: "FREQ=DAILY;UNTIL=20260606"}, "2026-06-05T10:00 1h, 2026-06-06T10:00 1h"},
		{"until an instant", EventText{Start: "2026-06-05T10:00", Duration: "1h", Timezone: zone, RRule: "FREQ=DAILY;UNTIL=20260606T080000Z"}, "2026-06-05T08:00 1h, 2026-06-06T08:00 1h"},
		{"until just before an instant", EventText{Start: "2026-06-05T10:00", Duration: "1h", Timezone: zone, RRule: "FREQ=DAILY;UNTIL=20260606T075959Z"}, "2026-06-05T08:00 1h"},
		{"the rule in small letters", EventText{Start: "2026-06-05T10:00", Duration: "1h", Timezone: "UTC", RRule: "freq=daily;count=2"}, "2026-06-05T10:00 1h, 2026-06-06T10:00 1h"},
		{"further dates", EventText{Start: "2026-06-05T10:00", Duration: "1h", Timezone: "UTC", RDate: []string{"2026-06-09T12:00", "2026-06-07T11:00", "2026-06-05T10:00"}}, "2026-06-05T10:00 1h, 2026-06-07T11:00 1h, 2026-06-09T12:00 1h"},
		{"dates left out", EventText{Start: "2026-06-05T10:00", Duration: "1h", Timezone: "UTC", RRule: "FREQ=DAILY;COUNT=5", ExDate: []string{"2026-06-05T10:00", "2026-06-07", "2026-06-08T11:00"}}, "2026-06-06T10:00 1h, 2026-06-08T10:00 1h, 2026-06-09T10:00 1h"},
		{"a date added and left out", EventText{Start: "2026-06-05", AllDay: true, Timezone: "UTC", RDate: []string{"2026-06-09", "2026-06-11"}, ExDate: []string{"2026-06-09"}}, "2026-06-05T00:00 24h, 2026-06-11T00:00 24h"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c := mustParse(t, Text{Kind: "allow", Events: []EventText{row.event}})
			site, err := time.LoadLocation("Asia/Tokyo")
			if err != nil {
				t.Fatal(err)
			}
			around, err := time.Parse("2006-01-02", row.event.Start[:10])
			if err != nil {
				t.Fatal(err)
			}
			if got := spans(c, site, around.AddDate(0, 0, -20), around.AddDate(0, 0, 20)); got != row.want {
				t.Fatalf("%s; want %s", got, row.want)
			}
		})
	}
}

func TestFreezeEachChristmasForEver(t *testing.T) {
	t.Parallel()
	c := mustParse(t, Text{Kind: "freeze", Events: []EventText{
		{Summary: "Christmas", Start: "2020-12-21", End: "2021-01-07", AllDay: true, Timezone: "Europe/Stockholm", RRule: "FREQ=YEARLY"},
	}})
	friday, problems := window.Parse("Friday", "01:00", "Europe/Stockholm", "4h")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	p := window.Schedule{Windows: []window.Window{friday}, Freezes: []window.Calendar{c}}
	for year := 2020; year < 2190; year += 17 {
		at := time.Date(year, 12, 26, 0, 0, 0, 0, time.UTC)
		freeze, ok := p.NextFreeze(at)
		if want := time.Date(year+1, 1, 6, 23, 0, 0, 0, time.UTC); !ok || !freeze.Contains(at) || !freeze.End.Equal(want) || freeze.First.Origin.Summary != "Christmas" {
			t.Errorf("frozen %v, %v; want until %v", freeze.Span, ok, want)
		}
		if o, ok := p.Next(at); !ok || o.Start.Before(freeze.End) || o.Start.Sub(freeze.End) > 8*day {
			t.Errorf("in %d the next opening is %v, %v", year, o.Span, ok)
		}
	}
}

// The test compares with a slow oracle, which reads the clock at each minute of a
// night.
func TestEventsInOddZonesAreThoseOfTheClock(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ zone, date string }{
		{"Europe/Stockholm", "2026-03-29"},
		{"Europe/Stockholm", "2026-10-25"},
		{"America/Santiago", "2026-09-06"},
		{"America/Santiago", "2026-04-05"},
		{"Asia/Beirut", "2026-03-29"},
		{"Asia/Beirut", "2026-10-25"},
		{"Africa/Cairo", "2026-04-24"},
		{"Africa/Cairo", "2026-10-30"},
		{"Australia/Lord_Howe", "2026-10-04"},
		{"Australia/Lord_Howe", "2026-04-05"},
		{"Africa/Casablanca", "2026-02-15"},
		{"Africa/Casablanca", "2026-03-22"},
		{"America/Nuuk", "2026-03-28"},
		{"America/Nuuk", "2026-10-24"},
		{"Antarctica/Troll", "2026-03-29"},
		{"Antarctica/Troll", "2026-10-25"},
		{"America/Havana", "2026-03-08"},
		{"America/Havana", "2026-11-01"},
		{"Atlantic/Azores", "2026-03-29"},
		{"Pacific/Chatham", "2026-09-27"},
		{"Pacific/Apia", "2011-12-29"},
		{"Pacific/Apia", "2011-12-31"},
		{"America/Caracas", "2016-05-01"},
		{"Asia/Pyongyang", "2018-05-05"},
	} {
		t.Run(row.zone+" "+row.date, func(t *testing.T) {
			t.Parallel()
			location, err := time.LoadLocation(row.zone)
			if err != nil {
				t.Fatal(err)
			}
			date, err := time.Parse(time.DateOnly, row.date)
			if err != nil {
				t.Fatal(err)
			}
			compareWithClock(t, location, date)
		})
	}
}

// compareWithClock compares events at each 20 minutes around midnight with the wall
// clock: an event with an end lasts from the first minute at which the clock shows its
// start or later to the first at which it shows its end or later.
func compareWithClock(t *testing.T, location *time.Location, date time.Time) {
	t.Helper()
	from := date.Add(-48 * time.Hour)
	walls := make([]time.Time, 96*60)
	for i := range walls {
		at := from.Add(time.Duration(i) * time.Minute).In(location)
		walls[i] = time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), 0, 0, time.UTC)
	}
	first := func(wall time.Time) int {
		for i, shown := range walls {
			if !shown.Before(wall) {
				return i
			}
		}
		return len(walls)
	}
	for offset := -2 * time.Hour; offset <= 5*time.Hour; offset += 20 * time.Minute {
		start, end := date.Add(offset), date.Add(offset+50*time.Minute)
		const layout = "2006-01-02T15:04"
		c := mustParse(t, Text{Kind: "freeze", Events: []EventText{{Start: start.Format(layout), End: end.Format(layout), Timezone: location.String()}}})
		on := make([]bool, len(walls))
		for o := range c.Occurrences(nil, from, from.Add(96*time.Hour)) {
			for i := range on {
				on[i] = on[i] || o.Contains(from.Add(time.Duration(i)*time.Minute))
			}
		}
		begins, ends := first(start), first(end)
		for i := range on {
			if want := begins <= i && i < ends; on[i] != want {
				t.Fatalf("from %v to %v, at %v on: %v; want %v", start, end, walls[i], on[i], want)
			}
		}
	}
}

// The occurrences of any span are the occurrences of a long span that overlap it.
func TestAnyStretchOfTimeHasItsOccurrences(t *testing.T) {
	t.Parallel()
	from, to := time.Date(2011, 12, 1, 0, 0, 0, 0, time.UTC), time.Date(2012, 2, 1, 0, 0, 0, 0, time.UTC)
	for _, zone := range []string{"Pacific/Apia", "Antarctica/Troll", "America/Santiago", "UTC"} {
		c := mustParse(t, Text{Kind: "freeze", Events: []EventText{
			{Start: "2011-12-01", AllDay: true, Timezone: zone, RRule: "FREQ=DAILY"},
			{Start: "2011-12-01", End: "2011-12-04", AllDay: true, Timezone: zone, RRule: "FREQ=DAILY;INTERVAL=29"},
			{Start: "2011-12-01T23:30", Duration: "30h", Timezone: zone, RRule: "FREQ=WEEKLY;BYDAY=MO,TH"},
			{Start: "2011-12-03T00:30", Duration: "1h", Timezone: zone, RDate: []string{"2012-01-01T00:00"}},
		}})
		var all []window.Occurrence
		for o := range c.Occurrences(nil, from, to) {
			all = append(all, o)
		}
		for at := from; at.Before(to); at = at.Add(45 * time.Minute) {
			end, got, want := at.Add(30*time.Minute), 0, 0
			for range c.Occurrences(nil, at, end) {
				got++
			}
			for _, o := range all {
				if o.Start.Before(end) && o.End.After(at) {
					want++
				}
			}
			if got != want {
				t.Fatalf("%s from %v: %d occurrences; want %d", zone, at, got, want)
			}
		}
	}
}
