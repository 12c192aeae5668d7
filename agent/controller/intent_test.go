package controller

import (
	"log/slog"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
)

// TestIntentFollowsEachChange checks that an object which is replaced or deleted
// leaves nothing behind, and that the revision only grows.
func TestIntentFollowsEachChange(t *testing.T) {
	t.Parallel()
	noon := time.Date(2000, 1, 1, 12, 0, 0, 0, time.UTC)
	i := newIntent(Options{Now: time.Now, Tenant: "acme", Zone: time.UTC, Logger: slog.New(slog.DiscardHandler)})
	freeze, wrong := freezeFrom("10:00", "4h"), freezeFrom("10:00", "long")
	quarter := calendarNamed("quarter")
	for _, row := range []struct {
		name         string
		seen         store.Seen
		open, frozen bool
		unreadable   string
		revision     uint64
	}{
		{"a configuration", store.Seen{Object: theConfig, Config: &always, Number: 1}, true, false, "", 1},
		{"a freeze", store.Seen{Object: quarter, Calendar: &freeze, Number: 2}, false, true, "", 2},
		{"the freeze is deleted", store.Seen{Object: quarter, Number: 3}, true, false, "", 3},
		{"a freeze that is wrong", store.Seen{Object: quarter, Calendar: &wrong, Number: 4}, false, false, "calendar quarter cannot be read", 4},
		{"it is replaced", store.Seen{Object: quarter, Calendar: &freeze, Number: 5}, false, true, "", 5},
		{"an older revision again", store.Seen{Object: quarter, Number: 3}, true, false, "", 5},
		{"the configuration is deleted", store.Seen{Object: theConfig, Number: 6}, false, false, "", 6},
	} {
		i.set(row.seen)
		opening, found := i.nextOpening(noon)
		freeze, freezes := i.nextFreeze(noon)
		err := i.unreadable()
		switch {
		case (found && opening.Contains(noon)) != row.open, (freezes && !freeze.Start.After(noon)) != row.frozen:
			t.Errorf("%s: the next opening is %v, the next freeze %v", row.name, opening, freeze)
		case (err != nil) != (row.unreadable != ""), err != nil && err.Error()[:len(row.unreadable)] != row.unreadable:
			t.Errorf("%s: what cannot be read is %v", row.name, err)
		case i.revision != row.revision || i.complete:
			t.Errorf("%s: revision %d, complete %v", row.name, i.revision, i.complete)
		}
	}
	if i.set(store.Seen{}); !i.complete || i.revision != 6 {
		t.Errorf("at the end of what was there: revision %d, complete %v", i.revision, i.complete)
	}
}
