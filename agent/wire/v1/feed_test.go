package v1

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/calendar"
)

func TestFeedOfAWindow(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 20, 22, 0, 0, 0, time.UTC)
	first := 0
	feed := string(Feed("lab-1", "acme", start.Add(-time.Hour), []Window{{
		Start: start, End: start.Add(2 * time.Hour), Length: "2h", StartMoved: true,
		Sources: []WindowSource{{Window: &first}, {Calendar: "release", Event: &first, Summary: "a, b;\n c\\"}},
		Cuts:    []WindowCut{{Calendar: "audit", From: start.Add(2 * time.Hour), To: start.Add(3 * time.Hour)}},
	}}))
	want := strings.Join([]string{
		"BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//osupgrade//osupgrade-agent//EN", "CALSCALE:GREGORIAN", "METHOD:PUBLISH",
		"NAME:OS upgrades of acme at lab-1", "X-WR-CALNAME:OS upgrades of acme at lab-1",
		"REFRESH-INTERVAL;VALUE=DURATION:PT1H", "X-PUBLISHED-TTL:PT1H",
		"BEGIN:VEVENT", "UID:20261120T220000Z-acme@lab-1.osupgrade", "DTSTAMP:20261120T210000Z",
		"DTSTART:20261120T220000Z", "DTEND:20261121T000000Z", "SUMMARY:OS upgrades of acme",
		`DESCRIPTION:Lasts 2h.\nOpened by maintenance window 1.\nOpened by calendar `,
		` release (a\, b\; c\\).\nCut by calendar audit from 2026-11-21T00:00:00Z to`,
		`  2026-11-21T01:00:00Z.\nIt starts late\, as the clock skips the time at wh`,
		" ich it was to start.",
		"TRANSP:TRANSPARENT", "END:VEVENT", "END:VCALENDAR", "",
	}, "\r\n")
	if feed != want {
		t.Errorf("got\n%s\nwant\n%s", feed, want)
	}
}

// TestFeedIsACalendar checks that what is written is read again as the same
// spans by our own reader, with the letters of the world in the summaries.
func TestFeedIsACalendar(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	windows := planned(t, OSUpgrade{}, map[string]Calendar{"release": {Kind: "allow", Events: []Event{
		{Summary: strings.Repeat("Släpp: 発売, ", 30), Start: "2026-11-21T01:00", Duration: "4h", RRule: "FREQ=WEEKLY", Timezone: "Europe/Stockholm"},
	}}}, nil, 366, 0)
	if len(windows) < 52 {
		t.Fatalf("there are %d windows", len(windows))
	}
	feed := string(Feed("lab", "acme", from, windows))
	for line := range strings.Lines(feed) {
		if content, ok := strings.CutSuffix(line, "\r\n"); !ok || len(content) > 75 || !utf8.ValidString(content) || strings.ContainsAny(content, "\r\n") {
			t.Fatalf("a line of %d bytes: %q", len(line), line)
		}
	}
	read, wrong := calendar.Parse("feed", calendar.Text{Kind: "allow", ICS: new(feed)})
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	count := 0
	for o := range read.Occurrences(nil, from, from.AddDate(1, 0, 1)) {
		if w := windows[o.Origin.Index]; !o.Start.Equal(w.Start) || !o.End.Equal(w.End) {
			t.Errorf("read %s to %s; want %s to %s", o.Start, o.End, w.Start, w.End)
		}
		count++
	}
	if count != len(windows) {
		t.Errorf("read %d spans; want %d", count, len(windows))
	}
}

// TestFeedKeepsUIDs checks that a window is the same to a reader when a freeze
// comes to cut its end.
func TestFeedKeepsUIDs(t *testing.T) {
	t.Parallel()
	config := OSUpgrade{MaintenanceWindows: []MaintenanceWindow{weekly("Friday", "22:00", "4h")}}
	uids := func(at time.Time, calendars map[string]Calendar) string {
		var found []string
		for line := range strings.Lines(string(Feed("lab", "acme", at, planned(t, config, calendars, nil, 30, 0)))) {
			if strings.HasPrefix(line, "UID:") {
				found = append(found, line)
			}
		}
		return strings.Join(found, "")
	}
	before := uids(november, nil)
	after := uids(november.Add(time.Minute), map[string]Calendar{"f": {Kind: "freeze", Events: []Event{{Start: "2026-11-28T00:00", Duration: "1d", Timezone: "UTC"}}}})
	if before != after || strings.Count(before, "UID:") != 5 {
		t.Errorf("the UIDs were\n%s\nand are\n%s", before, after)
	}
}

// TestEmptyFeed checks that a calendar without windows has a component, as
// RFC 5545 3.6 demands, and no event.
func TestEmptyFeed(t *testing.T) {
	t.Parallel()
	feed := string(Feed("lab", "acme", november, nil))
	if !strings.Contains(feed, "\r\nBEGIN:VTIMEZONE\r\nTZID:UTC\r\n") || strings.Contains(feed, "VEVENT") {
		t.Errorf("got\n%s", feed)
	}
	const without = "ics: the text has no VEVENT; add one, or delete the calendar"
	if _, wrong := calendar.Parse("feed", calendar.Text{Kind: "allow", ICS: new(feed)}); len(wrong) != 1 || wrong[0].Error() != without {
		t.Errorf("got %v; want only %q", wrong, without)
	}
}
