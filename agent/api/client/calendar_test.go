package client

import (
	"errors"
	"net/http"
	"reflect"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// holidays and releases are two calendars.
var (
	holidays = v1.Calendar{Kind: "freeze", Events: []v1.Event{{Summary: "holidays", Start: "2026-12-20", End: "2027-01-07", Timezone: "site-local", AllDay: true}}}
	releases = v1.Calendar{Kind: "allow", Events: []v1.Event{{Start: "2026-12-01T18:00", Duration: "1h30m", Timezone: "UTC", RRule: "FREQ=MONTHLY;BYDAY=1TU"}}}
)

func TestCalendarRoundTrip(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	c, ctx := connect(t, api), t.Context()
	api.SetCalendar("other", "xmas", releases)

	if _, _, err := c.Calendar(ctx, "acme", "xmas"); !HasStatus(err, http.StatusNotFound) || !Missing(err) {
		t.Fatalf("got %v, want a 404 about the calendar", err)
	}
	if list, err := c.Calendars(ctx, "acme"); err != nil || len(list) != 0 {
		t.Fatalf("got %+v, %v; want none", list, err)
	}
	if _, err := CalendarNamed("xmas").Validate(ctx, c, "acme", Stored[v1.Calendar]{}, holidays, Precondition{}); err != nil {
		t.Fatal(err)
	}
	first, err := c.PutCalendar(ctx, "acme", "xmas", holidays, Precondition{IfNoneMatch: "*"})
	if err != nil {
		t.Fatal(err)
	}
	if got, etag, err := c.Calendar(ctx, "acme", "xmas"); err != nil || etag != first || !reflect.DeepEqual(got, holidays) {
		t.Fatalf("got %+v, %s, %v; want %+v, %s", got, etag, err, holidays, first)
	}
	other, err := c.PutCalendar(ctx, "acme", "releases", releases, Precondition{})
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.Calendars(ctx, "acme")
	if want := []v1.CalendarInfo{{Name: "releases", Kind: "allow", Events: 1, ETag: other}, {Name: "xmas", Kind: "freeze", Events: 1, ETag: first}}; err != nil || !reflect.DeepEqual(list, want) {
		t.Errorf("got %+v, %v; want %+v", list, err, want)
	}
	contents, err := c.CalendarsInForce(ctx, "acme")
	if want := map[string]v1.Calendar{"xmas": holidays, "releases": releases}; err != nil || !reflect.DeepEqual(contents, want) {
		t.Errorf("got %+v, %v; want %+v", contents, err, want)
	}
	if _, err := c.PutCalendar(ctx, "acme", "xmas", releases, Precondition{IfMatch: other}); !HasStatus(err, http.StatusPreconditionFailed) {
		t.Errorf("got %v, want 412", err)
	}
	second, err := c.PutCalendar(ctx, "acme", "xmas", releases, Precondition{IfMatch: first})
	if err != nil || second == first {
		t.Fatalf("ETag %s after %s, %v", second, first, err)
	}
	for range 2 { // The second time it is gone already.
		if err := c.DeleteCalendar(ctx, "acme", "xmas", Precondition{IfMatch: second}); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, ok := api.Calendar("acme", "xmas"); ok {
		t.Error("the calendar is still there")
	}
	if _, _, ok := api.Calendar("acme", "releases"); !ok {
		t.Error("the other calendar is gone")
	}
	if _, _, ok := api.Calendar("other", "xmas"); !ok {
		t.Error("the other tenant's calendar is gone")
	}
}

// TestCalendarIsWrittenThoughTheAnswerIsLost checks that a write is not taken
// for somebody else's when it was ours.
func TestCalendarIsWrittenThoughTheAnswerIsLost(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	c, ctx := connect(t, api), t.Context()
	api.RenderCalendar(v1.Calendar.Canonical)
	api.Inject("PUT", "/calendars/xmas", fakeapi.CloseAfter())
	etag, err := c.PutCalendar(ctx, "acme", "xmas", releases, Precondition{IfNoneMatch: "*"})
	if _, now, ok := api.Calendar("acme", "xmas"); err != nil || !ok || etag != now {
		t.Fatalf("ETag %s, %v; want %s", etag, err, now)
	}
	api.Inject("PUT", "/calendars/xmas", fakeapi.CloseAfter(), fakeapi.First(func() { api.SetCalendar("acme", "xmas", holidays) }))
	if _, err := c.PutCalendar(ctx, "acme", "xmas", releases, Precondition{IfMatch: etag}); !HasStatus(err, http.StatusPreconditionFailed) {
		t.Errorf("got %v, want 412, as somebody else wrote", err)
	}
	_, etag, _ = api.Calendar("acme", "xmas")
	api.Inject("DELETE", "/calendars/xmas", fakeapi.CloseAfter())
	if err := c.DeleteCalendar(ctx, "acme", "xmas", Precondition{IfMatch: etag}); err != nil {
		t.Error(err)
	}
	wantEqual(t, "faults left", api.Pending(), 0)
}

func TestValidateCalendarTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	_, err := CalendarNamed("xmas").Validate(t.Context(), connect(t, api), "acme", Stored[v1.Calendar]{}, v1.Calendar{Kind: "block"}, Precondition{})
	if e, ok := errors.AsType[*Error](err); !ok || e.Status != 400 || e.Errors[0].Info.Field != "kind" {
		t.Errorf("got %v, want a 400 about kind", err)
	}
}

// TestCalendarNames checks that a name that would ask for something else is not
// sent.
func TestCalendarNames(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	c, ctx := connect(t, api), t.Context()
	for _, name := range []string{"", "..", "a/b", "A", "a b", "a?x=1"} {
		_, _, get := c.Calendar(ctx, "acme", name)
		_, put := c.PutCalendar(ctx, "acme", name, holidays, Precondition{})
		_, validate := CalendarNamed(name).Validate(ctx, c, "acme", Stored[v1.Calendar]{}, holidays, Precondition{})
		for _, err := range []error{get, put, validate, c.DeleteCalendar(ctx, "acme", name, Precondition{})} {
			wantError(t, err, "is not a name; use at most 63")
		}
	}
	wantEqual(t, "requests", len(api.Requests()), 0)
}
