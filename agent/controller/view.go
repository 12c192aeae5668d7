package controller

import (
	"context"
	"slices"
	"strings"
	"time"

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
	statusVerifying = "verifying"
	statusPaused    = "paused"
	statusAborting  = "aborting"
)

// State returns what is, as Avassa's object has it (AV-30 to AV-39).
func (c *Controller) State(ctx context.Context) (v1.State, error) {
	return ask(ctx, c, func(s *state) v1.State { return s.stateView(s.Now()) })
}

func (s *state) stateView(now time.Time) v1.State {
	view := v1.State{Status: s.status(now), ScheduledWorkers: []v1.ScheduledWorker{}}
	if s.config != nil {
		view.OSUpgrade = *s.config
	}
	if span, found := s.nextUpgrade(now); found {
		at := stamp(span.Start)
		view.NextUpgradeAt, view.NextUpgradeIn = &at, window.FormatDuration(max(0, span.Start.Sub(now)))
	}
	for _, h := range s.fleet(nil) {
		view.ScheduledWorkers = append(view.ScheduledWorkers, v1.ScheduledWorker{Host: h.Name, Application: h.Application})
	}
	slices.SortFunc(view.ScheduledWorkers, func(a, b v1.ScheduledWorker) int { return strings.Compare(a.Host, b.Host) })
	view.LastUpgradeInfo, view.LastMissed = s.lastUpgrade(), s.lastMissed()
	if freeze, found := s.nextFreeze(now); found && freeze.Contains(now) {
		view.Frozen = &v1.WindowCut{Calendar: freezeName(freeze), From: stamp(freeze.Start), To: stamp(freeze.End)}
	}
	if s.idle.What != "" && s.ledger.Current() == nil {
		idle := s.idle
		view.WaitingFor = &idle
	}
	return view
}

func (s *state) status(now time.Time) string {
	current := s.ledger.Current()
	switch {
	case s.alarm != nil:
		return statusWaiting
	case current == nil:
		return statusIdle
	case current.IsAborting():
		return statusAborting
	case current.Paused != nil:
		return statusPaused
	case current.Phase != run.Upgrading && current.Phase != run.Preparing:
		return statusPreparing
	case current.Count(run.Rebooting)+current.Count(run.RebootPending) > 0:
		return statusRebooting
	case current.Count(run.HostUpgrading)+current.Count(run.Draining) > 0:
		return statusUpgrading
	case current.Count(run.Checking) > 0:
		return statusVerifying
	case current.Count(run.HostPreparing)+current.Count(run.Pending) > 0:
		return statusPreparing
	}
	if _, waits := current.Waiting(now); waits {
		return statusWaiting
	}
	return statusUpgrading
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
		s.listen(s.Now())
		view := make([]v1.Host, 0, len(s.hosts))
		for _, h := range s.sorted() {
			view = append(view, h.view(s.present.online(h.Name), s.versions[h.Name]))
		}
		return view
	})
}

func (h *host) view(online bool, r reported) v1.Host {
	return v1.Host{
		Hostname: h.Name, Application: h.Application, Online: online, LastSeen: at(h.seen), Role: h.Role, Labels: h.Labels,
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
