package api

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// fetcher keeps a copy with an event for each revision that it is asked for, or fails.
type fetcher struct {
	m    *memory
	fail error
	of   []uint64
}

func (f *fetcher) Refresh(ctx context.Context, tenant, name string, revision uint64) error {
	f.of = append(f.of, revision)
	if f.fail != nil {
		return f.fail
	}
	at := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	_, err := f.m.intent.PutCalendarCopy(ctx, tenant, name, v1.CalendarCopy{
		URL: "https://calendar.example/swordfish", Source: "https://calendar.example/swordfish", Events: []v1.Event{{Start: "2026-12-24", AllDay: true}}, FetchedAt: at, ChangedAt: at, Next: at.Add(time.Hour),
	}, store.Revision{})
	return err
}

// TestFetchedCalendars checks what is shown of calendars with a URL, before and after they were
// fetched, and that the fetching changes no ETag of what is declared.
func TestFetchedCalendars(t *testing.T) {
	t.Parallel()
	const states, body = "/v1/state/tenants/acme/os-upgrade/calendars", `{"kind":"freeze","url":"https://calendar.example/swordfish","refresh":"120m"}`
	const declared, fetched = `{"kind":"freeze","url":"https://calendar.example/swordfish","refresh":"2h"}`, `"status":"fetched","fetched-at":"2026-11-24T12:00:00Z","changed-at":"2026-11-24T12:00:00Z","next-fetch":"2026-11-24T13:00:00Z","event-count":1`
	m := &memory{}
	f := &fetcher{m: m}
	m.calendars = f
	s := serve(t, m, access.Reads, access.Writes)
	s.want("PUT", calendarsPath+"/plain", `{"kind":"allow"}`, 201, "")
	s.want("GET", states, "", 200, "[]")
	etag := s.want("PUT", calendarsPath+"/xmas", body, 201, "").Get("ETag")
	s.want("GET", states, "", 200, `[{"name":"xmas","kind":"freeze","host":"calendar.example","status":"waiting","event-count":0}]`)
	s.want("GET", states+"/xmas", "", 200, `{"name":"xmas","kind":"freeze","host":"calendar.example","status":"waiting","event-count":0}`)
	s.want("POST", states+"/xmas/refresh", "", 200, fetched)
	s.want("GET", states, "", 200, fetched+`}]`)
	s.want("GET", states+"/xmas", "", 200, fetched+`,"events":[{"start":"2026-12-24","all-day":true}]}`)
	s.want("GET", states+"/xmas?fields=event-count", "", 200, `{"event-count":1}`)
	s.want("GET", calendarsPath+"?content=true", "", 200, `"calendar":`+declared+`,"fetched":{"name":"xmas",`)
	s.want("GET", calendarsPath+"/xmas", "", 200, declared)
	if now := s.want("GET", calendarsPath+"/xmas", "", 200, "").Get("ETag"); now != etag || len(f.of) != 1 {
		t.Errorf("the ETag is %s, and was %s; refreshed were %v", now, etag, f.of)
	}
	f.fail = store.ErrNotFound
	s.want("POST", states+"/xmas/refresh", "", 404, "calendar xmas of tenant \\\"acme\\\" has no url")
	f.fail = errors.New("the disk is full")
	s.want("POST", states+"/xmas/refresh", "", 503, "cannot fetch calendar xmas: the disk is full")
	for path, part := range map[string]string{"/plain": "has no url, so the site does not fetch it", "/none": "has no calendar none"} {
		s.want("GET", states+path, "", 404, part)
		s.want("POST", states+path+"/refresh", "", 404, part)
	}
	s.want("GET", states+"/A", "", 400, "is not the name of a calendar")
}

// TestNobodyFetches checks what a command in the place of a site answers.
func TestNobodyFetches(t *testing.T) {
	t.Parallel()
	s := serve(t, &memory{}, access.Writes)
	s.want("PUT", calendarsPath+"/xmas", `{"kind":"freeze","url":"https://calendar.example/a.ics"}`, 201, "")
	s.want("POST", "/v1/state/tenants/acme/os-upgrade/calendars/xmas/refresh", "", 503, "calendars are fetched only while the site runs")
}
