package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

func freeze(description string) v1.Kept[v1.Calendar] {
	return v1.Kept[v1.Calendar]{Value: v1.Calendar{Kind: "freeze", Description: description}}
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
