package controller

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/view"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// showFor is how long a view is shown though nothing changes: its forecast goes by
// the clock.
const showFor = 5 * time.Second

// snapshot is what is shown now.
func (s *state) snapshot() v1.Snapshot {
	face, now := s.face(), s.Now()
	shown := s.snapshotOf(face, s.situation(now), now)
	if s.alone() {
		return shown
	}
	for _, env := range s.inOrder {
		if r := s.newestRun(env, now); r != nil && env != face {
			shown.Others = append(shown.Others, r)
		}
	}
	slices.SortFunc(shown.Others, func(a, b *v1.Run) int { return cmp.Compare(b.ID, a.ID) })
	return shown
}

func (s *state) snapshotOf(env *environment, situation v1.Situation, now time.Time) v1.Snapshot {
	return v1.Snapshot{Situation: situation, Run: s.newestRun(env, now), Seq: s.ledger.LastSeq, Log: s.Log.Identity()}
}

// newestRun is the run of an environment that was opened last, as people see it; nil is none. It
// is shared by all who ask between two changes, of which time alone may be one.
func (s *state) newestRun(env *environment, now time.Time) *v1.Run {
	r := env.visible()
	if r == nil {
		return nil
	}
	if last := &env.shown; last.run == nil || last.changes != s.changes || now.Before(last.at) || !now.Before(last.until) {
		v := s.view(env, r)
		*last = shown{run: &v, changes: s.changes, at: now, until: times.Sooner(times.Sooner(now.Add(showFor), s.turns(now)), s.turnsOf(env, now))}
		if v.ExpectedEnd != nil { // It may not lie in the past.
			last.until = times.Sooner(last.until, times.Later(*v.ExpectedEnd, view.Time(now)).Add(time.Second))
		}
	}
	shared := *env.shown.run
	return &shared
}

// visible returns the run that people see as the newest. A run has no id until its prepare, which mostly
// comes a moment after its opening, and is not shown before. A run with start checks is shown from its
// opening on, also once all have answered: its prepare may be late, as after a crash.
func (e *environment) visible() *run.State {
	newest := e.ledger.Newest()
	if newest == nil || newest.ID != 0 || newest.Over() || newest.HasStartChecks() {
		return newest
	}
	return e.ledger.Ended()
}

// fullView is a run with its story.
func (s *state) fullView(env *environment, r *run.State) v1.Run {
	full := s.view(env, r)
	full.Events, full.Pinned = env.story.Events(), view.Pinned(r)
	if r.Release != nil {
		full.Release.Text = r.Release.Text
	}
	return full
}

// view is a run as the API shows it.
func (s *state) view(env *environment, r *run.State) v1.Run {
	now := s.Now()
	shown := view.Run(r, s.runTime(now), s.forecastOf(env, r), s.silent(now), func(h run.Host) view.Told { return s.hosts.told(r, h) })
	s.complete(env, r, &shown, now)
	return shown
}

// complete adds to the view of a run what the run itself does not know.
func (s *state) complete(env *environment, r *run.State, shown *v1.Run, now time.Time) {
	shown.Environment = env.name
	if !r.Over() {
		s.hosts.endActions(shown, s.runTime(now))
		s.whyNot(env, r, shown, now)
	}
}

// whyNot shows what holds up a run that the run itself does not know of.
func (s *state) whyNot(env *environment, r *run.State, shown *v1.Run, now time.Time) {
	budget, a, asks := s.notAllowed(env, r, now)
	switch {
	case s.alarm != nil:
		shown.Reason, shown.WaitingFor = s.alarm.Error(), s.waitsForTheLog()
	case !s.log.failing.IsZero():
		shown.Reason = fmt.Sprintf("the log takes no record: %v", s.log.failed)
		shown.WaitingFor = &v1.WaitingFor{What: "log", Detail: shown.Reason, Since: view.Time(s.log.failing)}
	case r.Prepared() && env.compared.waits() != nil:
		shown.WaitingFor = env.compared.waits()
	case asks:
		shown.WaitingFor = view.WaitingFor(a.Waiting(budget))
	case !s.hasGathered(env, r, now):
		shown.WaitingFor = &v1.WaitingFor{
			What: run.ForHost, Detail: "hosts to reconnect: the site was restarted (up to " + window.FormatDuration(gracePeriod) + ")", Since: view.Time(s.started),
		}
	}
}
