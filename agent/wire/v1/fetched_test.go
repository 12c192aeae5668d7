package v1

import (
	"strings"
	"testing"
	"time"
)

// TestCalendarOfURL checks the defaults, the canonical form, and what an audit record shows of a
// calendar with a URL.
func TestCalendarOfURL(t *testing.T) {
	t.Parallel()
	c, err := DecodeCalendar("application/json", []byte(`{"kind":"freeze","url":"https://calendar.example:8443/swordfish/a.ics?k=1","refresh":"90m"}`))
	if err != nil {
		t.Fatal(err)
	}
	if c = c.Canonical(); c.Refresh != "1h30m" || c.RefreshEvery() != 90*time.Minute || c.Host() != "calendar.example:8443" {
		t.Errorf("the calendar is %+v", c)
	}
	other := c
	other.URL = strings.Replace(c.URL, "swordfish", "cuttlefish", 1)
	if recorded := c.Recorded().URL; !strings.HasPrefix(recorded, "https://calendar.example:8443/") || strings.Contains(recorded, "swordfish") || recorded == other.Recorded().URL {
		t.Errorf("recorded is %s, and of another address %s", recorded, other.Recorded().URL)
	}
	if c.Refresh = ""; c.RefreshEvery() != time.Hour {
		t.Errorf("by default it is fetched every %s", c.RefreshEvery())
	}
	if parsed, wrong := c.Parse("xmas"); len(wrong) > 0 || parsed.Kind() != "freeze" {
		t.Errorf("parsed: %v, %v", parsed, wrong)
	}
}

// TestPublishedEvents checks that the order of a text decides nothing, and that one without an
// event, which nobody would declare, may be published.
func TestPublishedEvents(t *testing.T) {
	t.Parallel()
	event := func(day string) string {
		return "BEGIN:VEVENT\r\nUID:" + day + "\r\nDTSTART;VALUE=DATE:" + day + "\r\nEND:VEVENT\r\n"
	}
	const begin, end = "BEGIN:VCALENDAR\r\n", "END:VCALENDAR\r\n"
	a, _, wrongA := PublishedEvents("freeze", begin+event("20261224")+event("20261221")+end)
	b, _, wrongB := PublishedEvents("freeze", begin+event("20261221")+event("20261224")+end)
	if len(wrongA)+len(wrongB) > 0 || len(a) != 2 || a[0].Start != b[0].Start || a[1].Start != b[1].Start {
		t.Errorf("%v and %v; %v, %v", a, b, wrongA, wrongB)
	}
	reminder := "BEGIN:VEVENT\r\nUID:x\r\nDTSTART:20261224T180000Z\r\nEND:VEVENT\r\n"
	for text, leftOut := range map[string]int{"": 0, reminder: 1} {
		if events, never, wrong := PublishedEvents("allow", begin+text+end); len(events) > 0 || len(never) != leftOut || len(wrong) > 0 {
			t.Errorf("%q: %v, left out %v, %v", text, events, never, wrong)
		}
		if _, found := (Calendar{Kind: "allow", ICS: new(begin + text + end)}).Parse("x"); len(found) == 0 {
			t.Errorf("%q may be declared", text)
		}
	}
	long := begin + "BEGIN:VEVENT\r\nUID:x\r\nDTSTART:20261221T000000Z\r\nDTEND:20270110T000000Z\r\nEND:VEVENT\r\n" + end
	if _, _, wrong := PublishedEvents("freeze", long); len(wrong) > 0 {
		t.Errorf("20 days of freeze: %v", wrong)
	}
	if events, _, wrong := PublishedEvents("allow", long); len(wrong) == 0 || len(events) > 0 {
		t.Errorf("a window of 20 days: %v", events)
	}
}
