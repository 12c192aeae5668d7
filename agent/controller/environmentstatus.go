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

// listedEnvironments are the environments that people see: those that are declared, and those of
// which a run is under way. default is always among them.
func (s *state) listedEnvironments() (all []*environment) {
	for _, env := range s.inOrder {
		if s.isDeclared(env.name) || env.ledger.Current() != nil {
			all = append(all, env)
		}
	}
	return all
}

// environmentStatus is what an environment is doing. It walks over the hosts of that environment
// alone.
func (s *state) environmentStatus(env *environment, now time.Time) v1.EnvironmentStatus {
	hosts, situation := s.hosts.in(env.name), s.situationOf(env, now)
	s.countHosts(&situation, hosts, now)
	status := v1.EnvironmentStatusOf(nameOf(env.name), situation, s.plainRun(env, now))
	status.Removed = !s.isDeclared(env.name)
	if env == s.standard() && !s.alone() && status.Hosts == 0 { // All hosts are in others, as it may be meant.
		status.Needs = slices.DeleteFunc(status.Needs, func(need string) bool { return need == v1.NeedsNoHost })
	}
	for name, host := range having(hosts, s.intent.applications()) {
		if !host.OutdatedSince.IsZero() {
			status.Outdated++
		}
		if s.hasMissed(host, s.lastOf(name).ledger.Newest()) {
			status.Missed++
		}
	}
	if ended := env.ledger.Ended(); ended != nil {
		status.LastUpgrade = &v1.EnvironmentUpgrade{
			Run: ended.Key(), StartTime: view.Time(ended.OpenedAt), EndTime: view.Time(ended.EndedAt), Result: string(ended.Result),
		}
	}
	return status
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
// first by name. So it changes with what happens, and not from one look to the next.
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
	if _, _, person := current.NeedsPerson(s.runTime(now)); person {
		return fromPerson
	}
	if current.Phase == run.Upgrading {
		return fromUpgrading
	}
	return fromPreparing
}
