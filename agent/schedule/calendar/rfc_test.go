package calendar

import (
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
)

// The rows are the examples of RFC 5545 3.8.5.3 except those with a frequency finer than
// DAILY. The dates have the RFC's form; a row that ends with "..." is not complete.
func TestExamplesOfRFC5545(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, start, rule, want string }{
		{"daily for 10 occurrences", "19970902", "FREQ=DAILY;COUNT=10", "1997 Sep 2 3 4 5 6 7 8 9 10 11"},
		{"every other day, forever", "19970902", "FREQ=DAILY;INTERVAL=2", "1997 Sep 2 4 6 8 10 12 14 16 18 20 22 24 26 28 30 Oct 2 4 6 ..."},
		{"every 10 days, 5 occurrences", "19970902", "FREQ=DAILY;INTERVAL=10;COUNT=5", "1997 Sep 2 12 22 Oct 2 12"},
		{"weekly for 10 occurrences", "19970902", "FREQ=WEEKLY;COUNT=10", "1997 Sep 2 9 16 23 30 Oct 7 14 21 28 Nov 4"},
		{"weekly until a day", "19970902", "FREQ=WEEKLY;UNTIL=19971224T000000Z", "1997 Sep 2 9 16 23 30 Oct 7 14 21 28 Nov 4 11 18 25 Dec 2 9 16 23"},
		{"every other week, forever", "19970902", "FREQ=WEEKLY;INTERVAL=2;WKST=SU", "1997 Sep 2 16 30 Oct 14 28 Nov 11 25 Dec 9 23 1998 Jan 6 20 Feb 3 17 ..."},
		{"weekly on Tuesday and Thursday until", "19970902", "FREQ=WEEKLY;UNTIL=19971007T000000Z;WKST=SU;BYDAY=TU,TH", "1997 Sep 2 4 9 11 16 18 23 25 30 Oct 2"},
		{"weekly on Tuesday and Thursday for 10", "19970902", "FREQ=WEEKLY;COUNT=10;WKST=SU;BYDAY=TU,TH", "1997 Sep 2 4 9 11 16 18 23 25 30 Oct 2"},
		{"every other week on Monday, Wednesday and Friday", "19970901", "FREQ=WEEKLY;INTERVAL=2;UNTIL=19971224T000000Z;WKST=SU;BYDAY=MO,WE,FR", "1997 Sep 1 3 5 15 17 19 29 Oct 1 3 13 15 17 27 29 31 Nov 10 12 14 24 26 28 Dec 8 10 12 22"},
		{"every other week on Tuesday and Thursday", "19970902", "FREQ=WEEKLY;INTERVAL=2;COUNT=8;WKST=SU;BYDAY=TU,TH", "1997 Sep 2 4 16 18 30 Oct 2 14 16"},
		{"monthly on the first Friday for 10", "19970905", "FREQ=MONTHLY;COUNT=10;BYDAY=1FR", "1997 Sep 5 Oct 3 Nov 7 Dec 5 1998 Jan 2 Feb 6 Mar 6 Apr 3 May 1 Jun 5"},
		{"monthly on the first Friday until", "19970905", "FREQ=MONTHLY;UNTIL=19971224T000000Z;BYDAY=1FR", "1997 Sep 5 Oct 3 Nov 7 Dec 5"},
		{"every other month on the first and last Sunday", "19970907", "FREQ=MONTHLY;INTERVAL=2;COUNT=10;BYDAY=1SU,-1SU", "1997 Sep 7 28 Nov 2 30 1998 Jan 4 25 Mar 1 29 May 3 31"},
		{"monthly on the second-to-last Monday", "19970922", "FREQ=MONTHLY;COUNT=6;BYDAY=-2MO", "1997 Sep 22 Oct 20 Nov 17 Dec 22 1998 Jan 19 Feb 16"},
		{"monthly on the third-to-the-last day", "19970928", "FREQ=MONTHLY;BYMONTHDAY=-3", "1997 Sep 28 Oct 29 Nov 28 Dec 29 1998 Jan 29 Feb 26 ..."},
		{"monthly on the 2nd and 15th", "19970902", "FREQ=MONTHLY;COUNT=10;BYMONTHDAY=2,15", "1997 Sep 2 15 Oct 2 15 Nov 2 15 Dec 2 15 1998 Jan 2 15"},
		{"monthly on the first and last day", "19970930", "FREQ=MONTHLY;COUNT=10;BYMONTHDAY=1,-1", "1997 Sep 30 Oct 1 31 Nov 1 30 Dec 1 31 1998 Jan 1 31 Feb 1"},
		{"every 18 months on the 10th to 15th", "19970910", "FREQ=MONTHLY;INTERVAL=18;COUNT=10;BYMONTHDAY=10,11,12,13,14,15", "1997 Sep 10 11 12 13 14 15 1999 Mar 10 11 12 13"},
		{"every Tuesday, every other month", "19970902", "FREQ=MONTHLY;INTERVAL=2;BYDAY=TU", "1997 Sep 2 9 16 23 30 Nov 4 11 18 25 1998 Jan 6 13 20 27 Mar 3 10 17 24 31 ..."},
		{"yearly in June and July", "19970610", "FREQ=YEARLY;COUNT=10;BYMONTH=6,7", "1997 Jun 10 Jul 10 1998 Jun 10 Jul 10 1999 Jun 10 Jul 10 2000 Jun 10 Jul 10 2001 Jun 10 Jul 10"},
		{"every other year in January, February and March", "19970310", "FREQ=YEARLY;INTERVAL=2;COUNT=10;BYMONTH=1,2,3", "1997 Mar 10 1999 Jan 10 Feb 10 Mar 10 2001 Jan 10 Feb 10 Mar 10 2003 Jan 10 Feb 10 Mar 10"},
		{"every third year on the 1st, 100th and 200th day", "19970101", "FREQ=YEARLY;INTERVAL=3;COUNT=10;BYYEARDAY=1,100,200", "1997 Jan 1 Apr 10 Jul 19 2000 Jan 1 Apr 9 Jul 18 2003 Jan 1 Apr 10 Jul 19 2006 Jan 1"},
		{"every 20th Monday of the year", "19970519", "FREQ=YEARLY;BYDAY=20MO", "1997 May 19 1998 May 18 1999 May 17 ..."},
		{"Monday of week 20", "19970512", "FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO", "1997 May 12 1998 May 11 1999 May 17 ..."},
		{"every Thursday in March", "19970313", "FREQ=YEARLY;BYMONTH=3;BYDAY=TH", "1997 Mar 13 20 27 1998 Mar 5 12 19 26 1999 Mar 4 11 18 25 ..."},
		{"every Thursday in summer", "19970605", "FREQ=YEARLY;BYDAY=TH;BYMONTH=6,7,8", "1997 Jun 5 12 19 26 Jul 3 10 17 24 31 Aug 7 14 21 28 1998 Jun 4 11 18 25 Jul 2 9 16 23 30 Aug 6 13 20 27 ..."},
		{"the first Saturday that follows the first Sunday", "19970913", "FREQ=MONTHLY;BYDAY=SA;BYMONTHDAY=7,8,9,10,11,12,13", "1997 Sep 13 Oct 11 Nov 8 Dec 13 1998 Jan 10 Feb 7 Mar 7 Apr 11 May 9 Jun 13 ..."},
		{"election day of the USA", "19961105", "FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8", "1996 Nov 5 2000 Nov 7 2004 Nov 2 ..."},
		{"the third of Tuesday, Wednesday and Thursday", "19970904", "FREQ=MONTHLY;COUNT=3;BYDAY=TU,WE,TH;BYSETPOS=3", "1997 Sep 4 Oct 7 Nov 6"},
		{"the second-to-last weekday of the month", "19970929", "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2", "1997 Sep 29 Oct 30 Nov 27 Dec 30 1998 Jan 29 Feb 26 Mar 30 ..."},
		{"weeks that start on Monday", "19970805", "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=MO", "1997 Aug 5 10 19 24"},
		{"weeks that start on Sunday", "19970805", "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=SU", "1997 Aug 5 17 19 31"},
		{"a date that does not exist is ignored", "20070115", "FREQ=MONTHLY;BYMONTHDAY=15,30;COUNT=5", "2007 Jan 15 30 Feb 15 Mar 15 30"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			want, endless := strings.CutSuffix(row.want, " ...")
			got := datesOf(t, newYork(row.start, row.rule), len(strings.Fields(want)))
			if endless {
				got = got[:min(len(got), len(want))]
			}
			if got != want {
				t.Fatalf("%s from %s:\n%s\nwant\n%s", row.rule, row.start, got, want)
			}
		})
	}
}

func TestLongExamplesOfRFC5545(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, start, rule string
		count             int
		last              string
	}{
		{"daily until a day", "19970902", "FREQ=DAILY;UNTIL=19971224T000000Z", 113, "1997-12-23T09:00"},
		{"every day in January, yearly", "19980101", "FREQ=YEARLY;UNTIL=20000131T140000Z;BYMONTH=1;BYDAY=SU,MO,TU,WE,TH,FR,SA", 93, "2000-01-31T09:00"},
		{"every day in January, daily", "19980101", "FREQ=DAILY;UNTIL=20000131T140000Z;BYMONTH=1", 93, "2000-01-31T09:00"},
		{"every 20 minutes from 9:00 to 16:40", "19970902", "FREQ=DAILY;UNTIL=19970903T235959;BYHOUR=9,10,11,12,13,14,15,16;BYMINUTE=0,20,40", 48, "1997-09-03T16:40"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got := wallsOf(t, newYork(row.start, row.rule), time.Time{})
			if len(got) != row.count || got[len(got)-1].Format("2006-01-02T15:04") != row.last {
				t.Fatalf("%d occurrences, the last %v; want %d until %s", len(got), got[len(got)-1], row.count, row.last)
			}
		})
	}
}

func TestFridayThe13thOfRFC5545(t *testing.T) {
	t.Parallel()
	text := strings.Replace(newYork("19970902", "FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13"), "RRULE", "EXDATE;TZID=America/New_York:19970902T090000\r\nRRULE", 1)
	if got, want := datesOf(t, text, 13), "1998 Feb 13 Mar 13 Nov 13 1999 Aug 13 2000 Oct 13"; !strings.HasPrefix(got, want) {
		t.Fatalf("%s; want %s", got, want)
	}
}

// newYork is an event at 09:00 in New York, as in all examples of the RFC.
func newYork(date, rule string) string {
	return vcalendar("DTSTART;TZID=America/New_York:"+date+"T090000", "DURATION:PT1M", "RRULE:"+rule)
}

func vcalendar(lines ...string) string {
	all := append([]string{"BEGIN:VCALENDAR", "VERSION:2.0", "BEGIN:VEVENT"}, lines...)
	return strings.Join(append(all, "END:VEVENT", "END:VCALENDAR", ""), "\r\n")
}

// wallsOf returns when the events of an iCalendar text start, on the clock of
// New York, up to an instant if one is given.
func wallsOf(t *testing.T, text string, to time.Time) []time.Time {
	t.Helper()
	c := mustParse(t, Text{Kind: "freeze", ICS: new(text)})
	clock := window.NewClock(c.events[0].zone.Location(nil))
	if to.IsZero() {
		to = time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	var walls []time.Time
	for o := range c.Occurrences(nil, time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC), to) {
		walls = append(walls, clock.Wall(o.Start))
	}
	return sorted(walls)
}

// datesOf writes the first occurrences as the RFC does: each year and month once.
func datesOf(t *testing.T, text string, words int) string {
	t.Helper()
	var got []string
	var year, month string
	for _, wall := range wallsOf(t, text, time.Time{}) {
		if y := wall.Format("2006"); y != year {
			got, year, month = append(got, y), y, ""
		}
		if m := wall.Format("Jan"); m != month {
			got, month = append(got, m), m
		}
		if got = append(got, wall.Format("2")); len(got) > words {
			break
		}
	}
	return strings.Join(got, " ")
}

func mustParse(t testing.TB, text Text) *Calendar {
	t.Helper()
	c, problems := Parse("test", text)
	if len(problems) > 0 {
		t.Fatalf("%+v: %v", text, problems)
	}
	return c
}
