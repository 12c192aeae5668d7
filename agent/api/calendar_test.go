package api

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/store"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// calendarStore is a store of one tenant's calendars.
type calendarStore struct {
	memory

	calendars map[string]v1.Kept[v1.Calendar]
	revisions map[string]store.Revision
	last      uint64
	seenOnes  []uint64
	most      int
}

func newCalendarStore() *calendarStore {
	return &calendarStore{calendars: map[string]v1.Kept[v1.Calendar]{}, revisions: map[string]store.Revision{}, most: 3}
}

func (s *calendarStore) Calendar(_ context.Context, _, name string) (v1.Kept[v1.Calendar], store.Revision, error) {
	if c, ok := s.calendars[name]; ok {
		return c, s.revisions[name], nil
	}
	return v1.Kept[v1.Calendar]{}, store.Revision{}, store.ErrNotFound
}

func (s *calendarStore) Calendars(context.Context, string) ([]store.Named[v1.Calendar], error) {
	var all []store.Named[v1.Calendar]
	for _, name := range slices.Sorted(maps.Keys(s.calendars)) {
		all = append(all, store.Named[v1.Calendar]{Name: name, Value: s.calendars[name].Value, Revision: s.revisions[name]})
	}
	return all, nil
}

func (s *calendarStore) RoomForCalendar(context.Context, string) error {
	if len(s.calendars) >= s.most {
		return fmt.Errorf("tenant acme has %d calendars: %w", s.most, store.ErrFull)
	}
	return nil
}

func (s *calendarStore) next() store.Revision {
	s.last += 10
	return store.Revision{Bucket: 1, Number: s.last}
}

func (s *calendarStore) PutCalendar(_ context.Context, _, name string, c v1.Kept[v1.Calendar], base store.Revision) (store.Revision, error) {
	if s.revisions[name] != base {
		return store.Revision{}, store.ErrConflict
	}
	s.calendars[name], s.revisions[name] = c, s.next()
	return s.revisions[name], nil
}

func (s *calendarStore) DeleteCalendar(_ context.Context, _, name string, base store.Revision) (store.Revision, error) {
	if s.revisions[name] != base {
		return store.Revision{}, store.ErrConflict
	}
	delete(s.calendars, name)
	delete(s.revisions, name)
	return s.next(), nil
}

func (s *calendarStore) Seen(_ context.Context, number uint64) error {
	s.seenOnes = append(s.seenOnes, number)
	return nil
}

const calendarsPath = "/v1/config/tenants/acme/os-upgrade/calendars"

// TestCalendarObject walks through the lives of two calendars.
func TestCalendarObject(t *testing.T) {
	t.Parallel()
	m := newCalendarStore()
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
	s.want("GET", calendarsPath, "", 200, `[{"name":"extra","kind":"allow","events":1,"etag":"\"1-30\""},{"name":"xmas","kind":"freeze","description":"the shop is busy","events":1,"etag":`)
	s.want("GET", calendarsPath+"?fields=name", "", 200, `[{"name":"extra"},{"name":"xmas"}]`)
	s.want("GET", calendarsPath+"?content=true", "", 200, `"etag":"\"1-30\"","calendar":{"kind":"allow","ics":"BEGIN:VCALENDAR\r\n`)
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
	if want := []uint64{10, 20, 30, 40, 50, 60}; !slices.Equal(m.seenOnes, want) {
		t.Errorf("the controller was waited for to see %v; want %v", m.seenOnes, want)
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
			m := newCalendarStore()
			s := serve(t, m, access.Writes)
			status := 400
			if name == "too large" {
				status = 413
			}
			for _, query := range []string{"?validate=true", ""} {
				s.want("PUT", calendarsPath+c.path+query, c.body, status, c.part)
			}
			if len(m.calendars) > 0 {
				t.Errorf("stored %+v", m.calendars)
			}
		})
	}
}

// TestRoomForCalendars checks that one too many is refused, and told of before.
func TestRoomForCalendars(t *testing.T) {
	t.Parallel()
	m := newCalendarStore()
	s := serve(t, m, access.Writes)
	const body = `{"kind":"freeze"}`
	for _, name := range []string{"/a", "/b", "/c"} {
		s.want("PUT", calendarsPath+name, body, 201, "")
	}
	s.want("PUT", calendarsPath+"/d?validate=true", body, 400, "has 3 calendars")
	s.want("PUT", calendarsPath+"/d", body, 400, "has 3 calendars")
	s.want("PUT", calendarsPath+"/a", body, 204, "")
	s.want("GET", calendarsPath, "", 403, "does not have the right")
}
