package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/view"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// State returns what is, as Avassa's object has it.
func (c *Controller) State(ctx context.Context) (v1.State, error) {
	type found struct {
		v1.State
		facing
	}
	f, err := ask(ctx, c, func(s *state) found { return found{s.status(s.Now()), s.facing()} })
	if err != nil {
		return v1.State{}, err
	}
	f.IntentWarnings = c.unmatched(f.facing)
	return f.State, nil
}

func (s *state) status(now time.Time) v1.State {
	status := v1.State{
		Situation: s.situation(now), ScheduledWorkers: []v1.ScheduledWorker{}, LastUpgradeInfo: view.LastUpgrade(s.face().ledger.Ended()),
	}
	if s.intent.config != nil {
		status.OSUpgrade = *s.intent.config
		status.ConfigETag = s.intent.configRevision.ETag()
	}
	if opening, found := s.nextUpgrade(s.face(), now); found {
		status.NextUpgradeIn = window.FormatDuration(max(0, opening.Start.Sub(now)))
	}
	for _, h := range s.listed() {
		status.ScheduledWorkers = append(status.ScheduledWorkers, v1.ScheduledWorker{Host: h.Name, Application: h.Application})
	}
	slices.SortFunc(status.ScheduledWorkers, func(a, b v1.ScheduledWorker) int { return strings.Compare(a.Host, b.Host) })
	return status
}

// situation is what is so now, but for hosts and runs.
func (s *state) situation(now time.Time) v1.Situation {
	return s.situationIn(s.face(), s.hosts.known, now)
}

// situationIn is the situation of a tenant as seen from an environment, with some hosts.
func (s *state) situationIn(env *environment, hosts map[string]*host, now time.Time) v1.Situation {
	shown := s.situationOf(env, now)
	shown.Environment, shown.SiteTimezone = env.name, zoneName(s.Zone)
	if !s.lastJump.to.IsZero() {
		shown.LastClockJump = &v1.ClockJump{From: view.Time(s.lastJump.from), To: view.Time(s.lastJump.to)}
	}
	s.countHosts(&shown, hosts, now)
	s.countUnplaced(&shown)
	if listed := s.listedEnvironments(); len(listed) > 1 {
		shown.Environments = len(listed)
	}
	shown.Warnings = s.warnings.list("", now)
	shown.WarningCount = len(shown.Warnings)
	shown.Warnings = shown.Warnings[:min(shown.WarningCount, maxShownWarnings)]
	shown.Calendars, shown.Budgets, shown.BudgetRefusals = s.intent.fetchedStates(), s.budgetStates(), s.budgetRefusals(now)
	shown.Locks, shown.LockCount = s.lockStates()
	return shown
}

// situationOf is the part of the situation that is of an environment, but for its hosts.
func (s *state) situationOf(env *environment, now time.Time) v1.Situation {
	current := env.ledger.Current()
	_, _, kept := s.notAllowed(env, current, now)
	shown := v1.Situation{Status: view.Status(current, kept, s.runTime(now)), LastMissed: view.Missed(env.ledger.Missed(now))}
	if s.alarm != nil {
		shown.Status, shown.WaitingFor = view.StatusWaiting, s.waitsForTheLog()
	}
	if current != nil {
		for _, o := range current.Overdue(s.runTime(now), s.silent(now)) {
			if shown.Overdue++; shown.Overdue <= maxSilent {
				shown.OverdueHosts = append(shown.OverdueHosts, o.Host)
			}
		}
	}
	if opening, found := s.nextUpgrade(env, now); found {
		shown.NextUpgradeAt = view.OptionalTime(opening.Start)
	}
	shown.SkippedWindow = s.skippedIn(env, now)
	if opening, found := s.intent.of(env.name).nextOpening(now); found && opening.Contains(now) {
		shown.OpenWindow = &v1.OpenWindow{Start: view.Time(opening.Start), End: view.Time(opening.End)}
		if visible := env.visible(); visible != nil && hadRun(s.moment(env, now, opening.Span)) {
			shown.OpenWindow.Run = visible.Key()
		}
	}
	shown.Promotion = s.promotion(env)
	if shown.OpenWindow != nil && current == nil {
		shown.OpenWindow.UpToDate = env.rests.why
	}
	// What cannot be read says nothing of windows.
	if s.alarm == nil && env.idle.What != "" && current == nil && (shown.OpenWindow != nil || s.intent.unreadable() != nil) {
		idle := env.idle
		shown.WaitingFor = &idle
	}
	if shown.WaitingFor == nil && current == nil {
		shown.WaitingFor = s.intent.waitsForRelease(env.name)
	}
	if freeze, found := s.intent.nextFreeze(now); found && freeze.Contains(now) {
		shown.Frozen = &v1.WindowCut{Calendar: freezeName(freeze), From: view.Time(freeze.Start), To: view.Time(freeze.End)}
	}
	return shown
}

// maxSilent bounds the silent hosts that are named, and the hosts that are overdue.
const maxSilent = 10

// countHosts counts those of some hosts that would take part now, and names the silent ones. A
// controller that has just started does not know yet who is silent.
func (s *state) countHosts(shown *v1.Situation, of map[string]*host, now time.Time) {
	gathering := now.Before(s.started.Add(gracePeriod))
	for name := range having(of, s.intent.applications()) {
		shown.Hosts++
		if !gathering && !s.hosts.present.online(name) {
			shown.SilentHosts = append(shown.SilentHosts, name)
		}
	}
	slices.Sort(shown.SilentHosts)
	shown.Silent = len(shown.SilentHosts)
	shown.SilentHosts = shown.SilentHosts[:min(shown.Silent, maxSilent)]
}

// countUnplaced counts the hosts that are in no environment, and names the first.
func (s *state) countUnplaced(shown *v1.Situation) {
	if s.hosts.byEnvironment == nil {
		return
	}
	for name := range having(s.hosts.byEnvironment.unplaced, s.intent.applications()) {
		shown.UnplacedHosts = append(shown.UnplacedHosts, name)
	}
	slices.Sort(shown.UnplacedHosts)
	shown.Unplaced = len(shown.UnplacedHosts)
	shown.UnplacedHosts = shown.UnplacedHosts[:min(shown.Unplaced, maxSilent)]
}

// turns is when time alone changes what is shown of all environments: a freeze begins or ends,
// or it is known who is silent. Zero means that it does not.
func (s *state) turns(now time.Time) time.Time {
	var at time.Time
	if freeze, found := s.intent.nextFreeze(now); found {
		at = turnOf(freeze.Span, now)
	}
	if gathered := s.started.Add(gracePeriod); now.Before(gathered) && s.hosts.present.count() < len(s.hosts.known) {
		at = times.Sooner(at, gathered) // From then on those that were not heard of are silent.
	}
	return times.Sooner(times.Sooner(at, s.warnings.next(now)), s.refusalsTurn(now))
}

// turnsOf is when time alone changes what is shown of one environment: a window opens or closes,
// a stage has soaked, the time to approve it is up.
func (s *state) turnsOf(env *environment, now time.Time) time.Time {
	var at time.Time
	if opening, found := s.intent.of(env.name).nextOpening(now); found {
		at = turnOf(opening.Span, now)
	}
	if current := env.ledger.Current(); current != nil {
		ahead := s.clock.ahead(now)
		if turns := current.Turns(now.Add(ahead)); !turns.IsZero() {
			at = times.Sooner(at, turns.Add(-ahead))
		}
	}
	return at
}

// turnOf is when a span begins, or ends if it has begun.
func turnOf(span window.Span, now time.Time) time.Time {
	if now.Before(span.Start) {
		return span.Start
	}
	return span.End
}

// runTime is the time by which a run goes when the clock of the site shows now.
func (s *state) runTime(now time.Time) time.Time { return now.Add(s.clock.ahead(now)) }

// zoneName is the name of a zone that every machine knows; empty for the zone of this
// machine, which has none.
func zoneName(zone *time.Location) string {
	if zone == nil || zone == time.Local {
		return ""
	}
	return zone.String()
}

// nextUpgrade returns the window of an environment that gets a run next: the one that is open
// until its run has ended, from its next try on if that run touched no host, then the
// one after it. One that is skipped gets none.
func (s *state) nextUpgrade(env *environment, now time.Time) (window.Opening, bool) {
	agenda := s.intent.of(env.name)
	next, found := agenda.nextOpening(now)
	if next, found = s.unskipped(env, next, found); !found || !next.Contains(now) || env.ledger.Current() != nil {
		return next, found
	}
	m := s.moment(env, now, next.Span)
	if again, some := retries(m); some {
		next.Start = again
	} else if hadRun(m) {
		next, found = agenda.followingOpening(next)
		return s.unskipped(env, next, found)
	}
	return next, true
}

// unskipped returns a window of an environment, or the first after it that nobody has skipped.
func (s *state) unskipped(env *environment, next window.Opening, found bool) (window.Opening, bool) {
	for found && s.intent.skips[env.name].Of(next.Start) != nil {
		next, found = s.intent.of(env.name).followingOpening(next)
	}
	return next, found
}

// Windows returns the openings that overlap the time between two instants: at
// most so many, or all if the count is 0.
func (c *Controller) Windows(ctx context.Context, from, to time.Time, count int) ([]v1.Window, error) {
	tenants, err := ask(ctx, c, func(s *state) shownSchedule { return s.shownSchedule(defaultName) })
	if err != nil {
		return nil, err
	}
	return tenants.windows(ctx, from, to, count)
}

// Hosts returns the hosts that are known, by name. A host reports its versions
// before it answers, so whoever has seen its answer finds what it came to.
func (c *Controller) Hosts(ctx context.Context, filter v1.HostFilter) ([]v1.Host, error) {
	if err := c.versionsRead(ctx); err != nil {
		return nil, err
	}
	return ask(ctx, c, func(s *state) []v1.Host {
		hosts, warned := s.hosts.view(s.Now(), s.newestOf, filter), map[string][]v1.Warning{}
		for _, w := range s.warnings.list("", s.Now()) {
			warned[w.Host] = append(warned[w.Host], w)
		}
		for i := range hosts {
			hosts[i].Warnings, hosts[i].LockedSince = warned[hosts[i].Hostname], s.lockedSince(hosts[i].Hostname)
		}
		return hosts
	})
}

// CountHosts returns how many hosts Hosts would return without a filter.
func (c *Controller) CountHosts(ctx context.Context) (int, error) {
	if err := c.versionsRead(ctx); err != nil {
		return 0, err
	}
	return ask(ctx, c, func(s *state) int { return s.hosts.count(s.Now()) })
}

// HostsWithInventories is Hosts with what the machine of each host consists of.
func (c *Controller) HostsWithInventories(ctx context.Context, filter v1.HostFilter) ([]v1.Host, error) {
	hosts, err := c.Hosts(ctx, filter)
	if err != nil {
		return nil, err
	}
	found, err := c.o.Store.Reports(ctx, c.o.Tenant, report.Inventory)
	if err != nil {
		return nil, err
	}
	for i, h := range hosts {
		if kept, told := found[log.Token(h.Hostname)]; told {
			showReport(report.Inventory, kept, &hosts[i])
		}
	}
	return hosts, nil
}

// showReport adds a report to what is shown of its host. One that cannot be read is left out:
// the host sends another.
func showReport(kind *report.Kind, kept report.Kept, on *v1.Host) {
	kept.At = view.Time(kept.At)
	for i, r := range kept.History {
		kept.History[i].At = view.Time(r.At)
	}
	_ = kind.Show(kept, on)
}

// addReports adds all reports of a host that are shown with it.
func (c *Controller) addReports(ctx context.Context, on *v1.Host) error {
	for _, kind := range report.OfHosts() {
		if kind.Show == nil {
			continue
		}
		kept, err := c.o.Store.Report(ctx, c.o.Tenant, log.Token(on.Hostname), report.ID{Kind: kind})
		switch {
		case err == nil:
			showReport(kind, kept, on)
		case !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrDamaged):
			return err
		}
	}
	return nil
}

// versionsRead returns once all has been read that hosts have reported so far.
func (c *Controller) versionsRead(ctx context.Context) error {
	revision, err := c.o.Store.ReportsNumber(ctx, c.o.Tenant, report.Versions)
	if err != nil {
		return err
	}
	return c.reached(ctx, revision, func(s *state) uint64 { return s.hosts.versionsRead })
}

// Host returns one host with its lease and its last reports. The error is run.ErrNoHost when
// none of that name is known.
func (c *Controller) Host(ctx context.Context, name string) (v1.Host, error) {
	if err := c.versionsRead(ctx); err != nil {
		return v1.Host{}, err
	}
	shown, err := until(ctx, c, func(s *state) (v1.Host, error) {
		s.hosts.expire(s.Now())
		host, known := s.hosts.known[name]
		if !known {
			return v1.Host{}, fmt.Errorf("host %s: %w", name, run.ErrNoHost)
		}
		shown := s.hosts.viewOf(host, s.newestOf(name))
		shown.Warnings, shown.LockedSince = s.warnings.list(name, s.Now()), s.lockedSince(name)
		return shown, nil
	})
	if err != nil {
		return v1.Host{}, err
	}
	if c.o.Holder != nil {
		if shown.Lease, err = c.o.Holder(ctx, name); err != nil {
			return v1.Host{}, fmt.Errorf("cannot read who holds the lease of host %s: %w", name, err)
		}
	}
	err = c.addReports(ctx, &shown)
	return shown, err
}

// ReportsSince returns what hosts have reported of their versions since a position,
// and the position after it; only the position when since is 0. Of many reports the
// oldest may be missing.
func (c *Controller) ReportsSince(ctx context.Context, since uint64) (events []v1.VersionsEvent, position uint64, err error) {
	_, err = ask(ctx, c, func(s *state) bool {
		events, position = s.hosts.reportsSince(max(1, since) - 1)
		return true
	})
	if since == 0 {
		events = nil
	}
	return events, position + 1, err
}

// Seen returns once the revision of a number of the configuration, the rollout
// or a calendar counts, or a later one, so that whoever wrote it finds it in what
// the controller says and does.
func (c *Controller) Seen(ctx context.Context, number uint64) error {
	return c.reached(ctx, number, func(s *state) uint64 { return s.intent.revision })
}
