package controller

import (
	"context"
	"maps"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/roster"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Figures are what a tenant amounts to now, in numbers, for metrics.
type Figures struct {
	// Serving tells that the controller can do its work, Alarm that the log is not
	// trusted, LogFails that the log takes no record.
	Serving, Alarm, LogFails bool
	// LastSeq is the sequence of the last record that was folded.
	LastSeq uint64
	// Hosts counts the hosts of the configured applications by how they are in service,
	// Others the known hosts of all other applications.
	Hosts  map[roster.Service]int
	Others int
	// Outdated counts the hosts on which an upgrade would change something now, OutdatedFor
	// is for how long the first of them has been so.
	Outdated    int
	OutdatedFor time.Duration
	// Missed counts the hosts that a run should have upgraded and did not.
	Missed int
	// Unplaced counts the hosts that are in no environment.
	Unplaced int
	// VersionAges says for each host how long its versions have been what they are.
	// Unversioned counts the hosts that have reported none.
	VersionAges []time.Duration
	Unversioned int
	// Warnings counts the warnings of each kind.
	Warnings map[message.WarningKind]int
	// WindowStart and WindowEnd are those of the window that is open or opens next;
	// zero when none will. Frozen tells that a freeze is in force.
	WindowStart, WindowEnd time.Time
	Frozen                 bool
	// Calendars are those with a URL.
	Calendars []CalendarFigures
	// Budgets are the cells of the disruption budgets, the fullest first.
	Budgets []roster.Cell
	// Queries tell of each disruption budget with a query whether it keeps hosts in service now.
	Queries map[string]bool
	// Run is the run under way in the default environment; nil when none is.
	Run *RunFigures
	// Releases tell of each environment that goes to a release how many hosts have it.
	Releases []ReleaseFigures
	// Environments are those that people see, the default one first; empty if there is no other.
	Environments []EnvironmentFigures
}

// EnvironmentFigures are what an environment amounts to.
type EnvironmentFigures struct {
	// Name is empty for the default one.
	Name string
	// Hosts, Outdated and Missed are as in Figures, of its hosts alone.
	Hosts, Outdated, Missed int
	// WindowStart, WindowEnd and Run are as in Figures.
	WindowStart, WindowEnd time.Time
	Run                    *RunFigures
}

// ReleaseFigures are how far an environment has come to a release.
type ReleaseFigures struct {
	// Environment is empty for the default one.
	Environment, Release string
	// Hosts are those that have the release.
	Hosts int
}

// CalendarFigures are what the fetching of a calendar amounts to.
type CalendarFigures struct {
	Name string
	// Age is how long ago it was last fetched; negative if it never was. Failing tells that
	// several tries in a row have failed.
	Age     time.Duration
	Failing bool
}

// RunFigures are what the run under way amounts to.
type RunFigures struct {
	ID                 uint64
	Phase              run.Phase
	Paused             bool
	OpenedAt, NotAfter time.Time
	// Hosts counts the members in each status.
	Hosts map[run.Status]int
	// Overdue counts the members that take unusually long in their status.
	Overdue int
	// WaitingFor is what the run waits for, and WaitingSince since when; empty when it
	// waits for nothing.
	WaitingFor   string
	WaitingSince time.Time
	// Stages are those of the run. Those out of service hold its slots.
	Stages []run.Stage
}

// Figures returns the figures of the tenant. To gather them costs a walk over its hosts.
func (c *Controller) Figures(ctx context.Context) (Figures, error) {
	return ask(ctx, c, func(s *state) Figures { return s.figures(s.Now()) })
}

func (s *state) figures(now time.Time) Figures {
	f := Figures{
		Serving: s.serving() == nil, Alarm: s.alarm != nil, LogFails: !s.log.failing.IsZero(), LastSeq: s.ledger.LastSeq,
		Warnings: map[message.WarningKind]int{}, Budgets: s.fullest(), Run: s.runFigures(s.standard(), now),
	}
	s.countServices(&f, now)
	for _, w := range s.warnings.list("", now) {
		f.Warnings[message.WarningKind(w.Kind)]++
	}
	if opening, found := s.intent.of(defaultName).nextOpening(now); found {
		f.WindowStart, f.WindowEnd = opening.Start, opening.End
	}
	if s.hosts.byEnvironment != nil {
		for range having(s.hosts.byEnvironment.unplaced, s.intent.applications()) {
			f.Unplaced++
		}
	}
	listed := s.listedEnvironments()
	for _, env := range listed {
		if p := s.promotion(env); p != nil {
			f.Releases = append(f.Releases, ReleaseFigures{env.name, p.Release, p.Hosts.Has})
		}
	}
	if len(listed) > 1 {
		for _, env := range listed {
			f.Environments = append(f.Environments, s.environmentFigures(env, now))
		}
	}
	if freeze, found := s.intent.nextFreeze(now); found {
		f.Frozen = freeze.Contains(now)
	}
	f.Queries = map[string]bool{}
	for _, b := range s.intent.budgets {
		if b.Prometheus != nil {
			f.Queries[b.Name] = s.queries.known(b, now).refused != ""
		}
	}
	for _, c := range s.intent.fetchedStates() {
		one := CalendarFigures{Name: c.Name, Age: -1, Failing: c.Status == v1.CalendarFailing}
		if c.FetchedAt != nil {
			one.Age = max(0, now.Sub(*c.FetchedAt))
		}
		f.Calendars = append(f.Calendars, one)
	}
	return f
}

// countServices counts the hosts. A controller that has just started does not know yet
// who is silent: it counts such a host as in service.
func (s *state) countServices(f *Figures, now time.Time) {
	f.Hosts = map[roster.Service]int{}
	out, listed := s.outOfService(), map[string]bool{}
	for _, a := range s.intent.applications() {
		listed[a.Name] = true
	}
	settled := !now.Before(s.started.Add(gracePeriod))
	for name, host := range s.hosts.known {
		if !listed[host.Application] {
			f.Others++
			continue
		}
		service, isOut := out[name]
		if service == "" {
			service = roster.InService
		}
		if !isOut && settled && !s.hosts.present.online(name) {
			service = roster.Absent
		}
		f.Hosts[service]++
		if !host.OutdatedSince.IsZero() {
			f.Outdated++
			f.OutdatedFor = max(f.OutdatedFor, now.Sub(host.OutdatedSince))
		}
		if s.hasMissed(host, s.lastOf(name).ledger.Newest()) {
			f.Missed++
		}
		if reported := s.hosts.versions[name]; reported.at.IsZero() {
			f.Unversioned++
		} else {
			f.VersionAges = append(f.VersionAges, max(0, now.Sub(reported.at)))
		}
	}
}

// outOfService returns the hosts that are out of service in any environment.
func (s *state) outOfService() map[string]roster.Service {
	all := map[string]roster.Service{}
	for _, lock := range s.ledger.Locks() {
		all[lock.Host] = roster.Locked
	}
	for _, env := range s.inOrder {
		maps.Copy(all, env.ledger.Roster().OutOfService())
	}
	return all
}

// hasMissed reports whether a run should have upgraded a host and did not. What the
// run under way has upgraded has not missed it, also before its end.
func (s *state) hasMissed(h *host, newest *run.State) bool {
	if h.MissedSince.IsZero() || newest == nil {
		return !h.MissedSince.IsZero()
	}
	member, found := newest.Host(h.Name)
	return !found || member.Status != run.Upgraded
}

// environmentFigures are what an environment amounts to now.
func (s *state) environmentFigures(env *environment, now time.Time) EnvironmentFigures {
	f := EnvironmentFigures{Name: env.name, Run: s.runFigures(env, now)}
	if opening, found := s.intent.of(env.name).nextOpening(now); found {
		f.WindowStart, f.WindowEnd = opening.Start, opening.End
	}
	hosts := s.hosts.in(env.name)
	for range having(hosts, s.intent.applications()) {
		f.Hosts++
	}
	f.Outdated, f.Missed = s.behind(hosts)
	return f
}

func (s *state) runFigures(env *environment, now time.Time) *RunFigures {
	r := env.ledger.Current()
	if r == nil {
		return nil
	}
	f := &RunFigures{
		ID: r.Key(), Phase: r.Phase, Paused: r.Paused != nil, OpenedAt: r.OpenedAt, NotAfter: r.NotAfter,
		Hosts: map[run.Status]int{}, Stages: r.Stages(s.runTime(now)), Overdue: len(r.Overdue(s.runTime(now), s.silent(now))),
	}
	for _, status := range run.Statuses() {
		f.Hosts[status] = r.Count(status)
	}
	if waiting, waits := r.Waiting(s.runTime(now)); waits {
		f.WaitingFor, f.WaitingSince = waiting.What, waiting.Since
	} else if budget, a, asks := s.notAllowed(env, r, now); asks {
		f.WaitingFor, f.WaitingSince = a.Waiting(budget).What, a.Since
	}
	return f
}
