package calendar

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestProblemsOfEvents(t *testing.T) {
	t.Parallel()
	ok := EventText{Start: "2026-06-05T18:00", Duration: "4h"}
	with := func(change func(*EventText)) Text {
		e := ok
		change(&e)
		return Text{Kind: "allow", Events: []EventText{e}}
	}
	rule := func(text string) Text { return with(func(e *EventText) { e.RRule = text }) }
	for _, row := range []struct {
		name string
		text Text
		want string
	}{
		{"no kind", Text{}, `kind: "" is not a kind of calendar; use allow or freeze`},
		{"empty iCalendar", Text{Kind: "freeze", ICS: new("")}, `ics: the iCalendar text is empty, so the calendar would have no event; write the text, or leave ics out`},
		{"events and iCalendar", Text{Kind: "allow", Events: []EventText{ok}, ICS: new("BEGIN:VCALENDAR")}, `ics: there are events besides the iCalendar text; use one of them`},
		{"the same event twice", Text{Kind: "allow", Events: []EventText{ok, ok}}, `events[1]: is the same as events[0]; leave one of them out`},

		{"no start", with(func(e *EventText) { e.Start = "" }), `events[0].start: "" is not a date or a time; use 2026-12-24 or 2026-12-24T18:00`},
		{"24:00", with(func(e *EventText) { e.Start = "2026-06-05T24:00" }), `events[0].start: "2026-06-05T24:00" is not a date or a time; use 2026-12-24 or 2026-12-24T18:00`},
		{"a date that does not exist", with(func(e *EventText) { e.Start = "2026-02-30T18:00" }), `events[0].start: "2026-02-30T18:00" is not a date or a time; use 2026-12-24 or 2026-12-24T18:00`},
		{"parts of a second", with(func(e *EventText) { e.Start = "2026-06-05T18:00:00.5" }), `events[0].start: "2026-06-05T18:00:00.5" is not a date or a time; use 2026-12-24 or 2026-12-24T18:00`},
		{"an offset", with(func(e *EventText) { e.Start = "2026-06-05T18:00:00+02:00" }), `events[0].start: "2026-06-05T18:00:00+02:00" has an offset; write the wall-clock time, such as 2026-12-24T18:00, and name its zone in timezone`},
		{"the wrong century", with(func(e *EventText) { e.Start = "0226-06-05T18:00" }), `events[0].start: "0226-06-05T18:00" is in the year 226; use 1970 to 2199`},
		{"a date that does not last all day", with(func(e *EventText) { e.Start = "2026-06-05" }), `events[0].start: "2026-06-05" has no time; add one, such as 2026-12-24T18:00, or say that the event lasts all day (all-day: true)`},
		{"all day at a time", with(func(e *EventText) { e.AllDay = true }), `events[0].start: "2026-06-05T18:00" has a time, but the event lasts all day; use a date such as 2026-12-24`},
		{"unknown zone", with(func(e *EventText) { e.Timezone = "Europe/Stokholm" }), `events[0].timezone: "Europe/Stokholm" is not a time zone; use site-local, UTC or an IANA name; did you mean Europe/Stockholm?`},

		{"neither end nor duration", with(func(e *EventText) { e.Duration = "" }), `events[0].start: the event that starts at "2026-06-05T18:00" has no end; add end or duration`},
		{"both end and duration", with(func(e *EventText) { e.End = "2026-06-05T19:00" }), `events[0].duration: "4h" is given besides end; use one of them`},
		{"ends before it starts", with(func(e *EventText) { e.Duration, e.End = "", "2026-06-05T17:00" }), `events[0].end: with "2026-06-05T17:00" the event does not end after its start; let it last from 1m to 7d`},
		{"ends as it starts", with(func(e *EventText) { e.Duration = "0s" }), `events[0].duration: with "0s" the event does not end after its start; let it last from 1m to 7d`},
		{"too short", with(func(e *EventText) { e.Duration = "59s" }), `events[0].duration: with "59s" the event is too short; let it last from 1m to 7d`},
		{"too long to open", with(func(e *EventText) { e.Duration = "8d" }), `events[0].duration: with "8d" the event lasts 8d, too long for kind allow; let it last from 1m to 7d`},
		{"too long a freeze", Text{Kind: "freeze", Events: []EventText{{Start: "2026-01-01", End: "2027-01-03", AllDay: true}}}, `events[0].end: with "2027-01-03" the event lasts 367d, too long for kind freeze; let it last from 1m to 366d`},
		{"unknown unit", with(func(e *EventText) { e.Duration = "4w" }), `events[0].duration: "4w" is not a duration; use days, hours, minutes and seconds in this order, such as 4h or 1d4h18s`},
		{"half days all day", Text{Kind: "freeze", Events: []EventText{{Start: "2026-01-01", Duration: "36h", AllDay: true}}}, `events[0].duration: "36h" is not a multiple of 1d, but the event lasts all day; use days, such as 1d`},
		{"a date as end", with(func(e *EventText) { e.Duration, e.End = "", "2026-06-06" }), `events[0].end: "2026-06-06" has no time, but the start has; add one`},
		{"a time as end of a day", Text{Kind: "freeze", Events: []EventText{{Start: "2026-01-01", End: "2026-01-02T10:00", AllDay: true}}}, `events[0].end: "2026-01-02T10:00" has a time, but the event lasts all day; use a date`},
		{"a date to add to times", with(func(e *EventText) { e.RDate = []string{"2026-06-07T10:00", "2026-06-06"} }), `events[0].rdate[1]: 2026-06-06 does not have the form of the start, 2026-06-05T18:00:00; use dates for both or times for both`},
		{"a time to leave out of days", Text{Kind: "freeze", Events: []EventText{{Start: "2026-01-01", AllDay: true, ExDate: []string{"2026-01-02T10:00"}}}}, `events[0].exdate[0]: 2026-01-02T10:00:00 has a time, but the event lasts all day; use a date`},
		{"no date to leave out", with(func(e *EventText) { e.ExDate = []string{"tomorrow"} }), `events[0].exdate[0]: "tomorrow" is not a date or a time; use 2026-12-24 or 2026-12-24T18:00`},

		{"no rule", rule("every Monday"), `events[0].rrule: "every Monday" is not a recurrence rule; use parts such as FREQ=YEARLY;BYMONTH=12`},
		{"no frequency", rule("BYDAY=MO"), `events[0].rrule: "BYDAY=MO" has no FREQ; add FREQ=DAILY, WEEKLY, MONTHLY or YEARLY`},
		{"frequency misspelt", rule("FREQ=WEKLY"), `events[0].rrule: FREQ=WEKLY of "FREQ=WEKLY" is not a frequency; did you mean WEEKLY?`},
		{"every hour", rule("FREQ=HOURLY"), `events[0].rrule: FREQ=HOURLY of "FREQ=HOURLY" is finer than a maintenance calendar goes; use DAILY, WEEKLY, MONTHLY or YEARLY`},
		{"every second", rule("FREQ=DAILY;BYSECOND=1,2"), `events[0].rrule: BYSECOND=1,2 of "FREQ=DAILY;BYSECOND=1,2" is finer than a maintenance calendar goes; leave it out`},
		{"part misspelt", rule("FREQ=DAILY;INTERVALL=2"), `events[0].rrule: "FREQ=DAILY;INTERVALL=2" has the part INTERVALL, which is not known; did you mean INTERVAL?`},
		{"part twice", rule("FREQ=DAILY;FREQ=DAILY"), `events[0].rrule: "FREQ=DAILY;FREQ=DAILY" has FREQ twice; give each part once`},
		{"part empty", rule("FREQ=DAILY;UNTIL="), `events[0].rrule: "FREQ=DAILY;UNTIL=" is not a recurrence rule; use parts such as FREQ=YEARLY;BYMONTH=12`},
		{"the name before it", rule("RRULE:FREQ=DAILY"), `events[0].rrule: "RRULE:FREQ=DAILY" has the part RRULE:FREQ, which is not known; use parts such as FREQ=YEARLY;BYMONTH=12`},
		{"interval 0", rule("FREQ=DAILY;INTERVAL=0"), `events[0].rrule: INTERVAL=0 of "FREQ=DAILY;INTERVAL=0" has 0, which is out of range; use 1 to 1000`},
		{"millions of times", rule("FREQ=DAILY;COUNT=1000000"), `events[0].rrule: COUNT=1000000 of "FREQ=DAILY;COUNT=1000000" has 1000000, which is out of range; use 1 to 10000`},
		{"every minute", rule("FREQ=DAILY;BYHOUR=1,2;BYMINUTE=" + numbersTo(59)), `events[0].rrule: "FREQ=DAILY;BYHOUR=1,2;BYMINUTE=` + numbersTo(59)[:49] + `..." happens 120 times a day; use at most 48`},
		{"month 13", rule("FREQ=YEARLY;BYMONTH=13"), `events[0].rrule: BYMONTH=13 of "FREQ=YEARLY;BYMONTH=13" has 13, which is out of range; use 1 to 12`},
		{"day 0 of the month", rule("FREQ=MONTHLY;BYMONTHDAY=0"), `events[0].rrule: BYMONTHDAY=0 of "FREQ=MONTHLY;BYMONTHDAY=0" has a 0; count from 1, or from the end from -1`},
		{"a day in full", rule("FREQ=WEEKLY;BYDAY=MONDAY"), `events[0].rrule: BYDAY=MONDAY of "FREQ=WEEKLY;BYDAY=MONDAY" has "MONDAY", which is not a day; use MO, TU, WE, TH, FR, SA or SU`},
		{"the first Monday of the week", rule("FREQ=WEEKLY;BYDAY=1MO"), `events[0].rrule: "FREQ=WEEKLY;BYDAY=1MO" numbers a day where there is none to count; number days with FREQ=MONTHLY, or YEARLY without BYWEEKNO`},
		{"week of the month", rule("FREQ=MONTHLY;BYWEEKNO=2"), `events[0].rrule: "FREQ=MONTHLY;BYWEEKNO=2" has BYWEEKNO, which does not go with FREQ=MONTHLY; use FREQ=YEARLY or leave it out`},
		{"nothing to choose from", rule("FREQ=MONTHLY;BYSETPOS=1"), `events[0].rrule: "FREQ=MONTHLY;BYSETPOS=1" has BYSETPOS with nothing to choose from; add a part such as BYDAY`},
		{"count and until", rule("FREQ=DAILY;COUNT=2;UNTIL=20270101"), `events[0].rrule: "FREQ=DAILY;COUNT=2;UNTIL=20270101" has both COUNT and UNTIL; use one of them`},
		{"over before it starts", rule("FREQ=DAILY;UNTIL=20260604"), `events[0].rrule: UNTIL=20260604 of "FREQ=DAILY;UNTIL=20260604" is before the event starts; use a later date`},
		{"until an instant at any site", rule("FREQ=DAILY;UNTIL=20270101T000000Z"), `events[0].rrule: UNTIL=20270101T000000Z of "FREQ=DAILY;UNTIL=20270101T000000Z" names a zone, but the event goes by the clock of its site; write both with a zone, or neither`},
		{"never", rule("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"), `events[0].rrule: "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30" never happens in the 60 years after its start; check the dates that it names`},
		{"endless text", rule("FREQ=DAILY;BYDAY=" + strings.Repeat("MO,", 500)), `events[0].rrule: "FREQ=DAILY;BYDAY=` + strings.Repeat("MO,", 21) + `..." is too long for a rule; use at most 1000 bytes`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c, problems := Parse("test", row.text)
			if c != nil || len(problems) != 1 || problems[0].Error() != row.want {
				t.Fatalf("%v\nwant\n%s", problems, row.want)
			}
		})
	}
}

func numbersTo(n int) string {
	var all []string
	for i := range n + 1 {
		all = append(all, fmt.Sprint(i))
	}
	return strings.Join(all, ",")
}

func TestLimitsOfACalendar(t *testing.T) {
	t.Parallel()
	var many, often, wrong []EventText
	for i := range MaxEvents + 1 {
		start := time.Date(2026, 1, 1, 0, i, 0, 0, time.UTC).Format("2006-01-02T15:04")
		many = append(many, EventText{Start: start, Duration: "1h"})
		often = append(often, EventText{Start: start, Duration: "1h", RRule: "FREQ=DAILY"})
		wrong = append(wrong, EventText{Start: "soon", Summary: start})
	}
	for _, row := range []struct {
		name   string
		events []EventText
		count  int
		first  string
	}{
		{"too many events", many, 1, "events: there are 1001 events; use at most 1000"},
		{"as many as may be", many[:MaxEvents], 0, ""},
		{"too many at a time", often[:400], 1, "events[303].rrule: up to here the events happen about 10032 times around an instant; use at most 10000: fewer or rarer events"},
		{"not too many at a time", often[:300], 0, ""},
		{"more problems than anybody reads", wrong[:100], maxProblems, `events[0].start: "soon" is not a date or a time; use 2026-12-24 or 2026-12-24T18:00`},
		{"dates without end", []EventText{{Start: "2026-01-01", AllDay: true, RDate: make([]string, MaxDates+1)}}, maxProblems, `events[0].rdate[0]: "" is not a date or a time; use 2026-12-24 or 2026-12-24T18:00`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			_, problems := Parse("test", Text{Kind: "freeze", Events: row.events})
			if len(problems) != row.count || row.count > 0 && problems[0].Error() != row.first {
				t.Fatalf("%d problems: %v", len(problems), problems)
			}
		})
	}
}
