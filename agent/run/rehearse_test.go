package run

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// TestRehearse checks how long a run is expected to take before it is opened.
func TestRehearse(t *testing.T) {
	t.Parallel()
	usual := Usual{Prepare: time.Minute, Host: 10 * time.Minute}
	known := StepTimes{}
	known.add("copy", 5*time.Minute)
	stepped := Usual{Prepare: time.Minute, Host: 10 * time.Minute, Steps: known}
	step := func(timeout time.Duration) func(*rollout.Resolved) { // Two hosts, the step, two hosts.
		return func(p *rollout.Resolved) {
			half := p.Stages[0]
			half.Size = 2
			do := &rollout.Hook{Type: rollout.Exec, On: rollout.OnSite, Script: "copy", Timeout: rollout.SpanOf(timeout)}
			p.Stages = []rollout.ResolvedStage{half, {Stage: rollout.Stage{Name: "copy", Step: &rollout.Step{Do: do}}}, half}
			p.Stages[0].Name = "first"
		}
	}
	two := func(p *rollout.Resolved) { p.Stages[0].MaxUnavailable = 2 }
	counted := func(p *rollout.Resolved) { p.Stages[0].MaxUnavailable, p.Absent = 2, rollout.CountAbsent }
	for name, row := range map[string]struct {
		change func(*rollout.Resolved)
		roster []message.Entry
		usual  Usual
		end    time.Duration
		left   int
		waits  string
		futile string
	}{
		"one at a time":            {usual: usual, end: 41 * time.Minute},
		"two at a time":            {change: two, usual: usual, end: 21 * time.Minute},
		"hosts that do not fit":    {usual: Usual{Host: 20 * time.Minute}, end: 80 * time.Minute, left: 1},
		"hosts that never start":   {usual: Usual{Host: 35 * time.Minute}, end: 70 * time.Minute, left: 3},
		"a step":                   {change: step(10 * time.Minute), usual: stepped, end: 46 * time.Minute},
		"a step not yet done":      {change: step(10 * time.Minute), usual: usual, waits: "step copy (how long it takes is unknown)"},
		"a step that does not fit": {change: step(time.Hour), usual: stepped, end: 21 * time.Minute, left: 2},
		"no host fits":             {usual: Usual{Prepare: time.Minute, Host: time.Hour}, futile: "hosts take 1h, so none of 4 hosts left"},
		"nothing is known":         {usual: Usual{Prepare: time.Minute}},
		"an approval":              {change: func(p *rollout.Resolved) { p.Stages[0].Approval = true }, usual: usual, waits: "stage"},
		"a pause":                  {change: func(p *rollout.Resolved) { p.Paused = true }, usual: usual, waits: "the rollout to let it continue"},
		"one out of service":       {roster: []message.Entry{{Host: "h02", Owes: message.Debt{Look: true}}}, usual: usual, waits: "h02 (nobody knows"},
		"out of service, one too":  {change: two, roster: []message.Entry{{Host: "h02", Owes: message.Debt{Look: true}}}, usual: usual, waits: "h02"},
		"one silent and counted":   {change: counted, roster: []message.Entry{{Host: "h02", Silent: true}}, usual: usual, end: 41 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := message.Opened{Members: []string{"h01", "h02", "h03", "h04"}, Rollout: rollout.Default(4), NotAfter: epoch.Add(time.Hour), Roster: row.roster}
			if row.change != nil {
				row.change(&e.Rollout)
			}
			opened, f, futile := Rehearse(epoch, e, row.usual)
			if opened.Phase != Open || opened.Size() != 4 {
				t.Errorf("the run is %s with %d hosts", opened.Phase, opened.Size())
			}
			if (row.futile == "") != (futile == "") || !strings.Contains(futile, row.futile) {
				t.Errorf("it is futile: %q; want %q", futile, row.futile)
			}
			if f == nil {
				f = &Forecast{}
			}
			if end := epoch.Add(row.end); row.end != 0 && !f.End.Equal(end) || row.end == 0 && !f.End.IsZero() {
				t.Errorf("it ends at %s, not at %s; it waits for %q", f.End, end, f.Waits)
			}
			if f.Left != row.left || (row.waits == "") != (f.Waits == "") || !strings.Contains(f.Waits, row.waits) {
				t.Errorf("%d hosts are left, and it waits for %q; want %d, %q", f.Left, f.Waits, row.left, row.waits)
			}
		})
	}
}

// TestRehearseAnything checks that however a run is opened, its rehearsal ends and
// leaves what it was given as it was.
func TestRehearseAnything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		e := drawOpening(rt, epoch)
		usual := Usual{Prepare: drawSpan(rt, "usual prepare", time.Hour), Host: drawSpan(rt, "usual host", time.Hour)}
		before := message.EncodeEvent(e)
		opened, f, futile := Rehearse(epoch, e, usual)
		if opened.Phase != Open || string(message.EncodeEvent(e)) != string(before) {
			rt.Errorf("the run is %s, and was opened with %s, now %s", opened.Phase, before, message.EncodeEvent(e))
		}
		if f != nil && futile != "" {
			rt.Errorf("it is futile, %q, and forecast as %+v", futile, f)
		}
		if f == nil {
			return
		}
		if !f.End.IsZero() && f.End.Before(epoch.Add(usual.Prepare)) && slices.ContainsFunc(f.Hosts, func(end time.Time) bool { return !end.IsZero() }) {
			rt.Errorf("it ends at %s, before its hosts are prepared", f.End)
		}
		for i, end := range f.Hosts {
			if !end.IsZero() && end.Before(epoch.Add(usual.Prepare+usual.Host)) {
				rt.Errorf("host %s is done at %s", opened.Hosts()[i].Name, end)
			}
		}
	})
}
