package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/store"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

func freeze(description string) v1.Kept[v1.Calendar] {
	return v1.Kept[v1.Calendar]{Value: v1.Calendar{Kind: "freeze", Description: description}}
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
	if c, revision, err := s.Calendar(ctx, "acme", "xmas"); err != nil || revision != second || c.Value.Description != "acme xmas" {
		t.Errorf("got %+v, %s, %v", c, revision, err)
	}
	all, err := s.Calendars(ctx, "acme")
	if err != nil || len(all) != 2 || all[0].Name != "audit" || all[0].Revision != written["audit"] || all[1].Name != "xmas" || all[1].Value.Description != "acme xmas" {
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

// TestRolloutRevisions checks that a write counts only on the revision that it
// names, and never on one of another object.
func TestRolloutRevisions(t *testing.T) {
	t.Parallel()
	s, ctx := open(t), t.Context()
	conflict := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, store.ErrConflict) {
			t.Errorf("%s: %v; want a conflict", what, err)
		}
	}
	if _, _, err := s.Rollout(ctx, "acme"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("before the first write: %v", err)
	}
	config, err := s.PutConfig(ctx, "acme", v1.Kept[v1.OSUpgrade]{Value: v1.OSUpgrade{}}, store.Revision{})
	if err != nil {
		t.Fatal(err)
	}
	first, err := s.PutRollout(ctx, "acme", v1.Kept[v1.Rollout]{Value: v1.Rollout{Splay: "1h", Stages: []v1.Stage{}}}, store.Revision{})
	if err != nil {
		t.Fatal(err)
	}
	if first == config {
		t.Errorf("a configuration and a rollout both have revision %s", first)
	}
	_, err = s.PutRollout(ctx, "acme", v1.Kept[v1.Rollout]{Value: v1.Rollout{}}, store.Revision{})
	conflict("a second first write", err)
	_, err = s.PutRollout(ctx, "acme", v1.Kept[v1.Rollout]{Value: v1.Rollout{}}, config)
	conflict("a write on the revision of the configuration", err)
	second, err := s.PutRollout(ctx, "acme", v1.Kept[v1.Rollout]{Value: v1.Rollout{Splay: "2h"}}, first)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.DeleteRollout(ctx, "acme", first)
	conflict("a deletion of an older revision", err)
	_, err = s.DeleteRollout(ctx, "acme", config)
	conflict("a deletion of the configuration's revision", err)
	if got, revision, err := s.Rollout(ctx, "acme"); err != nil || revision != second || got.Value.Splay != "2h" || got.Value.Stages != nil {
		t.Errorf("got %+v, %s, %v; want revision %s", got, revision, err, second)
	}
	if _, _, err := s.Rollout(ctx, "other"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another tenant: %v", err)
	}
	deletion, err := s.DeleteRollout(ctx, "acme", second)
	if err != nil || deletion.Number != second.Number+1 {
		t.Fatalf("deleted %s as %s, %v", second, deletion, err)
	}
	if _, _, err := s.Rollout(ctx, "acme"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("after the deletion: %v", err)
	}
	if _, _, err := s.Config(ctx, "acme"); err != nil {
		t.Errorf("the configuration is gone with the rollout: %v", err)
	}
	third, err := s.PutRollout(ctx, "acme", v1.Kept[v1.Rollout]{Value: v1.Rollout{}}, store.Revision{})
	if err != nil || third.Number <= second.Number+1 {
		t.Errorf("written again as %s, %v; the deletion of %s has a revision too", third, err, second)
	}
}

// intentWatch is a watch that shows one change after the other.
type intentWatch struct {
	*testing.T
	changes chan store.Seen
	stop    func()
	ended   chan error
}

func watchIntent(t *testing.T, s *store.Store, tenant string) *intentWatch {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	w := &intentWatch{T: t, changes: make(chan store.Seen), stop: stop, ended: make(chan error, 1)}
	go func() {
		defer close(w.changes)
		w.ended <- s.WatchIntent(ctx, tenant, func(c store.Seen) {
			select {
			case w.changes <- c:
			case <-ctx.Done():
			}
		})
	}()
	return w
}

// next returns the next change, which must be of this object.
func (w *intentWatch) next(kind store.Kind, name string, number uint64) store.Seen {
	w.Helper()
	var c store.Seen
	select {
	case c = <-w.changes:
	case <-time.After(10 * time.Second):
		w.Fatalf("it has not seen %s %q as %d", kind, name, number)
	}
	if c.Object != (store.Object{Kind: kind, Name: name}) || c.At.IsZero() != (kind == "") || c.Number != number || c.Err != nil {
		w.Errorf("it sees %+v; want %s %q as %d", c, kind, name, number)
	}
	return c
}

func (w *intentWatch) calendar(name string, there bool, number uint64) {
	w.Helper()
	if c := w.next(store.Calendar, name, number); (c.Calendar != nil) != there || there && c.Calendar.Description != name || c.Config != nil || c.Rollout != nil {
		w.Errorf("of calendar %q it sees %+v", name, c)
	}
}

// TestWatchIntent checks what a watch sees: what is there, the end of that, and
// each change and deletion, of one tenant alone.
func TestWatchIntent(t *testing.T) {
	t.Parallel()
	s := open(t)
	config, err := s.PutConfig(t.Context(), "acme", v1.Kept[v1.OSUpgrade]{Value: v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: "app"}}}}, store.Revision{})
	if err != nil {
		t.Fatal(err)
	}
	revisions := map[string]store.Revision{}
	for _, name := range []string{"a", "b", "gone"} {
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
	w := watchIntent(t, s, "acme")
	if c := w.next(store.Config, "", config.Number); c.Config == nil || len(c.Config.WorkerApplications) != 1 || c.Rollout != nil || c.Calendar != nil {
		t.Errorf("of the configuration it sees %+v", c)
	}
	w.calendar("a", true, revisions["a"].Number)
	w.calendar("b", true, revisions["b"].Number)
	w.calendar("gone", false, deletion.Number)
	if c := w.next("", "", 0); c != (store.Seen{}) {
		t.Errorf("at the end of what was there it sees %+v", c)
	}
	if _, err := s.PutRollout(t.Context(), "other", v1.Kept[v1.Rollout]{Value: v1.Rollout{}}, store.Revision{}); err != nil {
		t.Fatal(err)
	}
	rollout, err := s.PutRollout(t.Context(), "acme", v1.Kept[v1.Rollout]{Value: v1.Rollout{Splay: "1h"}}, store.Revision{})
	if err != nil {
		t.Fatal(err)
	}
	if r := w.next(store.Rollout, "", rollout.Number); r.Rollout == nil || r.Rollout.Splay != "1h" || r.Config != nil || r.Calendar != nil {
		t.Errorf("after %s it sees %+v", rollout, r)
	}
	if deletion, err = s.DeleteRollout(t.Context(), "acme", rollout); err != nil {
		t.Fatal(err)
	}
	if r := w.next(store.Rollout, "", deletion.Number); r.Rollout != nil {
		t.Errorf("after the deletion of %s it sees %+v", rollout, r)
	}
	added, err := s.PutCalendar(t.Context(), "acme", "c", freeze("c"), store.Revision{})
	if err != nil {
		t.Fatal(err)
	}
	w.calendar("c", true, added.Number)
	if deletion, err = s.DeleteCalendar(t.Context(), "acme", "a", revisions["a"]); err != nil {
		t.Fatal(err)
	}
	w.calendar("a", false, deletion.Number)
	if deletion, err = s.DeleteConfig(t.Context(), "acme", config); err != nil {
		t.Fatal(err)
	}
	if c := w.next(store.Config, "", deletion.Number); c.Config != nil {
		t.Errorf("after the deletion of %s it sees %+v", config, c)
	}
	w.stop()
	if err := <-w.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the watch ended with %v", err)
	}
}

// TestWatchNoIntent checks that a tenant for which nothing is declared is told
// of.
func TestWatchNoIntent(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	calls := 0
	err := open(t).WatchIntent(ctx, "acme", func(c store.Seen) {
		calls++
		if c != (store.Seen{}) {
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

// TestReadsFollowWrites checks that who reads after a write finds it, though objects are kept
// in memory while they are watched: after a write that counts, one that is refused, a deletion,
// and, soon, one of another process.
func TestReadsFollowWrites(t *testing.T) {
	t.Parallel()
	s, nc := openWith(t)
	another, err := store.Open(t.Context(), nc)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	began, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- s.WatchIntent(ctx, "acme", func(seen store.Seen) {
			if seen.Kind == "" {
				close(began)
			}
		})
	}()
	<-began
	put := func(by *store.Store, text string, base store.Revision) store.Revision {
		t.Helper()
		revision, err := by.PutCalendar(t.Context(), "acme", "xmas", freeze(text), base)
		if err != nil {
			t.Fatal(err)
		}
		return revision
	}
	read := func() (string, store.Revision) {
		t.Helper()
		c, revision, err := s.Calendar(t.Context(), "acme", "xmas")
		if errors.Is(err, store.ErrNotFound) {
			return "", revision
		}
		if err != nil {
			t.Fatal(err)
		}
		return c.Value.Description, revision
	}
	var revision store.Revision
	for n := range 50 {
		want := fmt.Sprint("version ", n)
		revision = put(s, want, revision)
		for range 3 {
			if got, now := read(); got != want || now != revision {
				t.Fatalf("after %q was written as %s, %q is read as %s", want, revision, got, now)
			}
		}
	}
	// Somebody else writes: whoever is refused because of that reads what was written.
	foreign := put(another, "foreign", revision)
	if _, err := s.PutCalendar(t.Context(), "acme", "xmas", freeze("mine"), revision); !errors.Is(err, store.ErrConflict) {
		t.Fatalf("a write on an old revision: %v", err)
	}
	if got, now := read(); got != "foreign" || now != foreign {
		t.Errorf("after a conflict %q is read as %s; want what was written as %s", got, now, foreign)
	}
	// Who only reads finds it soon.
	foreign = put(another, "again", foreign)
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		got, now := read()
		if got == "again" && now == foreign {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("what another process wrote as %s is not read: %q, %s", foreign, got, now)
		}
	}
	if _, err := s.DeleteCalendar(t.Context(), "acme", "xmas", foreign); err != nil {
		t.Fatal(err)
	}
	if got, _ := read(); got != "" {
		t.Errorf("after its deletion %q is read", got)
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the watch ends with %v", err)
	}
	// Without a watch nothing is kept.
	first := put(another, "first", store.Revision{})
	if got, _ := read(); got != "first" {
		t.Errorf("%q is read", got)
	}
	put(another, "second", first)
	if got, _ := read(); got != "second" {
		t.Errorf("without a watch %q is read", got)
	}
}
