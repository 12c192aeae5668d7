package calendar

import (
	"fmt"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
)

// plan is one of 10 windows and 20 calendars with 5 events each: freezes at
// Christmas, at quarter ends, on release days, at work; extra windows.
func plan(t testing.TB) window.Schedule {
	t.Helper()
	var p window.Schedule
	zones := []string{"Europe/Stockholm", "America/New_York", "Asia/Tokyo", "America/Santiago", ""}
	for i := range 10 {
		w, problems := window.Parse("Friday, Saturday", fmt.Sprintf("%02d:30", i), zones[i%5], "4h")
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		p.Windows = append(p.Windows, w)
	}
	for i := range 20 {
		kind := []Kind{Freeze, Freeze, Freeze, Allow}[i%4]
		zone := zones[i%5]
		c := mustParse(t, Text{Kind: string(kind), Events: []EventText{
			{Summary: "Christmas", Start: "2020-12-21", End: "2020-12-27", AllDay: true, Timezone: zone, RRule: "FREQ=YEARLY"},
			{Summary: "quarter end", Start: "2020-03-31T12:00", Duration: "1d", Timezone: zone, RRule: "FREQ=MONTHLY;INTERVAL=3;BYMONTHDAY=-1"},
			{Summary: "release", Start: "2020-01-07T08:00", End: "2020-01-07T18:00", Timezone: zone, RRule: "FREQ=MONTHLY;BYDAY=1TU"},
			{Summary: "at work", Start: "2020-01-06T08:00", Duration: "9h", Timezone: zone, RRule: "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;UNTIL=20301231"},
			{Summary: "once", Start: fmt.Sprintf("2027-01-%02dT08:00", i+1), Duration: "9h", Timezone: zone},
		}})
		if kind == Freeze {
			p.Freezes = append(p.Freezes, c)
		} else {
			p.Allow = append(p.Allow, c)
		}
	}
	return p
}

func BenchmarkNextOf10WindowsAnd20Calendars(b *testing.B) {
	p := plan(b)
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := p.Next(at); !ok {
			b.Fatal("no next opening")
		}
	}
}

func Benchmark20YearsOf10WindowsAnd20Calendars(b *testing.B) {
	p := plan(b)
	b.ReportAllocs()
	for b.Loop() {
		count := 0
		for range p.Ahead(year(2026), year(2046), 0) {
			count++
		}
		if count < 1000 {
			b.Fatalf("only %d openings", count)
		}
	}
}

func year(y int) time.Time { return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC) }
