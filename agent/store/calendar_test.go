package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/store"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

func freeze(description string) v1.Calendar {
	return v1.Calendar{Kind: "freeze", Description: description}
}

// TestCalendarRevisions checks that a write counts only on the revision that it
// names, that a tenant has several calendars, and that other tenants have their
// own.
func TestCalendarRevisions(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	put := func(tenant, name string, base store.Revision) (store.Revision, error) {
		return s.PutCalendar(ctx, tenant, name, freeze(tenant+" "+name), base)
	}
	written := map[string]store.Revision{}
	for _, name := range []string{"xmas", "audit"} {
		if _, _, err := s.Calendar(ctx, "acme", name); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s before the first write: %v", name, err)
		}
		var err error
		if written[name], err = put("acme", name, store.Revision{}); err != nil {
			t.Fatal(err)
		}
		if _, err := put("acme", name, store.Revision{}); !errors.Is(err, store.ErrConflict) {
			t.Errorf("%s, a second first write: %v", name, err)
		}
	}
	if _, err := put("other", "xmas", store.Revision{}); err != nil {
		t.Fatal(err)
	}
	if _, err := put("acme", "xmas", written["audit"]); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a write on the revision of another calendar: %v", err)
	}
	if _, err := s.DeleteCalendar(ctx, "acme", "xmas", written["audit"]); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a deletion of another calendar's revision: %v", err)
	}
	second, err := put("acme", "xmas", written["xmas"])
	if err != nil {
		t.Fatal(err)
	}
	if c, revision, err := s.Calendar(ctx, "acme", "xmas"); err != nil || revision != second || c.Description != "acme xmas" {
		t.Errorf("got %+v, %s, %v", c, revision, err)
	}
	all, err := s.Calendars(ctx, "acme")
	if err != nil || len(all) != 2 || all[0].Name != "audit" || all[0].Revision != written["audit"] || all[1].Name != "xmas" || all[1].Calendar.Description != "acme xmas" {
		t.Errorf("listed %+v, %v", all, err)
	}
	// The deletion's revision is its own, not the one after what it deletes.
	if _, err := put("acme", "audit", written["audit"]); err != nil {
		t.Fatal(err)
	}
	deletion, err := s.DeleteCalendar(ctx, "acme", "xmas", second)
	if err != nil || deletion.Number != second.Number+2 {
		t.Errorf("deleted %s as %s, %v", second, deletion, err)
	}
	if all, err := s.Calendars(ctx, "acme"); err != nil || len(all) != 1 || all[0].Name != "audit" {
		t.Errorf("after the deletion there are %+v, %v", all, err)
	}
	if again, err := put("acme", "xmas", store.Revision{}); err != nil || again.Number != deletion.Number+1 {
		t.Errorf("written again as %s, %v", again, err)
	}
}

// TestWatchCalendars checks what a watch sees: what is there, the end of that,
// and each change, of one tenant alone.
func TestWatchCalendars(t *testing.T) {
	t.Parallel()
	s := open(t)
	revisions := map[string]store.Revision{}
	for _, name := range []string{"a", "b", "gone"} {
		var err error
		if revisions[name], err = s.PutCalendar(t.Context(), "acme", name, freeze(name), store.Revision{}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.PutCalendar(t.Context(), "other", name, freeze(name), store.Revision{}); err != nil {
			t.Fatal(err)
		}
	}
	deletion, err := s.DeleteCalendar(t.Context(), "acme", "gone", revisions["gone"])
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	seen := make(chan store.SeenCalendar)
	ended := make(chan error, 1)
	go func() {
		defer close(seen)
		ended <- s.WatchCalendars(ctx, "acme", func(c store.SeenCalendar) { seen <- c })
	}()
	want := func(name string, there bool, number uint64) {
		t.Helper()
		c := <-seen
		if c.Name != name || c.At.IsZero() != (name == "") || (c.Value != nil) != there || c.Number != number || c.Err != nil || there && c.Value.Description != name {
			t.Errorf("it sees %+v; want %q as %d", c, name, number)
		}
	}
	want("a", true, revisions["a"].Number)
	want("b", true, revisions["b"].Number)
	want("gone", false, deletion.Number)
	want("", false, 0)
	added, err := s.PutCalendar(t.Context(), "acme", "c", freeze("c"), store.Revision{})
	if err != nil {
		t.Fatal(err)
	}
	want("c", true, added.Number)
	if deletion, err = s.DeleteCalendar(t.Context(), "acme", "a", revisions["a"]); err != nil {
		t.Fatal(err)
	}
	want("a", false, deletion.Number)
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the watch ended with %v", err)
	}
}

// TestWatchNoCalendars checks that a tenant without calendars is told of.
func TestWatchNoCalendars(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	calls := 0
	err := open(t).WatchCalendars(ctx, "acme", func(c store.SeenCalendar) {
		calls++
		if c != (store.SeenCalendar{}) {
			t.Errorf("it sees %+v", c)
		}
		stop()
	})
	if calls != 1 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d calls, %v", calls, err)
	}
}

// TestTooManyCalendars checks that a tenant cannot fill the store, and that one
// that has as many as it may can still change and delete them.
func TestTooManyCalendars(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	var last store.Revision
	for i := range v1.MaxCalendars {
		var err error
		if last, err = s.PutCalendar(ctx, "acme", fmt.Sprintf("c%02d", i), freeze(""), store.Revision{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.PutCalendar(ctx, "acme", "more", freeze(""), store.Revision{}); !errors.Is(err, store.ErrFull) {
		t.Errorf("one more: %v", err)
	}
	if _, err := s.PutCalendar(ctx, "other", "more", freeze(""), store.Revision{}); err != nil {
		t.Errorf("another tenant: %v", err)
	}
	last, err := s.PutCalendar(ctx, "acme", "c99", freeze("changed"), last)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.DeleteCalendar(ctx, "acme", "c99", last); err != nil {
		t.Fatal(err)
	}
	if _, err := s.PutCalendar(ctx, "acme", "more", freeze(""), store.Revision{}); err != nil {
		t.Errorf("after one is deleted: %v", err)
	}
}
