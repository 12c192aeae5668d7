package window

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// oddZones are zonesInTests and further zones whose rules changed between 2000
// and 2040: zones that abolished changes of the clock, moved across the date
// line, or changed around Ramadan, by half an hour, at midnight, once or twice a
// year.
var oddZones = append(slices.Clone(zonesInTests[1:]),
	"Africa/Tripoli", "Africa/Windhoek", "America/Argentina/San_Luis", "America/Sao_Paulo", "America/Mexico_City",
	"America/Fort_Nelson", "Antarctica/Casey", "Asia/Amman", "Asia/Dhaka", "Asia/Kathmandu", "Asia/Tehran", "Asia/Almaty",
	"Europe/Istanbul", "Europe/Moscow", "Europe/Volgograd", "Pacific/Kwajalein", "Pacific/Norfolk", "Pacific/Tongatapu",
)

// changes returns the changes of a location's clock, found by reading the clock
// through the days on which it changed.
func changes(location *time.Location, from, to time.Time) []time.Time {
	var found []time.Time
	offset := func(at time.Time) int { _, o := at.In(location).Zone(); return o }
	for date := from; date.Before(to); date = date.Add(day) {
		if offset(date) == offset(date.Add(day)) {
			continue
		}
		at := date
		for offset(at) == offset(date) {
			at = at.Add(15 * time.Minute)
		}
		for offset(at.Add(-time.Minute)) != offset(date) {
			at = at.Add(-time.Minute)
		}
		found = append(found, at)
	}
	return found
}

// minutes are successive readings of a location's wall clock.
type minutes struct {
	from  time.Time
	tick  time.Duration
	walls []time.Time
	dates map[time.Time]bool
}

// minutesOf reads the clock around a change: every five minutes, or every minute
// if it changed at an odd minute, as in America/St_Johns at 00:01.
func minutesOf(location *time.Location, change time.Time, around time.Duration) minutes {
	from, to := change.Add(-around), change.Add(around)
	m := minutes{from: from, tick: time.Minute, dates: map[time.Time]bool{}}
	if change.Minute()%5 == 0 {
		m.tick = 5 * time.Minute
	}
	for at := from; at.Before(to); at = at.Add(m.tick) {
		local := at.In(location)
		wall := time.Date(local.Year(), local.Month(), local.Day(), local.Hour(), local.Minute(), 0, 0, time.UTC)
		m.walls = append(m.walls, wall)
		m.dates[midnightOf(wall)] = true
	}
	return m
}

func midnightOf(wall time.Time) time.Time {
	return time.Date(wall.Year(), wall.Month(), wall.Day(), 0, 0, 0, 0, time.UTC)
}

// start is the documented rule applied to the readings: the first reading of the
// time or a later one, provided that the clock ever shows the date.
func (m minutes) start(wall time.Time) (time.Time, bool) {
	i := slices.IndexFunc(m.walls, func(shown time.Time) bool { return !shown.Before(wall) })
	return m.from.Add(time.Duration(i) * m.tick), m.dates[midnightOf(wall)]
}

// The test examines each change of a clock from a day before to a day after it.
// For a change at midnight it takes two days, since dates are skipped too.
func TestWindowsAroundEveryChangeOfTheClockFrom2000To2040(t *testing.T) {
	t.Parallel()
	times := []int{0, 15, 30, 60, 75, 90, 115, 120, 135, 150, 180, 210, 23 * 60, 23*60 + 30, 23*60 + 55}
	from, to := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2041, 1, 1, 0, 0, 0, 0, time.UTC)
	seen := 0
	for _, name := range oddZones {
		location := mustLocation(t, name)
		for _, change := range changes(location, from, to) {
			seen++
			around := 26 * time.Hour
			if change.Add(-1).In(location).Day() != change.In(location).Day() {
				around = 50 * time.Hour
			}
			m := minutesOf(location, change, around)
			plan := Schedule{Site: location}
			for i := range 2 {
				start := TimeOfDay{minutes: times[(seen+5*i)%len(times)]}
				plan.Windows = append(plan.Windows, Window{Days: 127, Start: start, Duration: 10 * time.Minute})
			}
			if problem := compare(plan, m); problem != "" {
				t.Errorf("%s around %v: %s", name, change, problem)
			}
		}
	}
	if seen < 1000 {
		t.Errorf("only %d changes of the clock", seen)
	}
}

// compare compares the openings of each window of the schedule with the
// readings. The windows are of one zone and of every day.
func compare(p Schedule, m minutes) string {
	for _, w := range p.Windows {
		var want []Span
		var moved []bool
		for date := midnightOf(m.walls[0]).Add(day); date.Before(midnightOf(m.walls[len(m.walls)-1])); date = date.Add(day) {
			wall := date.Add(time.Duration(w.Start.minutes) * time.Minute)
			if at, ok := m.start(wall); ok {
				want = append(want, Span{at, at.Add(w.Duration)})
				moved = append(moved, !m.walls[int(at.Sub(m.from)/m.tick)].Equal(wall))
			}
		}
		alone := Schedule{Windows: []Window{w}, Site: p.Site}
		at := want[0].Start
		for i, span := range want {
			got, ok := alone.Next(at)
			if !ok || got.Span != span || got.StartMoved() != moved[i] {
				return fmt.Sprintf("%s: next after %v is %v, moved %v; want %v, moved %v", w.Start, at, got.Span, got.StartMoved(), span, moved[i])
			}
			at = span.End
		}
	}
	return ""
}

func TestEveryYearHasItsWindows(t *testing.T) {
	t.Parallel()
	for i, name := range oddZones {
		plan := Schedule{Site: mustLocation(t, name), Windows: []Window{mustParse(t, week7, "02:30", SiteLocal, "1h")}}
		for year := 2000 + i%5; year <= 2040; year += 5 {
			from := time.Date(year, 1, 2, 0, 0, 0, 0, plan.Site)
			to := time.Date(year, 12, 31, 0, 0, 0, 0, plan.Site)
			dates := map[string]bool{}
			for o := range plan.Ahead(from, to, 0) {
				dates[o.Start.In(plan.Site).Format(time.DateOnly)] = true
			}
			want := 0
			for date := time.Date(year, 1, 2, 12, 0, 0, 0, time.UTC); date.Month() < 12 || date.Day() < 31; date = date.AddDate(0, 0, 1) {
				local := time.Date(year, date.Month(), date.Day(), 12, 0, 0, 0, plan.Site)
				if local.Day() == date.Day() {
					want++
				}
			}
			if len(dates) != want {
				t.Errorf("%s in %d: %d dates; want %d", name, year, len(dates), want)
			}
		}
	}
}
