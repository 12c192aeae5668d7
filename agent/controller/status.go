package controller

import (
	"context"
	"slices"
	"strings"
	"time"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/view"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

// State returns what is, as Avassa's object has it (AV-30 to AV-39).
func (c *Controller) State(ctx context.Context) (v1.State, error) {
	return ask(ctx, c, func(s *state) v1.State { return s.status(s.Now()) })
}

func (s *state) status(now time.Time) v1.State {
	current := s.ledger.Current()
	status := v1.State{
		Status: view.Status(current, now), ScheduledWorkers: []v1.ScheduledWorker{},
		LastUpgradeInfo: view.LastUpgrade(s.ledger.Ended()), LastMissed: view.Missed(s.ledger.Missed()),
	}
	if s.alarm != nil {
		status.Status = view.StatusWaiting
	}
	if s.intent.config != nil {
		status.OSUpgrade = *s.intent.config
	}
	if span, found := s.nextUpgrade(now); found {
		at := view.Time(span.Start)
		status.NextUpgradeAt, status.NextUpgradeIn = &at, window.FormatDuration(max(0, span.Start.Sub(now)))
	}
	for _, h := range s.fleet(nil) {
		status.ScheduledWorkers = append(status.ScheduledWorkers, v1.ScheduledWorker{Host: h.Name, Application: h.Application})
	}
	slices.SortFunc(status.ScheduledWorkers, func(a, b v1.ScheduledWorker) int { return strings.Compare(a.Host, b.Host) })
	if freeze, found := s.intent.nextFreeze(now); found && freeze.Contains(now) {
		status.Frozen = &v1.WindowCut{Calendar: freezeName(freeze), From: view.Time(freeze.Start), To: view.Time(freeze.End)}
	}
	if s.idle.What != "" && current == nil {
		idle := s.idle
		status.WaitingFor = &idle
	}
	return status
}

// nextUpgrade returns the window that gets a run next: the one that is open
// until its run has ended, then the one after it.
func (s *state) nextUpgrade(now time.Time) (window.Opening, bool) {
	next, found := s.intent.nextOpening(now)
	if found && next.Contains(now) && s.ledger.Current() == nil && hadRun(s.moment(now, next.Span)) {
		return s.intent.followingOpening(next)
	}
	return next, found
}

// Windows returns the openings that overlap the time between two instants: at
// most so many, or all if the count is 0.
func (c *Controller) Windows(ctx context.Context, from, to time.Time, count int) ([]v1.Window, error) {
	schedule, err := ask(ctx, c, func(s *state) window.Schedule { return s.intent.schedule })
	if err != nil {
		return nil, err
	}
	// A schedule does not change, and to look far ahead takes its time.
	return v1.WindowsUntil(ctx, schedule, from, to, count)
}

// Hosts returns the hosts that are known, by name. A host reports its versions
// before it answers, so whoever has seen its answer finds what it came to.
func (c *Controller) Hosts(ctx context.Context) ([]v1.Host, error) {
	revision, err := c.o.Store.VersionsNumber(ctx, c.o.Tenant)
	if err != nil {
		return nil, err
	}
	if err := c.reached(ctx, revision, func(s *state) uint64 { return s.hosts.versionsRead }); err != nil {
		return nil, err
	}
	return ask(ctx, c, func(s *state) []v1.Host { return s.hosts.view(s.Now()) })
}

// Seen returns once the revision of a number of the configuration, the rollout
// or a calendar counts, or a later one, so that whoever wrote it finds it in what
// the controller says and does.
func (c *Controller) Seen(ctx context.Context, number uint64) error {
	return c.reached(ctx, number, func(s *state) uint64 { return s.intent.revision })
}
