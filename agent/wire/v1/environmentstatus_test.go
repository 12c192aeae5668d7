package v1

import (
	"slices"
	"testing"
	"time"
)

// TestNeeds checks what needs a person, and that the most urgent comes first.
func TestNeeds(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 2, 0, 0, 0, time.UTC)
	later := now.Add(time.Hour)
	calm := Situation{Status: "idle", Hosts: 3, NextUpgradeAt: &later}
	underWay := func(edit func(*Run)) *Run {
		r := Run{ID: 7, Phase: "upgrading", OpenedAt: now}
		edit(&r)
		return &r
	}
	ended := func(hosts ...RunHost) *Run {
		return &Run{ID: 7, Phase: "finished", Result: "partial", OpenedAt: now, Hosts: hosts}
	}
	for name, row := range map[string]struct {
		edit func(*Situation)
		run  *Run
		want []string
	}{
		"calm":            {want: nil},
		"no host":         {edit: func(s *Situation) { s.Hosts = 0 }, want: []string{"no-host"}},
		"no window":       {edit: func(s *Situation) { s.NextUpgradeAt = nil }, want: []string{"no-window"}},
		"frozen":          {edit: func(s *Situation) { s.NextUpgradeAt, s.Frozen = nil, &WindowCut{} }, want: nil},
		"silent":          {edit: func(s *Situation) { s.Silent = 1 }, want: []string{"silent"}},
		"log":             {edit: func(s *Situation) { s.WaitingFor = &WaitingFor{What: "log"} }, want: []string{"log"}},
		"opening":         {edit: func(s *Situation) { s.WaitingFor = &WaitingFor{What: "host"} }, want: []string{"opening"}},
		"missed, silent":  {edit: func(s *Situation) { s.LastMissed, s.Silent = &MissedWindow{Start: later}, 1 }, want: []string{"missed", "silent"}},
		"made up for":     {edit: func(s *Situation) { s.LastMissed = &MissedWindow{Start: now.Add(-time.Hour)} }, run: ended(), want: nil},
		"host failed":     {run: ended(RunHost{Hostname: "h1", Stage: "all", Status: "failed"}), want: []string{"failed"}},
		"host is back":    {run: ended(RunHost{Hostname: "h1", Stage: "all", Status: "unreachable"}), want: []string{"failed"}},
		"host is silent":  {edit: func(s *Situation) { s.Silent, s.SilentHosts = 1, []string{"h1"} }, run: ended(RunHost{Hostname: "h1", Stage: "all", Status: "unreachable"}), want: []string{"silent"}},
		"host left out":   {run: ended(RunHost{Hostname: "h1", Stage: "all", Status: "skipped"}), want: nil},
		"in progress":     {edit: func(s *Situation) { s.Silent = 1 }, run: underWay(func(*Run) {}), want: nil},
		"approval":        {run: underWay(func(r *Run) { r.WaitingFor = &WaitingFor{What: "approval"} }), want: []string{"approval"}},
		"paused":          {run: underWay(func(r *Run) { r.Paused = "by ann" }), want: []string{"resume"}},
		"paused, waiting": {run: underWay(func(r *Run) { r.Paused, r.WaitingFor = "by ann", &WaitingFor{What: "resume"} }), want: []string{"resume"}},
		"aborted":         {run: underWay(func(r *Run) { r.Aborted, r.Paused = "by ann", "by ann" }), want: []string{"abort"}},
		"unwell hosts":    {run: underWay(func(r *Run) { r.WaitingFor = &WaitingFor{What: "slot", Hosts: []string{"h1"}} }), want: []string{"hosts"}},
		"hosts at work":   {run: underWay(func(r *Run) { r.WaitingFor = &WaitingFor{What: "host", Hosts: []string{"h1"}, Until: &later} }), want: nil},
		"about to be sent": {run: underWay(func(r *Run) {
			r.WaitingFor = &WaitingFor{What: "host", Detail: "h1 to be sent reboot", Sending: true, Hosts: []string{"h1"}}
		}), want: nil},
		"about to be sent, and holds a place": {run: underWay(func(r *Run) {
			r.WaitingFor = &WaitingFor{What: "budget", Detail: "a place in web, and so for h1 to be sent reboot", Sending: true, Hosts: []string{"h1"}}
		}), want: nil},
		"silent hosts": {run: underWay(func(r *Run) {
			r.WaitingFor = &WaitingFor{What: "host", Detail: "h1 to come back, to be released or to be deleted", Hosts: []string{"h1"}}
		}), want: []string{"hosts"}},
		"budget": {run: underWay(func(r *Run) { r.WaitingFor = &WaitingFor{What: "budget"} }), want: []string{"budget"}},
		"busy":   {run: underWay(func(r *Run) { r.WaitingFor = &WaitingFor{What: "idle", Hosts: []string{"h1"}} }), want: []string{"busy"}},
		"overdue, approval": {run: underWay(func(r *Run) {
			r.WaitingFor, r.Hosts = &WaitingFor{What: "approval"}, []RunHost{{Hostname: "h1", OverdueSince: &now}}
		}), want: []string{"approval", "overdue"}},
	} {
		s := calm
		if row.edit != nil {
			row.edit(&s)
		}
		if got := EnvironmentStatusOf("basel", s, row.run).Needs; !slices.Equal(got, row.want) {
			t.Errorf("%s: it needs %q, want %q", name, got, row.want)
		}
	}
}

// TestUrgency checks the order of environments: by what needs a person, then those with a run under
// way, then by the next window, then by name.
func TestUrgency(t *testing.T) {
	t.Parallel()
	soon, late := time.Unix(1, 0), time.Unix(2, 0)
	running := &Run{Phase: "upgrading"}
	want := []EnvironmentStatus{
		{Name: "z-log", Needs: []string{"log"}},
		{Name: "y-approval", Needs: []string{"approval", "overdue"}, Run: running},
		{Name: "x-overdue", Needs: []string{"overdue"}, Run: running, NextUpgradeAt: &soon},
		{Name: "w-failed", Needs: []string{"failed"}},
		{Name: "v-no-window", Needs: []string{"no-window"}},
		{Name: "u-running", Run: running},
		{Name: "t-soon", NextUpgradeAt: &soon},
		{Name: "r-late", NextUpgradeAt: &late},
		{Name: "s-late", NextUpgradeAt: &late},
		{Name: "a-never"},
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, EnvironmentStatus.Compare)
	for i := range want {
		if got[i].Name != want[i].Name {
			t.Errorf("%d is %s, want %s", i, got[i].Name, want[i].Name)
		}
	}
}
