package v1

import (
	"context"
	"errors"
	"iter"
	"reflect"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

// everySecond is a calendar in which something happens each second, and that
// ends ctx once it was asked.
type everySecond struct {
	stop  context.CancelFunc
	asked *int
}

func (e everySecond) Name() string { return "endless" }

func (e everySecond) Occurrences(_ *time.Location, from, to time.Time) iter.Seq[window.Occurrence] {
	return func(yield func(window.Occurrence) bool) {
		for at := from.Truncate(time.Second); at.Before(to); at = at.Add(time.Second) {
			*e.asked++
			if *e.asked == 1000 {
				e.stop()
			}
			if !yield(window.Occurrence{Span: window.Span{Start: at, End: at.Add(time.Second)}, Origin: window.Origin{Calendar: "endless"}}) {
				return
			}
		}
	}
}

// TestWindowsUntil checks that nobody goes on for one who is gone, whether
// windows are found or not, and that it does what Windows does for all others.
func TestWindowsUntil(t *testing.T) {
	t.Parallel()
	config := OSUpgrade{MaintenanceWindows: []MaintenanceWindow{weekly("Friday", "22:00", "4h")}}
	plan, err := PlanOf(config, map[string]Calendar{"x": {Kind: "freeze", Events: []Event{{Start: "2026-12-04T22:00", Duration: "1h", Timezone: "UTC"}}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	to := november.AddDate(10, 0, 0)
	got, err := WindowsUntil(t.Context(), plan, november, to, 100)
	if want := Windows(plan, november, to, 100); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	for name, with := range map[string]func(window.Calendar) window.Schedule{
		"open": func(c window.Calendar) window.Schedule { return window.Schedule{Allow: []window.Calendar{c}} },
		"frozen": func(c window.Calendar) window.Schedule {
			return window.Schedule{Windows: plan.Windows, Freezes: []window.Calendar{c}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			asked := 0
			_, err := WindowsUntil(ctx, with(everySecond{stop, &asked}), november, to, 0)
			if !errors.Is(err, context.Canceled) || asked > 1001 {
				t.Errorf("%d were looked at, %v", asked, err)
			}
		})
	}
}
