package controller

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/view"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// EnvironmentStatuses returns what each environment is doing, by name.
func (c *Controller) EnvironmentStatuses(ctx context.Context) ([]v1.EnvironmentStatus, error) {
	return ask(ctx, c, func(s *state) []v1.EnvironmentStatus {
		all, now := []v1.EnvironmentStatus{}, s.Now()
		for _, env := range s.listedEnvironments() {
			all = append(all, s.environmentStatus(env, now))
		}
		slices.SortFunc(all, func(a, b v1.EnvironmentStatus) int { return strings.Compare(a.Name, b.Name) })
		return all
	})
}

// EnvironmentStatus returns what an environment is doing. The error is *run.NoEnvironment or
// run.ErrNotReady.
func (c *Controller) EnvironmentStatus(ctx context.Context, name string) (v1.EnvironmentStatus, error) {
	return until(ctx, c, func(s *state) (v1.EnvironmentStatus, error) {
		env, err := s.existing(name)
		if err == nil && !s.isListed(env) {
			err = s.noEnvironment(name)
		}
		if err != nil {
			return v1.EnvironmentStatus{}, err
		}
		return s.environmentStatus(env, s.Now()), nil
	})
}

// listedEnvironments are the environments that people see.
func (s *state) listedEnvironments() (all []*environment) {
	for _, env := range s.inOrder {
		if s.isListed(env) {
			all = append(all, env)
		}
	}
	return all
}

// isListed reports whether people see an environment: it is declared, as default always is, or a run
// of it is under way.
func (s *state) isListed(env *environment) bool {
	return s.isDeclared(env.name) || env.ledger.Current() != nil
}

// environmentStatus is what an environment is doing. It walks over the hosts of that environment
// alone.
func (s *state) environmentStatus(env *environment, now time.Time) v1.EnvironmentStatus {
	hosts, situation := s.hosts.in(env.name), s.situationOf(env, now)
	s.countHosts(&situation, hosts, now)
	status := v1.EnvironmentStatusOf(nameOf(env.name), situation, s.plainRun(env, now))
	status.Removed = !s.isDeclared(env.name)
	if env == s.standard() && !s.alone() && status.Hosts == 0 { // All hosts may be in others on purpose.
		status.Needs = slices.DeleteFunc(status.Needs, func(need string) bool { return need == v1.NeedsNoHost })
	}
	status.Outdated, status.Missed = s.behind(hosts)
	if ended := env.ledger.Ended(); ended != nil {
		status.LastUpgrade = &v1.EnvironmentUpgrade{
			Run: ended.Key(), StartTime: view.Time(ended.OpenedAt), EndTime: view.Time(ended.EndedAt), Result: string(ended.Result),
		}
	}
	return status
}

// behind counts those of some hosts that would take part now and that are outdated, and those that
// missed an upgrade.
func (s *state) behind(hosts map[string]*host) (outdated, missed int) {
	for name, host := range having(hosts, s.intent.applications()) {
		if !host.OutdatedSince.IsZero() {
			outdated++
		}
		if s.hasMissed(host, s.lastOf(name).ledger.Newest()) {
			missed++
		}
	}
	return outdated, missed
}

// plainRun is newestRun without a forecast: to play the runs of many environments takes time.
func (s *state) plainRun(env *environment, now time.Time) *v1.Run {
	r := env.visible()
	if r == nil {
		return nil
	}
	shown := view.Run(r, s.runTime(now), nil, s.silent(now), func(h run.Host) view.Told { return s.hosts.told(r, h) })
	s.complete(env, r, &shown, now)
	return &shown
}

// face returns the environment that is shown where only one can be.
func (s *state) face() *environment {
	standard := s.standard()
	if s.alone() {
		return standard
	}
	all, now := make([]candidate, len(s.inOrder)), s.Now()
	for i, env := range s.inOrder {
		all[i] = candidate{name: env.name, from: s.distance(env, now)}
	}
	hasOwn := standard.ledger.Current() != nil || len(s.hosts.in(defaultName)) > 0 || len(s.intent.windows) > 0
	return s.environments[faceOf(hasOwn, all)]
}

// candidate is an environment that may be shown where only one can be, and how far it is from
// idle.
type candidate struct {
	name string
	from int
}

// faceOf returns the name of the environment that is shown where only one can be: default if it
// has hosts, windows or a run, else the one that is furthest from idle, and of several such the
// first by name. The order by name keeps it from changing while nothing happens.
func faceOf(hasOwn bool, all []candidate) string {
	others := slices.DeleteFunc(slices.Clone(all), func(c candidate) bool { return c.name == defaultName })
	if hasOwn || len(others) == 0 {
		return defaultName
	}
	return slices.MinFunc(others, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.from, a.from), cmp.Compare(a.name, b.name))
	}).name
}

// How far an environment is from idle.
const (
	fromIdle = iota
	fromWaiting
	fromPreparing
	fromUpgrading
	fromPerson
)

// distance is how far an environment is from idle.
func (s *state) distance(env *environment, now time.Time) int {
	current := env.ledger.Current()
	if current == nil {
		if opening, found := s.intent.of(env.name).nextOpening(now); found && opening.Contains(now) && env.idle.What != "" {
			return fromWaiting
		}
		return fromIdle
	}
	_, a, _ := s.notAllowed(env, current, now)
	if _, _, person := current.NeedsPerson(s.runTime(now)); person || current.IsBlockedBy(a, now) {
		return fromPerson
	}
	if current.Phase == run.Upgrading {
		return fromUpgrading
	}
	return fromPreparing
}
