package calendar

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"
)

func TestICS(t *testing.T) {
	t.Parallel()
	june := func(d int) time.Time { return time.Date(2026, 6, d, 0, 0, 0, 0, time.UTC) }
	for _, row := range []struct{ name, text, want string }{
		{"in UTC", vcalendar("DTSTART:20260605T180000Z", "DTEND:20260605T220000Z"), "2026-06-05T18:00 4h"},
		{"in a zone", vcalendar("DTSTART;TZID=Europe/Stockholm:20260605T180000", "DURATION:PT4H"), "2026-06-05T16:00 4h"},
		{"at the site", vcalendar("DTSTART:20260605T180000", "DURATION:PT4H"), "2026-06-05T09:00 4h"},
		{"all day at the site", vcalendar("DTSTART;VALUE=DATE:20260605", "DTEND;VALUE=DATE:20260607"), "2026-06-04T15:00 48h"},
		{"a day without an end", vcalendar("DTSTART;VALUE=DATE:20260605"), "2026-06-04T15:00 24h"},
		{"days as a duration", vcalendar("DTSTART;VALUE=DATE:20260605", "DURATION:P1D"), "2026-06-04T15:00 24h"},
		{"from one zone to another", vcalendar("DTSTART;TZID=Europe/Stockholm:20260605T180000", "DTEND;TZID=Europe/London:20260605T180000"), "2026-06-05T16:00 1h"},
		{"a folded line", vcalendar("DTSTART;TZID=Europe/Stock", " holm:20260605", "\tT180000", "DURATION:PT4H"), "2026-06-05T16:00 4h"},
		{"newlines of Unix", strings.ReplaceAll(vcalendar("DTSTART:20260605T180000Z", "DURATION:PT4H"), "\r\n", "\n"), "2026-06-05T18:00 4h"},
		{"a byte order mark", "\ufeff" + vcalendar("DTSTART:20260605T180000Z", "DURATION:PT4H"), "2026-06-05T18:00 4h"},
		{"names in small letters", vcalendar("dtstart;tzid=Europe/Stockholm:20260605T180000", "duration:PT4H"), "2026-06-05T16:00 4h"},
		{"a quoted zone", vcalendar(`DTSTART;TZID="Europe/Stockholm":20260605T180000`, "DURATION:PT4H"), "2026-06-05T16:00 4h"},
		{"a zone with a prefix", vcalendar("DTSTART;TZID=/example.org/20260101/Europe/Stockholm:20260605T180000", "DURATION:PT4H"), "2026-06-05T16:00 4h"},
		{"a zone of three names with a prefix", vcalendar("DTSTART;TZID=/example.org/America/Argentina/Salta:20260605T180000", "DURATION:PT4H"), "2026-06-05T21:00 4h"},
		{
			"a zone that says where it is", strings.Replace(vcalendar("DTSTART;TZID=Home:20260605T180000", "DURATION:PT4H"), "VERSION:2.0",
				"BEGIN:VTIMEZONE\r\nTZID:Home\r\nX-LIC-LOCATION:Europe/Stockholm\r\nBEGIN:STANDARD\r\nDTSTART:19700101T000000\r\nTZOFFSETTO:+0900\r\nEND:STANDARD\r\nEND:VTIMEZONE", 1),
			"2026-06-05T16:00 4h",
		},
		{"a zone of Windows", vcalendar("DTSTART;TZID=W. Europe Standard Time:20260605T180000", "DURATION:PT4H"), "2026-06-05T16:00 4h"},
		{"a zone of Windows with its rules", outlook("Eastern Standard Time", standard("-0400", "-0500", "1SU", 11), daylight("-0500", "-0400", "2SU", 3)), "2026-06-05T22:00 4h"},
		{"a zone of Windows whose rules are others now", outlook("W. Europe Standard Time", standard("+0900", "+0900", "", 1)), "2026-06-05T16:00 4h"},
		{"UTC, as Outlook has it", vcalendar("DTSTART;TZID=\"tzone://Microsoft/Utc\":20260605T180000", "DURATION:PT4H"), "2026-06-05T18:00 4h"},
		{"Outlook's custom zone", outlook("tzone://Microsoft/Custom", standard("+0200", "+0100", "-1SU", 10), daylight("+0100", "+0200", "-1SU", 3)), "2026-06-05T16:00 4h"},
		{"a custom zone of the south", outlook("Customized Time Zone 1", standard("+1100", "+1000", "1SU", 4), daylight("+1000", "+1100", "1SU", 10)), "2026-06-05T08:00 4h"},
		{"a custom zone without summer", outlook(`(UTC+05:30) Chennai\, Kolkata`, standard("+0530", "+0530", "", 1)), "2026-06-05T12:30 4h"},
		{"an alarm", vcalendar("DTSTART:20260605T180000Z", "DURATION:PT4H", "BEGIN:VALARM", "TRIGGER:-PT5M", "DURATION:PT1M", "END:VALARM"), "2026-06-05T18:00 4h"},
		{"a rule and dates left out", vcalendar("DTSTART:20260605T180000Z", "DURATION:PT4H", "RRULE:FREQ=DAILY;COUNT=5", "EXDATE:20260606T180000Z,20260607T180000Z", "EXDATE;TZID=Europe/Stockholm:20260608T200000"), "2026-06-05T18:00 4h, 2026-06-09T18:00 4h"},
		{"dates added", vcalendar("DTSTART:20260605T180000Z", "DURATION:PT4H", "RDATE:20260607T180000Z", "RDATE;TZID=Europe/Stockholm:20260608T200000"), "2026-06-05T18:00 4h, 2026-06-07T18:00 4h, 2026-06-08T18:00 4h"},
		{"cancelled", vcalendar("DTSTART:20260605T180000Z", "DURATION:PT4H", "STATUS:CANCELLED"), ""},
		{
			"one moved, one cancelled", vcalendar("UID:a", "DTSTART:20260605T180000Z", "DURATION:PT4H", "RRULE:FREQ=DAILY;COUNT=4",
				"END:VEVENT", "BEGIN:VEVENT", "UID:a", "RECURRENCE-ID;TZID=Europe/Stockholm:20260606T200000", "DTSTART:20260606T100000Z", "DURATION:PT1H",
				"END:VEVENT", "BEGIN:VEVENT", "UID:a", "RECURRENCE-ID:20260607T180000Z", "DTSTART:20260607T180000Z", "DURATION:PT4H", "STATUS:CANCELLED",
				"END:VEVENT", "BEGIN:VEVENT", "UID:b", "RECURRENCE-ID:20260608T180000Z", "DTSTART:20260612T180000Z", "DURATION:PT4H"),
			"2026-06-05T18:00 4h, 2026-06-06T10:00 1h, 2026-06-08T18:00 4h, 2026-06-12T18:00 4h",
		},
		{"a description as long as may be", vcalendar("DTSTART:20260605T180000Z", "DURATION:PT4H", "DESCRIPTION"+strings.Repeat(";A=B", 200_000)+":"), "2026-06-05T18:00 4h"},
		{"a single day that ends on itself", vcalendar("DTSTART;VALUE=DATE:20260605", "DTEND;VALUE=DATE:20260605"), "2026-06-04T15:00 24h"},
		{"all day until a time in UTC", vcalendar("DTSTART;VALUE=DATE:20260605", "RRULE:FREQ=DAILY;UNTIL=20260606T235959Z"), "2026-06-04T15:00 48h"},
		{"at second 0", vcalendar("DTSTART:20260605T180000Z", "DURATION:PT4H", "RRULE:FREQ=DAILY;BYHOUR=18;BYMINUTE=0;BYSECOND=0;COUNT=2"), "2026-06-05T18:00 4h, 2026-06-06T18:00 4h"},
		{"two calendars in one text", vcalendar("DTSTART:20260605T180000Z", "DURATION:PT4H") + vcalendar("DTSTART:20260606T180000Z", "DURATION:PT4H"), "2026-06-05T18:00 4h, 2026-06-06T18:00 4h"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			tokyo, err := time.LoadLocation("Asia/Tokyo")
			if err != nil {
				t.Fatal(err)
			}
			c := mustParse(t, Text{Kind: "allow", ICS: new(row.text)})
			if got := spans(c, tokyo, june(1), june(30)); got != row.want {
				t.Fatalf("%s; want %s", got, row.want)
			}
			sameAsEvents(t, c, row.text, june(1), june(30))
		})
	}
}

// sameAsEvents checks that the events of an iCalendar text, as fields, happen at the same
// times as the text.
func sameAsEvents(t *testing.T, c *Calendar, text string, from, to time.Time) {
	t.Helper()
	events, leftOut, found := Events(text)
	if len(found) > 0 || len(leftOut) != len(c.LeftOut()) {
		t.Fatalf("%q: problems %v, left out %v; want none, and %v", text, found, leftOut, c.LeftOut())
	}
	again := mustParse(t, Text{Kind: "freeze", Events: events})
	if got, want := happens(again, from, to), happens(c, from, to); !maps.Equal(got, want) {
		t.Fatalf("%q: the events %+v happen at %v; want %v", text, events, got, want)
	}
}

// happens is the set of the occurrences of a calendar.
func happens(c *Calendar, from, to time.Time) map[string]bool {
	set := map[string]bool{}
	for o := range c.Occurrences(time.UTC, from, to) {
		set[fmt.Sprintln(o.Start, o.End, o.StartMoved, o.EndMoved, o.Origin.Summary)] = true
	}
	return set
}

// TestLineNumbers: a problem names the line as an editor shows it.
func TestLineNumbers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nSUMMARY:a\r\n b\r\n\tc\r\nDTSTART:x\r\nEND:VEVENT\r\nEND:VCALENDAR":             6,
		"\ufeffBEGIN:VCALENDAR\n\nBEGIN:VEVENT\n\n\nDTST\n ART:x\nEND:VEVENT\nEND:VCALENDAR\n":                              6,
		"BEGIN:VCALENDAR\n \nBEGIN:VEVENT\n\t\n\n DTSTART:x\nEND:VEVENT\nEND:VCALENDAR\n":                                   6,
		"BEGIN:VCALENDAR\r\r\nBEGIN:VEVENT\r\r\nDTSTART:x\r\r\nEND:VEVENT\r\r\nEND:VCALENDAR\r":                             3,
		"\n\n  \nBEGIN:VCALENDAR\nX-A:\n  1\nBEGIN:VEVENT\nDTSTART:20260605\nDTEND:y\nEND:VEVENT\nEND:VCALENDAR\n \n\r\n\r": 9,
	} {
		if _, problems := Parse("test", Text{Kind: "allow", ICS: &text}); len(problems) != 1 || !strings.Contains(problems[0].Error(), fmt.Sprintf("line %d", want)) {
			t.Errorf("%q: %v; want line %d", text, problems, want)
		}
	}
}

func TestProblemsOfICS(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, text, want string }{
		{"no calendar", "Hello", `ics: line 1, "Hello": is not a line of iCalendar; use NAME:VALUE`},
		{"a web page", "<html>:", `ics: line 1, "<html>:": is not a line of iCalendar; use NAME:VALUE`},
		{"blank", "\r\n \r\n", `ics: the text is not a calendar; begin with BEGIN:VCALENDAR`},
		{"an event alone", "BEGIN:VEVENT", `ics: line 1, "BEGIN:VEVENT": is outside of any calendar; begin with BEGIN:VCALENDAR`},
		{"a line before the calendar", "VERSION:2.0", `ics: line 1, "VERSION:2.0": is outside of any component; begin with BEGIN:VCALENDAR`},
		{"cut off", "BEGIN:VCALENDAR\r\nBEGIN:VEVENT", `ics: the text ends within VEVENT; end it with END:VEVENT`},
		{"crossed", "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nEND:VCALENDAR", `ics: line 3, "END:VCALENDAR": does not match BEGIN:VEVENT; add END:VEVENT before it`},
		{"nested without end", strings.Repeat("BEGIN:VCALENDAR\r\n", 9), `ics: line 9, "BEGIN:VCALENDAR": is nested too deep; use at most 8 levels`},
		{"not UTF-8", "BEGIN:VCALENDAR\r\nX:\xff", `ics: the text is not UTF-8; use UTF-8`},
		{"too long", strings.Repeat("X", MaxICS+1), `ics: the text has 1048577 bytes; use at most 1048576`},
		{"a line too long", vcalendar("EXDATE:" + strings.Repeat("20260605,", 3000)), `ics: line 4, "EXDATE:` + strings.Repeat("20260605,", 8) + `2..."` + `: has 27007 bytes; use at most 20000, and several lines`},
		{"parameters without end", vcalendar("DTSTART" + strings.Repeat(";A=B", 200) + ":20260605"), `ics: line 4, "DTSTART` + strings.Repeat(";A=B", 18) + `;..."` + `: has parameters of 808 bytes; use at most 500`},
		{"too many events", "BEGIN:VCALENDAR\r\n" + strings.Repeat("BEGIN:VEVENT\r\nDTSTART:20260605\r\nEND:VEVENT\r\n", MaxEvents+1), `ics: line 3002, "BEGIN:VEVENT": is one event too many; use at most 1000`},
		{"no start", vcalendar("DURATION:PT4H"), `ics.VEVENT[0].DTSTART: line 3: the event has no DTSTART; add one`},
		{"no event", "BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n", `ics: the text has no VEVENT; add one, or delete the calendar`},
		{"no end", vcalendar("DTSTART:20260605T180000Z"), `ics: no event of the text ever happens; the first: ics.VEVENT[0].DTSTART: line 4: "20260605T180000Z" has neither DTEND nor DURATION, and so no length; the event is left out`},
		{"no number of a revision", vcalendar("DTSTART:20260605T180000Z", "DURATION:PT4H", "SEQUENCE:new"), `ics.VEVENT[0].SEQUENCE: line 6: SEQUENCE has "new", which is not a number; use 0 to 2147483647`},
		{"two starts", vcalendar("DTSTART:20260605T180000Z", "DTSTART:20260605T180000Z", "DURATION:PT4H"), `ics.VEVENT[0].DTSTART: line 5: DTSTART is repeated; use one`},
		{"two rules", vcalendar("DTSTART:20260605T180000Z", "DURATION:PT4H", "RRULE:FREQ=DAILY", "RRULE:FREQ=WEEKLY"), `ics.VEVENT[0].RRULE: line 7: RRULE is repeated; use one`},
		{"no time", vcalendar("DTSTART:tomorrow", "DURATION:PT4H"), `ics.VEVENT[0].DTSTART: line 4: "tomorrow" is not a date or a time; use 20261224 or 20261224T180000`},
		{"ends before it starts", vcalendar("DTSTART:20260605T180000Z", "DTEND:20260605T170000Z"), `ics.VEVENT[0].DTEND: line 5: with "20260605T170000Z" the event does not end after its start; let it last from 1m to 7d`},
		{"an end in a zone and a start at the site", vcalendar("DTSTART:20260605T180000", "DTEND:20260605T190000Z"), `ics.VEVENT[0].DTEND: line 5: "20260605T190000Z" names a zone, but the event goes by the clock of its site; write both with a zone, or neither`},
		{"no zone of Windows", vcalendar("DTSTART;TZID=Middle-earth Standard Time:20260605T180000", "DURATION:PT4H"), `ics.VEVENT[0].DTSTART: line 4: "Middle-earth Standard Time" is not a time zone; use site-local, UTC or an IANA name such as Europe/Stockholm`},
		{"a custom zone by whose rules nobody goes", outlook("Customized Time Zone", standard("+0200", "+0100", "-1SU", 10), daylight("+0100", "+0200", "-1SU", 4)), `ics.VEVENT[0].DTSTART: line 19: "Customized Time Zone" is not a time zone; use site-local, UTC or an IANA name such as Europe/Stockholm`},
		{"no zone", vcalendar("DTSTART;TZID=:20260605T180000", "DURATION:PT4H"), `ics.VEVENT[0].DTSTART: line 4: TZID is empty; use an IANA name such as Europe/Stockholm`},
		{"a negative length", vcalendar("DTSTART:20260605T180000Z", "DURATION:-PT4H"), `ics.VEVENT[0].DURATION: line 5: "-PT4H" is not a duration; use one such as PT4H or P1DT12H`},
		{"a length of ours", vcalendar("DTSTART:20260605T180000Z", "DURATION:4h"), `ics.VEVENT[0].DURATION: line 5: "4h" is not a duration; use one such as PT4H or P1DT12H`},
		{"a period", vcalendar("DTSTART:20260605T180000Z", "DURATION:PT4H", "RDATE;VALUE=PERIOD:20260606T180000Z/PT1H"), `ics.VEVENT[0].RDATE: line 6: "20260606T180000Z/PT1H" is a period; use a date or a time, and a separate event for another duration`},
		{"the rule of exceptions", vcalendar("DTSTART:20260605T180000Z", "DURATION:PT4H", "EXRULE:FREQ=DAILY"), `ics.VEVENT[0].EXRULE: line 6: EXRULE is obsolete (RFC 5545) and not supported; use EXDATE`},
		{"this and all later", vcalendar("DTSTART:20260605T180000Z", "DURATION:PT4H", "RECURRENCE-ID;RANGE=THISANDFUTURE:20260605T180000Z"), `ics.VEVENT[0].RECURRENCE-ID: line 6: a change to this and all later occurrences (RANGE) is not supported; end the event with UNTIL and add another`},
		{"a change that recurs", vcalendar("DTSTART:20260605T180000Z", "DURATION:PT4H", "RRULE:FREQ=DAILY", "RECURRENCE-ID:20260605T180000Z"), `ics.VEVENT[0].RRULE: line 6: the event changes one occurrence of another (RECURRENCE-ID) and so cannot recur; leave the RRULE out`},
		{"a rule that is wrong", vcalendar("DTSTART:20260605T180000Z", "DURATION:PT4H", "RRULE:FREQ=MINUTELY"), `ics.VEVENT[0].RRULE: line 6: FREQ=MINUTELY of "FREQ=MINUTELY" is finer than a maintenance calendar goes; use DAILY, WEEKLY, MONTHLY or YEARLY`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c, problems := Parse("test", Text{Kind: "allow", ICS: new(row.text)})
			if c != nil || len(problems) != 1 || problems[0].Error() != row.want {
				t.Fatalf("%v\nwant\n%s", problems, row.want)
			}
		})
	}
}

// Exports of real programs contain events that never happen and earlier revisions of
// events.
func TestLeftOutOfICS(t *testing.T) {
	t.Parallel()
	const other = "2026-06-05T18:00 4h"
	with := func(lines ...string) string {
		return vcalendar(append([]string{"UID:real", "DTSTART:20260605T180000Z", "DURATION:PT4H", "END:VEVENT", "BEGIN:VEVENT"}, lines...)...)
	}
	for _, row := range []struct{ name, text, spans, want string }{
		{"nothing", with("UID:other", "DTSTART:20260606T180000Z", "DURATION:PT1H"), other + ", 2026-06-06T18:00 1h", ""},
		{"a reminder", with("DTSTART:20260606T180000Z"), other, `ics.VEVENT[1].DTSTART: line 9: "20260606T180000Z" has neither DTEND nor DURATION, and so no length; the event is left out`},
		{"an end at the start", with("DTSTART:20260606T180000Z", "DTEND;TZID=Europe/Stockholm:20260606T200000"), other, `ics.VEVENT[1].DTEND: line 10: "20260606T200000" is the start, so the event has no length; the event is left out`},
		{"no length", with("DTSTART:20260606T180000Z", "DURATION:PT0S"), other, `ics.VEVENT[1].DURATION: line 10: "PT0S" is no length; the event is left out`},
		{"a series split at its first occurrence", with("DTSTART:20260606T180000Z", "DURATION:PT4H", "RRULE:FREQ=WEEKLY;UNTIL=20260606T175959Z"), other, `ics.VEVENT[1].RRULE: line 11: "FREQ=WEEKLY;UNTIL=20260606T175959Z" ends before the event starts (UNTIL); the event is left out`},
		{"such a series with another date", with("DTSTART:20260606T180000Z", "DURATION:PT4H", "RRULE:FREQ=WEEKLY;UNTIL=20260606T175959Z", "RDATE:20260609T180000Z"), "", ""},
		{"an earlier revision", with("UID:real", "SEQUENCE:1", "DTSTART:20260607T180000Z", "DURATION:PT1H"), "2026-06-07T18:00 1h", `ics.VEVENT[0].UID: line 4: "real" is an earlier revision of VEVENT[1]; the event is left out`},
		{"a later stamp", with("UID:real", "DTSTAMP:20260101T000000Z", "DTSTART:20260607T180000Z", "DURATION:PT1H"), "2026-06-07T18:00 1h", `ics.VEVENT[0].UID: line 4: "real" is an earlier revision of VEVENT[1]; the event is left out`},
		{"a cancelled event", with("UID:real", "SEQUENCE:1", "STATUS:CANCELLED", "DTSTART:20260607T180000Z"), "", `ics.VEVENT[0].UID: line 4: "real" is an earlier revision of VEVENT[1]; the event is left out`},
		{
			"two changes of one occurrence",
			vcalendar("UID:a", "DTSTART:20260605T180000Z", "DURATION:PT4H", "RRULE:FREQ=DAILY;COUNT=2",
				"END:VEVENT", "BEGIN:VEVENT", "UID:a", "SEQUENCE:3", "RECURRENCE-ID;TZID=Europe/Stockholm:20260606T200000", "DTSTART:20260606T100000Z", "DURATION:PT1H",
				"END:VEVENT", "BEGIN:VEVENT", "UID:a", "SEQUENCE:2", "RECURRENCE-ID:20260606T180000Z", "DTSTART:20260606T120000Z", "DURATION:PT1H"),
			other + ", 2026-06-06T10:00 1h", `ics.VEVENT[2].UID: line 17: "a" is an earlier revision of VEVENT[1]; the event is left out`,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c, problems := Parse("test", Text{Kind: "allow", ICS: new(row.text)})
			if c == nil {
				if row.spans != "" || len(problems) == 0 {
					t.Fatal(problems)
				}
				return
			}
			got := ""
			for _, p := range c.LeftOut() {
				got += p.Error()
			}
			june := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
			if s := spans(c, time.UTC, june, june.AddDate(0, 0, 29)); s != row.spans || got != row.want {
				t.Fatalf("%s\nleft out: %s\nwant %s\nleft out: %s", s, got, row.spans, row.want)
			}
		})
	}
}

func TestLengthsOfICS(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		text string
		want time.Duration
	}{
		{"PT4H", 4 * time.Hour},
		{"P1W", 7 * day},
		{"P1D", day},
		{"P1DT2H3M4S", 26*time.Hour + 3*time.Minute + 4*time.Second},
		{"+PT15M", 15 * time.Minute},
		{"PT90S", 90 * time.Second},
		{"P9999W", 9999 * 7 * day},
		{"P", 0},
		{"PT", 0},
		{"P1W1D", 0},
		{"P1M", 0},
		{"P99999W", 0},
	} {
		t.Run(row.text, func(t *testing.T) {
			t.Parallel()
			got, err := parseISO(row.text)
			if got != row.want || (err == nil) != (row.want > 0) {
				t.Fatalf("%v, %v; want %v", got, err, row.want)
			}
		})
	}
}
