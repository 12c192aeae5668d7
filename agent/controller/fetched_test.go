package controller

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

const (
	fetchedFrom  = "https://calendar.example/swordfish/a.ics"
	fetchedLater = "https://other.example/b.ics"
)

// fetchedCopy is a copy with the events of a calendar.
func fetchedCopy(from v1.Calendar) *v1.CalendarCopy {
	at := time.Date(2000, 1, 1, 1, 0, 0, 0, time.UTC)
	return &v1.CalendarCopy{URL: fetchedFrom, Source: fetchedFrom, Events: from.Events, FetchedAt: at, ChangedAt: at}
}

// TestFetchedCalendars checks what is open and frozen at noon by calendars with a URL. A freeze
// that was never fetched lets nothing be open, because nobody knows what it forbids; a calendar of
// kind allow opens nothing before it was fetched. Copies that are older than their last try count.
func TestFetchedCalendars(t *testing.T) {
	t.Parallel()
	noon := time.Date(2000, 1, 1, 12, 0, 0, 0, time.UTC)
	freeze, allow := v1.Calendar{Kind: "freeze", URL: fetchedFrom}, v1.Calendar{Kind: "allow", URL: fetchedFrom}
	elsewhere := v1.Calendar{Kind: "freeze", URL: fetchedLater}
	atNoon, empty := fetchedCopy(freezeFrom("10:00", "4h")), fetchedCopy(v1.Calendar{})
	tooLong := fetchedCopy(freezeFrom("10:00", "20d"))
	failing := *atNoon
	failing.Error, failing.Tries, failing.FailingSince = "no", 9, noon
	for _, row := range []struct {
		name         string
		windows      *v1.OSUpgrade
		declared     *v1.Calendar
		kept         *v1.CalendarCopy
		open, frozen bool
		unreadable   string
	}{
		{"a freeze that was never fetched", &always, &freeze, nil, false, false, "calendar xmas is a freeze that was not fetched from calendar.example yet; correct its URL or delete it"},
		{"a freeze that could never be fetched", &always, &freeze, &v1.CalendarCopy{URL: fetchedFrom, Error: "no", Tries: 1}, false, false, "not fetched from calendar.example yet"},
		{"a freeze", &always, &freeze, atNoon, false, true, ""},
		{"a freeze that fails by now", &always, &freeze, &failing, false, true, ""},
		{"a freeze without an event", &always, &freeze, empty, true, false, ""},
		{"the copy of another source", &always, &elsewhere, atNoon, false, false, "not fetched from other.example yet"},
		{"a copy that nobody declares", &always, nil, atNoon, true, false, ""},
		{"more windows that were never fetched", &closed, &allow, nil, false, false, ""},
		{"more windows", &closed, &allow, atNoon, true, false, ""},
		{"more windows that are too long", &closed, &allow, tooLong, false, false, ""},
		{"windows beside those that were never fetched", &always, &allow, nil, true, false, ""},
	} {
		for _, order := range []string{"the copy first", "the copy last", "the copy after all"} {
			i := newIntent(Options{Now: func() time.Time { return noon }, Tenant: "acme", Zone: time.UTC, Logger: slog.New(slog.DiscardHandler)})
			name := store.Object{Kind: store.Calendar, Name: "xmas"}
			kept := store.Seen{Object: store.Object{Kind: store.Copy, Name: "xmas"}, Copy: row.kept, Number: 7}
			i.set(store.Seen{Object: theConfig, Config: row.windows, Number: 1})
			if order == "the copy first" {
				i.set(kept)
			}
			i.set(store.Seen{Object: name, Calendar: row.declared, Number: 2})
			if order == "the copy last" {
				i.set(kept)
			}
			i.set(store.Seen{})
			i.set(kept)
			opening, found := i.nextOpening(noon)
			freeze, freezes := i.nextFreeze(noon)
			err := i.unreadable()
			if (found && opening.Contains(noon)) != row.open || (freezes && freeze.Contains(noon)) != row.frozen {
				t.Errorf("%s, %s: the next opening is %v, the next freeze %v", row.name, order, opening, freeze)
			}
			if (err == nil) != (row.unreadable == "") || err != nil && !strings.Contains(err.Error(), row.unreadable) {
				t.Errorf("%s, %s: what cannot be read is %v", row.name, order, err)
			}
		}
	}
}

// closed is a configuration without windows.
var closed = v1.OSUpgrade{WorkerApplications: always.WorkerApplications}

// TestFetchedAgain checks that only other events change what is open, so that a run is not judged
// by when a calendar was asked last; and that what was read anew is what counts.
func TestFetchedAgain(t *testing.T) {
	t.Parallel()
	noon := time.Date(2000, 1, 1, 12, 0, 0, 0, time.UTC)
	i := newIntent(Options{Now: func() time.Time { return noon }, Tenant: "acme", Zone: time.UTC, Logger: slog.New(slog.DiscardHandler)})
	freeze := v1.Calendar{Kind: "freeze", URL: fetchedFrom}
	see := func(kept *v1.CalendarCopy) {
		i.set(store.Seen{Object: store.Object{Kind: store.Copy, Name: "xmas"}, Copy: kept, Number: 7, At: noon})
	}
	i.set(store.Seen{Object: theConfig, Config: &always, Number: 1})
	i.set(store.Seen{Object: store.Object{Kind: store.Calendar, Name: "xmas"}, Calendar: &freeze, Number: 2})
	i.set(store.Seen{})
	see(fetchedCopy(freezeFrom("10:00", "1h")))
	i.scheduledAt = time.Time{}
	again := fetchedCopy(freezeFrom("10:00", "60m"))
	again.FetchedAt, again.Error = noon, "no"
	if see(again); !i.scheduledAt.IsZero() {
		t.Error("an answer with the same events counts as a change of the windows")
	}
	if s := i.fetchedStates(); len(s) != 1 || s[0].Error != "no" || s[0].EventCount != 1 || s[0].Events != nil {
		t.Errorf("shown is %+v", s)
	}
	other := fetchedCopy(freezeFrom("10:00", "4h"))
	other.ChangedAt = noon.Add(-time.Minute)
	if see(other); !i.scheduledAt.Equal(other.ChangedAt) {
		t.Errorf("the windows changed at %v; want when the events did", i.scheduledAt)
	}
	if f, found := i.nextFreeze(noon); !found || !f.Contains(noon) {
		t.Errorf("the next freeze is %v", f)
	}
	i.reread()
	i.set(store.Seen{Object: theConfig, Config: &always, Number: 1})
	i.set(store.Seen{})
	if f, found := i.nextFreeze(noon); found || len(i.copies)+len(i.fetched) > 0 || i.unreadable() != nil {
		t.Errorf("after all was read anew, without the calendar, the next freeze is %v", f)
	}
}
