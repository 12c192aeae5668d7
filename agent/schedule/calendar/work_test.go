package calendar

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
)

// alwaysFrozen returns a daily window and a calendar with the largest number of
// freezes in force at once: 25 events a day since 1970, each for a year.
func alwaysFrozen(t testing.TB) window.Schedule {
	t.Helper()
	text := Text{Kind: string(Freeze)}
	for i := range 25 {
		text.Events = append(text.Events, EventText{Start: fmt.Sprintf("1970-01-01T%02d:%02d", i%24, i), Duration: "366d", RRule: "FREQ=DAILY"})
	}
	w, problems := window.Parse("Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday", "01:00", "UTC", "1h")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return window.Schedule{Windows: []window.Window{w}, Freezes: []window.Calendar{mustParse(t, text)}}
}

// Such a calendar blocked its tenant's API for 15 to 45 s, because each window of ten
// years copied each freeze in force: 3 GB (issue 11).
//
//nolint:paralleltest // It measures the allocations of the process.
func TestMemoryForManyFreezesInForce(t *testing.T) {
	p := alwaysFrozen(t)
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if o, ok := p.Next(at); ok {
		t.Errorf("the opening %v is frozen", o.Span)
	}
	if f, ok := p.NextFreeze(at); !ok || !f.Contains(at) || f.Length() < window.Horizon {
		t.Errorf("the freeze is %v, %v; want ten years", f.Span, ok)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 100<<20 {
		t.Errorf("%d MiB were allocated, want 100 at most", got>>20)
	}
}

func BenchmarkAlwaysFrozen(b *testing.B) {
	p := alwaysFrozen(b)
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	b.Run("next opening", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p.Next(at)
		}
	})
	b.Run("next freeze", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p.NextFreeze(at)
		}
	})
}
