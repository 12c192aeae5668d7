package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Told is what a host has told of its present phase, for people.
type Told struct {
	// Progress is what it told last.
	Progress string
	// Failing is why the tries of its action fail; empty unless several have failed.
	Failing string
}

// ToldOf is what a host has told of its present phase in a run, at some time; zero
// for what it told of an earlier phase.
func ToldOf(r *run.State, h run.Host, p message.Progress, at time.Time) Told {
	if p.Run != r.ID || !at.After(h.Since) || h.Status.Final() || h.Status == run.Prepared {
		return Told{}
	}
	told := Told{Progress: p.Message, Failing: p.Failing}
	if p.Percent >= 0 {
		told.Progress = fmt.Sprintf("%d%% %s", p.Percent, p.Message)
	}
	return told
}

// Doing is what a host does in one text: why its action fails, if it does.
func (t Told) Doing() string { return cmp.Or(t.Failing, t.Progress) }

// Run shows a run without its story. The forecast is nil when there is none, and told, what a
// member has told of its phase, when none can have told anything. silent are the hosts that are
// not heard of, and since when.
func Run(r *run.State, now time.Time, forecast *run.Forecast, silent map[string]time.Time, told func(run.Host) Told) v1.Run {
	view := v1.Run{
		ID: r.Key(), Phase: string(r.Phase), Result: string(r.Result), Reason: r.Reason, Trigger: r.Trigger, RetryOf: r.RetryOf, RequestID: r.RequestID,
		RequestedBy: r.By, RequestReason: r.Why, OpenedAt: Time(r.OpenedAt), NotAfter: Time(r.NotAfter), EndedAt: OptionalTime(r.EndedAt),
	}
	if view.Release = runRelease(r.Release); view.Release != nil {
		view.Release.Differing = r.DifferingTexts()
	}
	if view.OverrideAfter = r.OverrideAfter; view.OverrideAfter == "" && !r.Chosen {
		for _, f := range r.Follows {
			view.Follows = append(view.Follows, v1.FollowedRun{Environment: cmp.Or(f.Environment, v1.DefaultEnvironment), Run: f.Run})
		}
	}
	if !r.Over() {
		view.EndsBy = OptionalTime(r.EndsBy())
	}
	overdue := map[string]run.Overdue{}
	for _, o := range r.Overdue(now, silent) {
		overdue[o.Host] = o
	}
	if w, waits := r.Waiting(now); waits {
		view.WaitingFor = WaitingFor(w)
		view.WaitingFor.OverdueSince = overdueSince(w, overdue)
	}
	if !r.Over() {
		view.Paused, view.Aborted = who(r.Paused), who(r.Aborted())
	}
	view.Until, view.Stages = r.Until, stages(r, now)
	if r.IsRollback() {
		view.RollbackOf = r.RollsBack.Of
		if r.RollsBack.Since != r.RollsBack.Of {
			view.RollbackSince = r.RollsBack.Since
		}
	} else if r.Reached != nil {
		view.GoesOnSince = r.Reached.Since
	}
	if back := r.WayBack(); back.Stage != "" {
		view.WayBack = &v1.WayBack{Until: back.Stage, Closed: OptionalTime(back.Closed)}
	}
	view.Hosts = make([]v1.RunHost, 0, r.Size())
	for h := range r.AllHosts() {
		shown := runHost(h)
		if !r.Over() && !h.Done {
			shown.SilentSince = OptionalTime(silent[h.Name])
		}
		if o, is := overdue[h.Name]; is {
			shown.OverdueSince = OptionalTime(o.From)
			shown.Note = strings.Join(slices.DeleteFunc([]string{h.Note, o.Why()}, func(s string) bool { return s == "" }), "; ")
		}
		if told != nil {
			t := told(h)
			shown.Progress, shown.Failing = t.Progress, t.Failing
		}
		view.Hosts = append(view.Hosts, shown)
	}
	view.Hosts = append(view.Hosts, leftOut(r)...)
	if forecast != nil && !r.Over() {
		foresee(r, &view, now, *forecast)
	}
	return view
}

// runRelease shows the release of a run; nil if it has none.
func runRelease(pinned *release.Pin) *v1.RunRelease {
	if pinned == nil {
		return nil
	}
	return &v1.RunRelease{Name: pinned.Name, Digest: pinned.Digest, Version: pinned.Version()}
}

// runStep shows the step of a stage; nil if it has none.
func runStep(g run.Stage) *v1.RunStep {
	if g.Step == nil {
		return nil
	}
	d := g.Doing
	shown := &v1.RunStep{Host: d.Host, Since: OptionalTime(d.Since), Tries: d.Attempt, Error: d.Trouble, Undo: g.Undo}
	if d.Outputs != nil {
		shown.Gives = d.Outputs.Names
	}
	return shown
}

// WaitingFor shows what a run waits for.
func WaitingFor(w run.Waiting) *v1.WaitingFor {
	return &v1.WaitingFor{
		What: w.What, Detail: w.Detail, Since: Time(w.Since), Until: OptionalTime(w.Until), Sending: w.Sending, Budget: w.Budget, Stage: w.Stage,
		Hosts: w.Hosts[:min(len(w.Hosts), maxListed)],
	}
}

// overdueSince is since when a host that a run waits for is overdue; nil when none is.
func overdueSince(w run.Waiting, overdue map[string]run.Overdue) *time.Time {
	var since time.Time
	for _, host := range w.Hosts {
		since = times.Sooner(since, overdue[host].From)
	}
	return OptionalTime(since)
}

// who tells who has paused or aborted a run, and why; empty for nobody.
func who(p *run.Pausing) string {
	switch {
	case p == nil:
		return ""
	case p.Why == "":
		return "by " + p.By
	}
	return "by " + p.By + ": " + p.Why
}

// leftOut are the hosts that are no members of a run: those that its rollout
// leaves out, and others that are out of service.
func leftOut(r *run.State) []v1.RunHost {
	var hosts []v1.RunHost
	place := map[string]int{}
	add := func(host, note string) {
		place[host] = len(hosts)
		hosts = append(hosts, v1.RunHost{Hostname: host, Status: string(run.Skipped), Note: note})
	}
	for _, e := range r.Exempt {
		add(e.Host, e.Reason)
	}
	for _, o := range r.NonMembers() {
		if _, known := place[o.Name]; !known {
			add(o.Name, "it is not in this run")
		}
		h := &hosts[place[o.Name]]
		h.Slot, h.SlotReason = OptionalTime(o.Slot), o.SlotReason
	}
	return hosts
}

func runHost(h run.Host) v1.RunHost {
	return v1.RunHost{
		Hostname: h.Name, Stage: h.Stage, Status: string(h.Status), Since: OptionalTime(h.Since), GivesUpAt: OptionalTime(h.GivesUp),
		Error: h.Error, Class: class(h), Note: h.Note, RolledBack: rolledBack(h), UpToDate: h.UpToDate,
		Unanswered: string(h.Unanswered), UnansweredOf: h.UnansweredOf,
		Slot: OptionalTime(h.Slot), SlotReason: h.SlotReason, Seconds: int(h.Took.Round(time.Second) / time.Second),
	}
}

// foresee adds when the run is expected to end. A forecast may be a little older
// than what is shown: hosts have come to their end since, and what was expected by
// now and is not there is expected now, because no expectation lies in the past.
func foresee(r *run.State, view *v1.Run, now time.Time, f run.Forecast) {
	expected := func(end time.Time) *time.Time {
		if !end.IsZero() && end.Before(now) {
			end = now
		}
		return OptionalTime(end)
	}
	view.ExpectedEnd = expected(f.End)
	for i, end := range f.Hosts { // The members come first, in their order.
		if h := &view.Hosts[i]; !end.IsZero() && !run.Status(h.Status).Final() {
			h.ExpectedEnd = expected(end)
		}
	}
	switch {
	case f.Left > 0:
		view.Forecast = fmt.Sprintf("%s not expected to be done by %s", text.Count(f.Left, "host is", "hosts are"), r.NotAfter.UTC().Format(time.RFC3339))
	case f.Waits != "" && r.Paused != nil:
		view.Forecast = "no forecast while paused"
	case f.Waits != "":
		view.Forecast = "no forecast while it waits for " + f.Waits
	}
}

// Pinned is what a rollback of a run needs of it.
func Pinned(r *run.State) *v1.PinnedRun {
	p := &v1.PinnedRun{Rollout: r.Rollout()}
	for _, o := range r.Outputs() {
		p.Outputs = append(p.Outputs, v1.StepOutputs{Stage: o.Stage, Names: o.Names, Sealed: o.Sealed})
	}
	return p
}
