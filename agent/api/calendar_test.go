package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

const calendarsPath = "/v1/config/tenants/acme/os-upgrade/calendars"

// TestCalendarObject walks through the lives of two calendars.
func TestCalendarObject(t *testing.T) {
	t.Parallel()
	m := &memory{}
	s := serve(t, m, access.Reads, access.Writes)
	const xmas = calendarsPath + "/xmas"
	const body = `{"kind":"freeze","events":[{"start":"2026-12-24T00:00:00","duration":"1440m","rrule":"FREQ=YEARLY"}]}`
	const canonical = `{"kind":"freeze","events":[{"start":"2026-12-24T00:00","duration":"1d","timezone":"site-local","rrule":"FREQ=YEARLY"}]}`
	s.want("GET", calendarsPath, "", 200, "[]")
	s.want("GET", xmas, "", 404, `tenant \"acme\" has no calendar xmas; create it with PUT`)
	s.want("PATCH", xmas, `{"kind":"freeze"}`, 404, "create it with PUT")
	s.want("DELETE", xmas, "", 404, "has no calendar xmas")
	s.want("PUT", xmas+"?validate=true", body, 204, "")
	s.want("GET", xmas, "", 404, "")
	created := s.want("PUT", xmas, body, 201, "", "If-None-Match", "*")
	if created.Get("Location") != xmas || created.Get("ETag") == "" {
		t.Errorf("created with %v", created)
	}
	first := s.want("GET", xmas, "", 200, canonical).Get("ETag")
	if first != created.Get("ETag") {
		t.Errorf("GET has ETag %s, PUT had %s", first, created.Get("ETag"))
	}
	s.want("GET", "/v1/config/os-upgrade/calendars/xmas", "", 200, canonical)
	s.want("GET", xmas+"?fields=kind,events/[start]", "", 200, `{"kind":"freeze","events":[{"start":"2026-12-24T00:00"}]}`)
	s.want("GET", xmas+"?fields=events/strt", "", 400, "strt")
	s.want("GET", xmas, "", 304, "", "If-None-Match", first)
	s.want("PUT", xmas, body, 412, "the calendar xmas of tenant", "If-None-Match", "*")
	s.want("PUT", xmas, body, 412, "", "If-Match", `"other"`)
	second := s.want("PATCH", xmas, "description: the shop is busy\n", 204, "", "If-Match", first, "Content-Type", "application/yaml").Get("ETag")
	s.want("GET", xmas, "", 200, `"description":"the shop is busy","events":[`)

	s.want("PUT", calendarsPath+"/extra", `{"kind":"allow","ics":"BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nDTSTART:20261121T010000Z\r\nDURATION:PT4H\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"}`, 201, "")
	s.want("GET", calendarsPath, "", 200, `[{"name":"extra","kind":"allow","events":1,"etag":"\"1-3\""},{"name":"xmas","kind":"freeze","description":"the shop is busy","events":1,"etag":`)
	s.want("GET", calendarsPath+"?fields=name", "", 200, `[{"name":"extra"},{"name":"xmas"}]`)
	s.want("GET", calendarsPath+"?content=true", "", 200, `"etag":"\"1-3\"","calendar":{"kind":"allow","ics":"BEGIN:VCALENDAR\r\n`)
	s.want("GET", calendarsPath+"?content=all", "", 400, "content")
	s.want("GET", calendarsPath+"?limit=3", "", 400, "limit")

	const monday = `{"name":"monday","kind":"freeze","events":[{"start":"2026-11-23","all-day":true}]}`
	s.want("POST", calendarsPath, `{"name":"Monday","kind":"allow"}`, 400, `name: \"Monday\" is not the name of a calendar`)
	s.want("POST", calendarsPath+"?validate=true", monday, 204, "")
	posted := s.want("POST", calendarsPath, monday, 201, "")
	if posted.Get("Location") != calendarsPath+"/monday" || posted.Get("ETag") == "" {
		t.Errorf("created with %v", posted)
	}
	s.want("POST", calendarsPath, monday, 409, "has the calendar monday already; replace it with PUT "+calendarsPath+"/monday")
	s.want("POST", calendarsPath+"?validate=true", monday, 409, "already")
	fill(t, m, v1.MaxCalendars-3)
	s.want("POST", calendarsPath, strings.Replace(monday, "monday", "sunday", 1), 400, "there are too many")
	s.want("DELETE", calendarsPath+"/monday", "", 204, "")
	s.want("PUT", calendarsPath, "", 405, "use GET, HEAD, POST")

	s.want("DELETE", xmas, "", 412, "", "If-Match", first)
	s.want("DELETE", xmas+"?force=true", "", 400, "force")
	s.want("DELETE", xmas+"?validate=true", "", 204, "")
	s.want("GET", xmas, "", 200, "")
	s.want("DELETE", xmas, "", 204, "", "If-Match", second)
	s.want("GET", xmas, "", 404, "")
	s.want("PUT", xmas, body, 412, "so If-Match cannot match", "If-Match", "*")
	// The last is the deletion's own revision.
	const filled = v1.MaxCalendars - 3
	if want := []uint64{1, 2, 3, 4, filled + 5, filled + 6}; !slices.Equal(m.seen, want) {
		t.Errorf("the controller was waited for to see %v; want %v", m.seen, want)
	}
}

// fill adds so many calendars.
func fill(t *testing.T, m *memory, n int) {
	t.Helper()
	for i := range n {
		if _, err := m.intent.PutCalendar(t.Context(), "acme", fmt.Sprint("filler-", i), v1.Kept[v1.Calendar]{Value: v1.Calendar{Kind: "freeze"}}, store.Revision{}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWrongCalendarIsNotStored(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ path, body, part string }{
		"a name in capitals":    {"/XMAS", `{"kind":"freeze"}`, `"field":"name","value":"XMAS"`},
		"a name with a dot":     {"/a.b", `{"kind":"freeze"}`, "is not the name of a calendar"},
		"a name too long":       {"/" + strings.Repeat("a", 64), `{"kind":"freeze"}`, "use 1 to 63"},
		"no kind":               {"/x", `{}`, `"field":"kind"`},
		"another kind":          {"/x", `{"kind":"block"}`, "use allow or freeze"},
		"an unknown key":        {"/x", `{"kind":"freeze","event":[]}`, "did you mean events?"},
		"an unknown zone":       {"/x", `{"kind":"freeze","events":[{"start":"2026-12-24T18:00","duration":"1h","timezone":"Europe/Stokholm"}]}`, `"field":"events[0].timezone","value":"Europe/Stokholm"`},
		"an end before":         {"/x", `{"kind":"freeze","events":[{"start":"2026-12-24T18:00","end":"2026-12-24T17:00"}]}`, `"field":"events[0].end"`},
		"a broken ics":          {"/x", `{"kind":"freeze","ics":"BEGIN:VEVENT"}`, `"field":"ics"`},
		"an event wrong in ics": {"/x", `{"kind":"freeze","ics":"BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:x\nEND:VEVENT\nEND:VCALENDAR"}`, `"field":"ics.VEVENT[0].DTSTART"`},
		"ics and events":        {"/x", `{"kind":"freeze","events":[{"start":"2026-12-24","all-day":true}],"ics":"BEGIN:VCALENDAR"}`, `"field":"ics"`},
		"too large":             {"/x", `{"kind":"freeze","description":"` + strings.Repeat("x", v1.MaxBody) + `"}`, "larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &memory{}
			s := serve(t, m, access.Writes)
			status := 400
			if name == "too large" {
				status = 413
			}
			for _, query := range []string{"?validate=true", ""} {
				s.want("PUT", calendarsPath+c.path+query, c.body, status, c.part)
			}
			if all, err := m.intent.Calendars(t.Context(), "acme"); len(all) > 0 || err != nil {
				t.Errorf("stored %+v, %v", all, err)
			}
		})
	}
}

// TestRoomForCalendars checks that one too many is refused, and told of before.
func TestRoomForCalendars(t *testing.T) {
	t.Parallel()
	m := &memory{}
	s := serve(t, m, access.Writes)
	const body = `{"kind":"freeze"}`
	fill(t, m, v1.MaxCalendars-1)
	s.want("PUT", calendarsPath+"/a", body, 201, "")
	full := fmt.Sprintf("has %d calendars", v1.MaxCalendars)
	s.want("PUT", calendarsPath+"/d?validate=true", body, 400, full)
	s.want("PUT", calendarsPath+"/d", body, 400, full)
	s.want("PUT", calendarsPath+"/a", body, 204, "")
	s.want("GET", calendarsPath, "", 403, "does not have the right")
}
