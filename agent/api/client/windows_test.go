package client

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// advent is a Tuesday at noon.
var advent = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// TestWindows checks what a configuration and calendars add up to.
func TestWindows(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	api.SetNow(advent)
	api.SetConfig("acme", weekly) // Friday and Saturday at 01:00 for 4h.
	api.SetCalendar("acme", "releases", releases)
	api.SetCalendar("acme", "xmas", holidays)
	api.SetCalendar("acme", "wrong", v1.Calendar{Kind: "block"})
	api.SetCalendar("other", "always", v1.Calendar{Kind: "freeze", Events: []v1.Event{{Start: "2026-11-01", End: "2027-10-01", AllDay: true}}})
	c, ctx := connect(t, api), t.Context()
	starts := func(windows []v1.Window, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, w := range windows {
			texts = append(texts, w.Start.Format("01-02T15:04")+" "+w.Length)
		}
		return strings.Join(texts, ", ")
	}
	wantEqual(t, "three", starts(c.Windows(ctx, "acme", time.Time{}, time.Time{}, 3)), "12-01T18:00 1h30m, 12-04T01:00 4h, 12-05T01:00 4h")
	wantEqual(t, "over the holidays", starts(c.Windows(ctx, "acme", advent.AddDate(0, 0, 17), advent.AddDate(0, 0, 38), 0)), "12-19T01:00 4h, 01-08T01:00 4h")
	all, err := c.Windows(ctx, "acme", time.Time{}, time.Time{}, 0)
	if err != nil || len(all) != 10 || all[0].Sources[0].Calendar != "releases" || *all[1].Sources[0].Window != 0 {
		t.Errorf("got %+v, %v", all, err)
	}
	wantEqual(t, "no windows", starts(c.Windows(ctx, "other", time.Time{}, time.Time{}, 0)), "")
}

func TestWindowsQuery(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	c, ctx := connect(t, api), t.Context()
	_, err := c.Windows(ctx, "acme", time.Time{}, time.Time{}, 1001)
	if e, ok := errors.AsType[*Error](err); !ok || e.Status != http.StatusBadRequest || e.Errors[0].Info.Field != "count" {
		t.Errorf("got %v, want a 400 about count", err)
	}
	_, err = c.Windows(ctx, "..", time.Time{}, time.Time{}, 0)
	wantError(t, err, `tenant ".." is not a name`)
	wantEqual(t, "query", api.Requests()[0].Query.Encode(), "count=1001")
	wantEqual(t, "requests", len(api.Requests()), 1)
}

func TestWindowsICS(t *testing.T) {
	t.Parallel()
	api := fakeapi.New(t)
	api.SetNow(advent)
	api.SetConfig("acme", weekly)
	text, err := connect(t, api).WindowsICS(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "events", strings.Count(string(text), "\r\nUID:"), 104)
	wantEqual(t, "content type wanted", api.Requests()[0].Header.Get("Accept"), "text/calendar")
	api.Inject("GET", "/windows.ics", fakeapi.Status(http.StatusForbidden, "no"))
	if _, err := connect(t, api).WindowsICS(t.Context(), "acme"); !HasStatus(err, http.StatusForbidden) {
		t.Errorf("got %v, want 403", err)
	}
}
