package controller

import (
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
)

// TestDue checks when a window opens a run by itself.
func TestDue(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	span := window.Span{Start: noon, End: noon.Add(4 * time.Hour)}
	dayBefore := noon.Add(-24 * time.Hour)
	in := moment{now: noon, span: span, started: dayBefore, joined: dayBefore, members: 3}
	for name, c := range map[string]struct {
		change func(*moment)
		open   bool
		next   time.Time
	}{
		"the window opens":                      {func(*moment) {}, true, time.Time{}},
		"the window opens later":                {func(f *moment) { f.now = noon.Add(-time.Minute) }, false, noon},
		"the last run was of the window before": {func(f *moment) { f.last = dayBefore }, true, time.Time{}},
		"this window has had its run":           {func(f *moment) { f.last = noon }, false, span.End},
		"a run was opened in this window":       {func(f *moment) { f.now, f.last = noon.Add(time.Hour), noon.Add(time.Minute) }, false, span.End},
		"the window was made to open earlier":   {func(f *moment) { f.now, f.last = noon.Add(time.Hour), noon.Add(time.Hour) }, false, span.End},
		"an edit has it begin later": {func(f *moment) {
			f.now, f.last, f.lastEnd, f.changed = noon.Add(time.Hour), noon.Add(-time.Hour), noon.Add(2*time.Hour), noon.Add(time.Hour)
		}, false, span.End},
		"an edit before has it begin later": {func(f *moment) {
			f.last, f.lastEnd, f.changed = noon.Add(-time.Hour), noon.Add(2*time.Hour), noon
		}, true, time.Time{}},
		"an edit has it begin as the last one ended": {func(f *moment) {
			f.now, f.last, f.lastEnd, f.changed = noon.Add(time.Hour), noon.Add(-time.Hour), noon, noon.Add(time.Hour)
		}, true, time.Time{}},
		"the last run was of a wrong clock, and an edit": {func(f *moment) {
			f.now, f.last, f.lastEnd, f.changed = noon.Add(time.Hour), noon.AddDate(4, 0, 0), noon.AddDate(4, 0, 1), noon.Add(time.Hour)
		}, true, time.Time{}},
		"the last run was of a wrong clock": {func(f *moment) { f.last = noon.AddDate(4, 0, 0) }, true, time.Time{}},
		"the agent was down when it opened": {func(f *moment) { f.now, f.started = noon.Add(time.Hour), noon.Add(time.Hour-quiet) }, true, time.Time{}},
		"the agent has just started":        {func(f *moment) { f.started = noon }, false, noon.Add(quiet)},
		"a host has just joined":            {func(f *moment) { f.joined = noon.Add(-time.Second) }, false, noon.Add(quiet - time.Second)},
		"a known host was not heard of yet": {func(f *moment) { f.started, f.silent = noon.Add(-5*time.Second), 1 }, false, noon.Add(windowGracePeriod - 5*time.Second)},
		"a known host stays silent":         {func(f *moment) { f.started, f.silent = noon.Add(-windowGracePeriod), 1 }, true, time.Time{}},
		"no host is known":                  {func(f *moment) { f.members = 0 }, false, time.Time{}},
		"all hosts are silent":              {func(f *moment) { f.silent = 3 }, false, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := in
			c.change(&f)
			open, next := due(f)
			if open != c.open || !next.Equal(c.next) {
				t.Errorf("due says %v, next look at %s; want %v, %s", open, next, c.open, c.next)
			}
		})
	}
}

// TestRetryTime checks when a window is tried again: after its time by the clock of the log and
// by what has passed since the end was seen, so that a wrong clock of either leaves a pause.
func TestRetryTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	const after = 15 * time.Minute
	for name, c := range map[string]struct {
		ended time.Time
		since time.Duration
		want  time.Time
	}{
		"both clocks are right":          {now.Add(-5 * time.Minute), 5 * time.Minute, now.Add(10 * time.Minute)},
		"the log is years behind":        {now.AddDate(-3, 0, 0), 5 * time.Minute, now.Add(10 * time.Minute)},
		"the log is a minute ahead":      {now.Add(-4 * time.Minute), 5 * time.Minute, now.Add(11 * time.Minute)},
		"it ended before this one began": {now.Add(-time.Hour), after, now},
	} {
		if got := retryTime(c.ended, now, after, c.since); !got.Equal(c.want) {
			t.Errorf("%s: %s, not %s", name, got, c.want)
		}
	}
}
