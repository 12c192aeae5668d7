package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

// Status values of a tenant (AV-34).
const (
	statusIdle      = "idle"
	statusWaiting   = "waiting"
	statusPreparing = "preparing"
	statusUpgrading = "upgrading"
	statusRebooting = "rebooting"
)

// State returns what is, as Avassa's object has it (AV-30 to AV-39).
func (c *Controller) State(ctx context.Context) (v1.State, error) {
	return ask(ctx, c, func(s *state) v1.State { return s.stateView(s.Now()) })
}

func (s *state) stateView(now time.Time) v1.State {
	view := v1.State{Status: s.status(), ScheduledWorkers: []v1.ScheduledWorker{}}
	if s.config != nil {
		view.OSUpgrade = *s.config
	}
	if span, found := window.Next(s.windows, s.Zone, now); found {
		at := stamp(span.Start)
		view.NextUpgradeAt, view.NextUpgradeIn = &at, window.FormatDuration(max(0, span.Start.Sub(now)))
	}
	online, silent := s.members(now)
	member := map[string]bool{}
	for _, name := range append(online, silent...) {
		member[name] = true
	}
	for _, h := range s.sorted() {
		if member[h.Name] {
			view.ScheduledWorkers = append(view.ScheduledWorkers, v1.ScheduledWorker{Host: h.Name, Application: h.Application})
		}
	}
	view.LastUpgradeInfo = s.lastUpgrade()
	return view
}

func (s *state) status() string {
	current := s.ledger.Current()
	switch {
	case s.alarm != nil:
		return statusWaiting
	case current == nil:
		return statusIdle
	case waitsForSlot(current):
		return statusWaiting
	case current.Phase != run.Upgrading:
		return statusPreparing
	case current.Count(run.Rebooting)+current.Count(run.RebootPending) > 0:
		return statusRebooting
	}
	return statusUpgrading
}

func waitsForSlot(r *run.State) bool {
	w, waits := r.Waiting()
	return waits && w.What == run.Slot
}

// lastUpgrade tells of the last run that has ended.
func (s *state) lastUpgrade() *v1.LastUpgradeInfo {
	last := s.ledger.Ended()
	if last == nil {
		return nil
	}
	info := &v1.LastUpgradeInfo{
		StartTime: stamp(last.OpenedAt), EndTime: stamp(last.EndedAt), Result: string(last.Result), Hosts: []v1.UpgradedHost{},
	}
	for _, h := range last.Hosts() {
		info.Hosts = append(info.Hosts, v1.UpgradedHost{Hostname: h.Name, Status: string(h.Status), Error: h.Error})
	}
	return info
}

// Hosts returns the hosts that are known, by name.
func (c *Controller) Hosts(ctx context.Context) ([]v1.Host, error) {
	if err := c.versionsSeen(ctx); err != nil {
		return nil, err
	}
	return ask(ctx, c, func(s *state) []v1.Host {
		now := s.Now()
		view := make([]v1.Host, 0, len(s.hosts))
		for _, h := range s.sorted() {
			view = append(view, h.view(now, s.versions[h.Name]))
		}
		return view
	})
}

func (h *host) view(now time.Time, r reported) v1.Host {
	return v1.Host{
		Hostname: h.Name, Application: h.Application, Online: h.online(now), LastSeen: at(h.seen),
		AgentVersion: h.AgentVersion, Versions: r.versions, VersionsAt: at(r.at),
	}
}

// at is a time for JSON; nil when there is none.
func at(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = stamp(t)
	return &t
}

// stamp is a time as the API tells it: in whole seconds, because some clients
// read only certain numbers of decimals (avassa.md 1.2).
func stamp(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// view is a run as the API shows it.
func (s *state) view(r *run.State) v1.Run {
	view := runView(r)
	if s.alarm != nil && !r.Over() {
		view.Reason = s.alarm.Error()
	}
	for i, h := range r.Hosts() {
		if known := s.hosts[h.Name]; known != nil {
			view.Hosts[i].Progress = known.progressIn(r.ID, h)
		}
	}
	return view
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

func runView(r *run.State) v1.Run {
	view := v1.Run{
		ID: r.Key(), Phase: string(r.Phase), Result: string(r.Result), Reason: r.Reason, Trigger: r.Trigger,
		RequestedBy: r.By, RequestReason: r.Why, OpenedAt: stamp(r.OpenedAt), NotAfter: stamp(r.NotAfter), EndedAt: at(r.EndedAt),
	}
	if w, waits := r.Waiting(); waits {
		view.WaitingFor = &v1.WaitingFor{What: w.What, Detail: w.Detail, Since: stamp(w.Since)}
	}
	for _, h := range r.Hosts() {
		view.Hosts = append(view.Hosts, v1.RunHost{Hostname: h.Name, Status: string(h.Status), Since: at(h.Since), Error: h.Error})
	}
	return view
}
