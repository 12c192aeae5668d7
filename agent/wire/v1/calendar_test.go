package v1

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// everyMember is a calendar with each member of an event in it, and
// calendarJSON its body.
var everyMember = Calendar{
	Kind: "allow", Description: "after the releases",
	Events: []Event{
		{
			Summary: "release", Start: "2026-12-24T18:00", Duration: "90m", Timezone: "Europe/Stockholm",
			RRule: "FREQ=MONTHLY;BYDAY=1TU", RDate: []string{"2027-01-01T10:30:00"}, ExDate: []string{"2027-02-02"},
		},
		{Start: "2026-12-27", End: "2026-12-29", AllDay: true},
	},
}

const calendarJSON = `{"kind": "allow", "description": "after the releases", "events": [
	{"summary": "release", "start": "2026-12-24T18:00", "duration": "90m", "timezone": "Europe/Stockholm",
	 "rrule": "FREQ=MONTHLY;BYDAY=1TU", "rdate": ["2027-01-01T10:30:00"], "exdate": ["2027-02-02"]},
	{"start": "2026-12-27", "end": "2026-12-29", "all-day": true, "rdate": []}]}`

const oneEventICS = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTART:20261224T180000Z\r\nDURATION:PT4H\r\nEND:VEVENT\r\nbegin:vevent\r\nDTSTART;VALUE=DATE:20261231\r\nend:vevent\r\nEND:VCALENDAR\r\n"

func TestDecodeCalendar(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		contentType, body string
		want              Calendar
	}{
		"each member":      {inJSON, calendarJSON, everyMember},
		"nothing yet":      {inJSON, `{"kind":"freeze"}`, Calendar{Kind: "freeze"}},
		"no events":        {inJSON, `{"kind":"freeze","events":[]}`, Calendar{Kind: "freeze"}},
		"an ics text":      {inYAML, "kind: freeze\nics: |\n  BEGIN:VCALENDAR\n  BEGIN:VEVENT\n  DTSTART:20261224T180000Z\n  DURATION:PT4H\n  END:VEVENT\n  END:VCALENDAR\n", Calendar{Kind: "freeze", ICS: new("BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20261224T180000Z\nDURATION:PT4H\nEND:VEVENT\nEND:VCALENDAR\n")}},
		"unquoted in YAML": {inYAML, "kind: freeze\nevents: [{start: 2026-12-24, all-day: true, exdate: [2026-12-24]}]", Calendar{Kind: "freeze", Events: []Event{{Start: "2026-12-24", AllDay: true, ExDate: []string{"2026-12-24"}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := DecodeCalendar(row.contentType, []byte(row.body))
			if err != nil || !reflect.DeepEqual(got, row.want) {
				t.Errorf("got %+v, %v; want %+v", got, err, row.want)
			}
		})
	}
}

// TestWrongCalendars checks the path of what is wrong, and part of the message.
func TestWrongCalendars(t *testing.T) {
	t.Parallel()
	event := func(rest string) string {
		return `{"kind":"allow","events":[{"start":"2026-12-24T18:00",` + rest + `}]}`
	}
	for name, row := range map[string]struct{ body, field, message string }{
		"no kind":                 {`{}`, "kind", "use allow or freeze"},
		"another kind":            {`{"kind":"Freeze"}`, "kind", `"Freeze"`},
		"a kind that is a list":   {`{"kind":[]}`, "kind", "is not text"},
		"a description too long":  {`{"kind":"freeze","description":"` + strings.Repeat("x", 1001) + `"}`, "description", "use at most 1000"},
		"a description in lines":  {`{"kind":"freeze","description":"a\nb"}`, "description", "cannot be shown"},
		"an unknown key":          {event(`"duration":"1h","tz":"UTC"`), "events[0].tz", "unknown key"},
		"no length":               {event(`"timezone":"UTC"`), "events[0].start", "has no end"},
		"an end and a length":     {event(`"end":"2026-12-24T19:00","duration":"1h"`), "events[0].duration", "use one of them"},
		"an end before the start": {event(`"end":"2026-12-24T17:00"`), "events[0].end", "does not end after its start"},
		"a length of nothing":     {event(`"duration":"0s"`), "events[0].duration", `"0s"`},
		"a length too great":      {event(`"duration":"8d"`), "events[0].duration", "7d"},
		"an unknown zone":         {event(`"duration":"1h","timezone":"Europe/Stokholm"`), "events[0].timezone", "Europe/Stockholm"},
		"a rule of seconds":       {event(`"duration":"1h","rrule":"FREQ=SECONDLY"`), "events[0].rrule", "SECONDLY"},
		"a date that is none":     {event(`"duration":"1h","rdate":["2026-12-25T18:00","2026-02-30T18:00"]`), "events[0].rdate[1]", "2026-02-30T18:00"},
		"an offset":               {`{"kind":"allow","events":[{"start":"2026-12-24T18:00+01:00","duration":"1h"}]}`, "events[0].start", "2026-12-24T18:00+01:00"},
		"the same event twice":    {`{"kind":"allow","events":[{"start":"2026-12-24T18:00","duration":"60m"},{"start":"2026-12-24T18:00:00","duration":"1h","timezone":"site-local"}]}`, "events[1]", "is the same as events[0]"},
		"both forms":              {`{"kind":"allow","events":[{"start":"2026-12-24","all-day":true}],"ics":"BEGIN:VCALENDAR"}`, "ics", "use one of them"},
		"an empty text":           {`{"kind":"freeze","ics":""}`, "ics", "the iCalendar text is empty"},
		"an empty text, no event": {`{"kind":"freeze","ics":"","events":[]}`, "ics", "the iCalendar text is empty"},
		"a blank text":            {`{"kind":"freeze","ics":" \n"}`, "ics", "begin with BEGIN:VCALENDAR"},
		"a text that is no ics":   {`{"kind":"allow","ics":"hello"}`, "ics", "use NAME:VALUE"},
		"a url without https":     {`{"kind":"freeze","url":"http://calendar.example/a.ics"}`, "url", "use https, so that nobody on the way"},
		"a url for programs":      {`{"kind":"freeze","url":"webcal://calendar.example/a.ics"}`, "url", "write https instead of webcal"},
		"a url with a password":   {`{"kind":"freeze","url":"https://jim:secret@calendar.example/a.ics"}`, "url", "has a user or password in it"},
		"a url that is none":      {`{"kind":"freeze","url":"calendar.ics"}`, "url", "use one such as https://calendar.example/freeze.ics"},
		"a url with a fragment":   {`{"kind":"freeze","url":"https://calendar.example/a.ics#b"}`, "url", "leave it out"},
		"a url too long":          {`{"kind":"freeze","url":"https://calendar.example/` + strings.Repeat("x", 2000) + `"}`, "url", "is longer than 2000 bytes"},
		"a url and events":        {`{"kind":"freeze","url":"https://calendar.example/a.ics","events":[{"start":"2026-12-24","all-day":true}]}`, "url", "use one of them"},
		"a url and a text":        {`{"kind":"freeze","url":"https://calendar.example/a.ics","ics":"BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20261224\nEND:VEVENT\nEND:VCALENDAR"}`, "url", "use one of them"},
		"a refresh too often":     {`{"kind":"freeze","url":"https://calendar.example/a.ics","refresh":"5m"}`, "refresh", "use 15m to 7d"},
		"a refresh too rare":      {`{"kind":"freeze","url":"https://calendar.example/a.ics","refresh":"8d"}`, "refresh", "use 15m to 7d"},
		"a refresh of nothing":    {`{"kind":"freeze","refresh":"1h"}`, "refresh", "leave it out"},
		"an ics without a start":  {`{"kind":"allow","ics":"BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VEVENT\nEND:VCALENDAR"}`, "ics.VEVENT[0].DTSTART", "add one"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := DecodeCalendar(inJSON, []byte(row.body))
			found, ok := errors.AsType[Problems](err)
			if !ok || len(found) != 1 || found[0].Field != row.field || !strings.Contains(found[0].Message, row.message) {
				t.Errorf("got %v; want one problem of %s with %q", err, row.field, row.message)
			}
		})
	}
}

// TestCalendarSize checks that what a body holds as JSON cannot be stored as
// much more: a control character takes six bytes there.
func TestCalendarSize(t *testing.T) {
	t.Parallel()
	c := Calendar{Kind: "freeze", ICS: new("BEGIN:VCALENDAR\nX-NOTE:" + strings.Repeat("\x01", MaxCalendar/6) + "\nBEGIN:VEVENT\nDTSTART:20261224\nEND:VEVENT\nEND:VCALENDAR")}
	if found := c.Validate(); len(found) != 1 || found[0].Field != "" || !strings.Contains(found[0].Message, fmt.Sprint(MaxCalendar)) {
		t.Errorf("got %.500v", found)
	}
	c.ICS = new(strings.Replace(*c.ICS, strings.Repeat("\x01", 200), "", 1))
	if found := c.Validate(); len(found) != 0 {
		t.Errorf("got %.500v", found)
	}
}

func TestCalendarCanonical(t *testing.T) {
	t.Parallel()
	want := Calendar{
		Kind: "allow", Description: "after the releases",
		Events: []Event{
			{
				Summary: "release", Start: "2026-12-24T18:00", Duration: "1h30m", Timezone: "Europe/Stockholm",
				RRule: "FREQ=MONTHLY;BYDAY=1TU", RDate: []string{"2027-01-01T10:30"}, ExDate: []string{"2027-02-02"},
			},
			{Start: "2026-12-27", End: "2026-12-29", Timezone: "site-local", AllDay: true},
		},
	}
	if got := everyMember.Canonical(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v; want %+v", got, want)
	}
	if everyMember.Events[0].RDate[0] != "2027-01-01T10:30:00" || everyMember.Events[0].Duration != "90m" {
		t.Error("the original was changed")
	}
	wrong := Calendar{Events: []Event{{Start: "2026-12-24T18:00:01", Duration: "1x", Timezone: "Mars", End: "x"}}, ICS: new("x\r\ny")}
	if got := wrong.Canonical(); !reflect.DeepEqual(got, wrong) {
		t.Errorf("got %+v; want it as it was", got)
	}
}

func TestMergeCalendar(t *testing.T) {
	t.Parallel()
	text := Calendar{Kind: "freeze", ICS: new(oneEventICS)}
	for name, row := range map[string]struct {
		now  Calendar
		body string
		want Calendar
		err  string
	}{
		"nothing":             {everyMember, `{}`, everyMember, ""},
		"a description":       {text, `{"description":"x"}`, Calendar{Kind: "freeze", Description: "x", ICS: new(oneEventICS)}, ""},
		"from text to none":   {text, `{"ics":""}`, Calendar{}, "ics: the iCalendar text is empty"},
		"from text to events": {text, `{"ics":"","events":[{"start":"2026-12-24","all-day":true}]}`, Calendar{Kind: "freeze", Events: []Event{{Start: "2026-12-24", AllDay: true}}}, ""},
		"no events":           {everyMember, `{"events":[],"description":""}`, Calendar{Kind: "allow"}, ""},
		"events beside text":  {text, `{"events":[{"start":"2026-12-24","all-day":true}]}`, Calendar{}, "ics: there are events besides"},
		"another kind":        {Calendar{Kind: "freeze", Events: []Event{{Start: "2026-12-24T18:00", Duration: "30d"}}}, `{"kind":"allow"}`, Calendar{}, "events[0].duration"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := merge(CalendarForm, row.now, inJSON, row.body)
			if !reflect.DeepEqual(got, row.want.Canonical()) || (err == nil) != (row.err == "") || err != nil && !strings.Contains(err.Error(), row.err) {
				t.Errorf("got %+v, %v; want %+v, %q", got, err, row.want, row.err)
			}
		})
	}
}

func TestCalendarInfo(t *testing.T) {
	t.Parallel()
	if got, want := everyMember.Info("a", `"1"`), (CalendarInfo{Name: "a", Kind: "allow", Description: "after the releases", Events: 2, ETag: `"1"`}); got != want {
		t.Errorf("got %+v; want %+v", got, want)
	}
	if got := (Calendar{Kind: "freeze", ICS: new(oneEventICS)}).Info("b", ""); got.Events != 2 {
		t.Errorf("counted %d events in the text; want 2", got.Events)
	}
}

func TestSameCalendar(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		a, b Calendar
		want bool
	}{
		"another spelling": {everyMember, everyMember.Canonical(), true},
		"another kind":     {Calendar{Kind: "allow"}, Calendar{Kind: "freeze"}, false},
		"no events":        {Calendar{Events: []Event{}}, Calendar{}, true},
		"another text":     {Calendar{ICS: new("a")}, Calendar{ICS: new("b")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if SameCalendar(row.a, row.b) != row.want || SameCalendar(row.b, row.a) != row.want {
				t.Errorf("%+v and %+v: want %t", row.a, row.b, row.want)
			}
		})
	}
}
