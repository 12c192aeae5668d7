package news

import (
	"strings"
	"testing"
	"time"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestHostWaiting checks what is told of a host that waits for approval, and that it is told anew if
// the host asks with another key.
func TestHostWaiting(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	waits := v1.WaitingHost{Host: "shop-1", PublicKey: "K1", From: "192.0.2.7", At: at, Expires: at.Add(time.Hour)}
	n := NewTeller("acme", "log").HostWaiting(waits)
	const want = "Host shop-1 of tenant acme waits for approval, until 2026-11-24T13:00:00Z. It asked from 192.0.2.7, with the key K1."
	if n.Type != v1.NewsHostWaiting || n.Data.Text != want || n.Data.Host != "shop-1" || !n.Timestamp.Equal(at) || n.Data.Command != "osupgrade-agent approve-host shop-1" {
		t.Errorf("told is %+v", n)
	}
	if again := NewTeller("acme", "log").HostWaiting(waits); again.ID != n.ID {
		t.Error("it is told twice")
	}
	if waits.PublicKey = "K2"; NewTeller("acme", "log").HostWaiting(waits).ID == n.ID {
		t.Error("another machine is not told")
	}
}

// TestCalendar checks what is told of a calendar with a URL: once that it fails, whatever fails
// after that, and once that it is back. Nothing repeats the path of its URL.
func TestCalendar(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	declared := v1.Calendar{Kind: "freeze", URL: "https://calendar.example/swordfish/a.ics"}
	fresh := v1.CalendarCopy{URL: declared.URL, Source: declared.URL, FetchedAt: at, ChangedAt: at}
	retrying := fresh
	retrying.Tries, retrying.Error, retrying.FailingSince = 2, "no route to host", at.Add(time.Hour)
	failing, allow := retrying, declared
	failing.Tries, allow.Kind = 3, "allow"
	never := failing
	never.Source = ""
	other := failing
	other.URL = "https://other.example/"
	back := fresh
	back.RecoveredAt = at.Add(2 * time.Hour)
	empty := fresh
	empty.EmptiedAt = at.Add(time.Hour)
	refilled, foreign := empty, empty
	refilled.Events, foreign.Source = []v1.Event{{}}, "https://other.example/"
	for _, row := range []struct {
		name     string
		declared v1.Calendar
		kept     v1.CalendarCopy
		now      time.Time
		kind     string
		text     string
	}{
		{"all is well", declared, fresh, at, "", ""},
		{"it has failed twice", declared, retrying, at, "", ""},
		{"it fails", declared, failing, at, v1.NewsCalendarFailing, "The site has been unable to fetch calendar xmas of tenant acme from calendar.example since 2026-11-24T13:00:00Z: no route to host. The events fetched at 2026-11-24T12:00:00Z stay in force."},
		{"a freeze has always failed", declared, never, at, v1.NewsCalendarFailing, "The site has never been able to fetch calendar xmas of tenant acme from calendar.example and has tried since 2026-11-24T13:00:00Z: no route to host. No run starts until it succeeds, because a freeze may apply."},
		{"a calendar of windows has always failed", allow, never, at, v1.NewsCalendarFailing, "The calendar opens no window until it succeeds."},
		{"another URL fails", declared, other, at, "", ""},
		{"it is back", declared, back, at.Add(2 * time.Hour), v1.NewsCalendarRecovered, "The site can fetch calendar xmas of tenant acme from calendar.example again."},
		{"it is back for days", declared, back, at.Add(50 * time.Hour), "", ""},
		{"a freeze is empty", declared, empty, at.Add(time.Hour), v1.NewsCalendarEmptied, "The source of calendar xmas of tenant acme from calendar.example has no events any more since 2026-11-24T13:00:00Z. It freezes nothing now: runs may start in every window."},
		{"a calendar of windows is empty", allow, empty, at.Add(time.Hour), v1.NewsCalendarEmptied, "It opens no window now."},
		{"it has events again", declared, refilled, at.Add(time.Hour), "", ""},
		{"another source was empty", declared, foreign, at.Add(time.Hour), "", ""},
		{"it is empty for days", declared, empty, at.Add(50 * time.Hour), "", ""},
	} {
		told := NewTeller("acme", "log").Calendar("xmas", row.declared, row.kept, row.now)
		if len(told) > 1 || (len(told) == 1) != (row.kind != "") {
			t.Errorf("%s: told is %+v", row.name, told)
			continue
		}
		if len(told) == 0 {
			continue
		}
		if n := told[0]; n.Type != row.kind || !strings.Contains(n.Data.Text, row.text) || n.Data.Calendar != "xmas" || n.Data.Run != 0 || strings.Contains(n.Data.Text, "swordfish") {
			t.Errorf("%s: told is %+v", row.name, n)
		}
	}
	tell := func(kept v1.CalendarCopy) string {
		return NewTeller("acme", "log").Calendar("xmas", declared, kept, at)[0].ID
	}
	later, again := failing, failing
	later.Tries, later.Error = 9, "something else"
	again.FailingSince = at.Add(5 * time.Hour)
	if tell(failing) != tell(later) || tell(failing) == tell(again) {
		t.Error("each failure of a row is told, or the next row is not")
	}
}
