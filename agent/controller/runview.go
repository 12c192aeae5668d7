package controller

import (
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// fullView is a run with its story.
func (s *state) fullView(r *run.State) v1.Run {
	view := s.view(r)
	view.Events = slices.Clone(s.events)
	return view
}

// view is a run as the API shows it.
func (s *state) view(r *run.State) v1.Run {
	now := s.Now()
	view := runView(r, now)
	if !r.Over() {
		s.whyNot(r, &view, now)
	}
	for i, h := range r.Hosts() {
		if known := s.hosts[h.Name]; known != nil {
			view.Hosts[i].Progress = known.progressIn(r.ID, h)
		}
	}
	return view
}

// whyNot tells what of the controller's own holds up a run.
func (s *state) whyNot(r *run.State, view *v1.Run, now time.Time) {
	switch {
	case s.alarm != nil:
		view.Reason = s.alarm.Error()
	case !s.stuckSince.IsZero():
		view.Reason = fmt.Sprintf("the log takes no record: %v", s.stuck)
		view.WaitingFor = &v1.WaitingFor{What: "log", Detail: view.Reason, Since: stamp(s.stuckSince)}
	case !s.gathered(r, now):
		view.WaitingFor = &v1.WaitingFor{
			What: run.ForHost, Detail: "hosts to be heard of: the controller has just started", Since: stamp(s.started),
		}
	}
}

// progressIn returns what a host told of the step it is at, and nothing of an
// earlier one.
func (h *host) progressIn(id uint64, at run.Host) string {
	if h.progress.Run != id || !h.progressAt.After(at.Since) || at.Status.Final() || at.Status == run.Prepared {
		return ""
	}
	return progressText(h.progress)
}

func progressText(p message.Progress) string {
	if p.Percent < 0 {
		return p.Message
	}
	return fmt.Sprintf("%d%% %s", p.Percent, p.Message)
}

func runView(r *run.State, now time.Time) v1.Run {
	view := v1.Run{
		ID: r.Key(), Phase: string(r.Phase), Result: string(r.Result), Reason: r.Reason, Trigger: r.Trigger, RetryOf: r.RetryOf,
		RequestedBy: r.By, RequestReason: r.Why, OpenedAt: stamp(r.OpenedAt), NotAfter: stamp(r.NotAfter), EndedAt: at(r.EndedAt),
	}
	if w, waits := r.Waiting(now); waits {
		view.WaitingFor = &v1.WaitingFor{What: w.What, Detail: w.Detail, Since: stamp(w.Since)}
	}
	if p := r.Paused; p != nil && !r.Over() {
		if view.Paused = "by " + p.By; p.Why != "" {
			view.Paused += ": " + p.Why
		}
	}
	for _, g := range r.Stages(now) {
		view.Stages = append(view.Stages, v1.RunStage{
			Name: g.Name, Phase: g.Phase, Hosts: g.Size, MaxUnavailable: g.MaxUnavailable,
			OutOfService: g.OutOfService, Upgraded: g.Upgraded, Failed: g.Failed,
		})
	}
	for _, h := range r.Hosts() {
		view.Hosts = append(view.Hosts, hostView(h))
	}
	view.Hosts = append(view.Hosts, leftOut(r)...)
	foresee(r, &view, now)
	return view
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
	for _, o := range r.Outsiders() {
		if _, known := place[o.Name]; !known {
			add(o.Name, "it is not in this run")
		}
		h := &hosts[place[o.Name]]
		h.Slot, h.SlotReason = at(o.Slot), o.SlotReason
	}
	return hosts
}

func hostView(h run.Host) v1.RunHost {
	return v1.RunHost{
		Hostname: h.Name, Stage: h.Stage, Status: string(h.Status), Since: at(h.Since), Error: h.Error, Note: h.Note,
		Slot: at(h.Slot), SlotReason: h.SlotReason, Seconds: int(h.Took.Round(time.Second) / time.Second),
	}
}

// foresee adds when the run is expected to end.
func foresee(r *run.State, view *v1.Run, now time.Time) {
	f, known := r.Forecast(now)
	if !known {
		return
	}
	view.ExpectedEnd = at(f.End)
	for i := range view.Hosts {
		if end, pending := f.Hosts[view.Hosts[i].Hostname]; pending {
			view.Hosts[i].ExpectedEnd = at(end)
		}
	}
	switch {
	case f.Left > 0:
		view.Forecast = fmt.Sprintf("%d hosts are not expected to be done by %s", f.Left, r.NotAfter.UTC().Format(time.RFC3339))
	case f.Waits != "":
		view.Forecast = "its end cannot be foreseen: it waits for " + f.Waits
	}
}
