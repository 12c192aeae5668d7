package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/plan"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/view"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

const (
	// mostMissed is how many windows are written down as missed at once: the
	// last ones.
	mostMissed = 10
	// longestAbsence bounds how far a controller looks back.
	longestAbsence = 366 * day
)

// openWhenDue opens the run of an open window of an environment once that is due.
func (s *state) openWhenDue(ctx context.Context, env *environment, now time.Time) time.Time {
	if err := s.intent.unreadable(); err != nil {
		return s.idles(env, now, "window", fmt.Sprintf("somebody to repair an unreadable object: %v", err), time.Time{})
	}
	if now.Before(env.opensFrom) {
		return env.opensFrom
	}
	span, found := s.intent.of(env.name).nextOpening(now)
	if !found {
		env.notIdle()
		return time.Time{}
	}
	f := s.moment(env, now, span.Span)
	// To plan costs more the more hosts there are.
	if needed, at := needsRun(f); !needed {
		if again, some := retries(f); some && !now.Before(span.Start) {
			return s.idles(env, now, "retry", env.whyAgain(again), at)
		}
		env.notIdle()
		return at
	}
	if err := s.intent.unusable[skipsOf(env.name)]; err != nil {
		return s.idles(env, now, "window", fmt.Sprintf("somebody to repair the skipped windows of environment %s: %v; skip a window anew", nameOf(env.name), err), span.End)
	}
	resting := s.resting(now)
	if rests := resting.nothingToDo(env); rests.why != "" {
		return s.rest(env, now, rests, span.End)
	}
	pinned, unpinned := s.releaseOf(env, now)
	back, known, again := s.backByWindow(ctx, env, pinned, now)
	if !known {
		return again
	}
	e := message.Opened{Trigger: message.TriggerWindow, Window: span.Start, WindowEnd: span.End, NotAfter: span.End}
	if back != nil {
		e, planned, err := s.planRollback(env, e, back)
		switch {
		case err == nil:
			return s.openPlanned(ctx, env, f, e, planned, plan.Left{Hosts: len(planned.Hosts), Silent: len(planned.Silent)})
		case !isRefused(err):
			env.back = windowRollback{}
			return now.Add(readBackAgain)
		}
	}
	before := s.predecessors(env, now, false)
	if before.Waits != "" {
		return s.idles(env, now, "after", before.Waits, times.Sooner(before.Until, span.End))
	}
	if unpinned != nil {
		return s.idles(env, now, "window", fmt.Sprintf("a release: %v", unpinned), span.End)
	}
	if why := env.rolledBack(pinned); why != "" {
		again := v1.Start{Environment: s.inCommand(env), Release: pinned.Name}
		return s.idles(env, now, "window", fmt.Sprintf("nobody: %s; name another release, or to have it again: %s", why, startAnyway(again, "--override-window")), span.End)
	}
	planned := resting.plan(env, pinned)
	if planned.waits != "" {
		return s.idles(env, now, "window", planned.waits, span.End)
	}
	e.Follows, e.Release = before.Follows, pinned
	return s.openPlanned(ctx, env, f, e, planned.Plan, planned.left)
}

// openPlanned opens the run that was planned for an open window, once its hosts are back and while time is
// left for it. left are the hosts for which the window needs it.
func (s *state) openPlanned(ctx context.Context, env *environment, f moment, e message.Opened, planned plan.Plan, left plan.Left) time.Time {
	now := f.now
	f.members, f.silent, f.ofSteps = left.Hosts, left.Silent, planned.OfSteps() || e.RollbackOf != 0 && len(planned.Hosts) == 0
	e.NotAfter = e.WindowEnd.Add(-planned.Reserve())
	heardBy := s.started.Add(gracePeriod)
	switch isDue, at := due(f); {
	case !isDue && !at.IsZero() && now.Before(heardBy):
		return heardBy
	case !isDue && !at.IsZero() && f.silent < f.members:
		return s.idles(env, now, "host", fmt.Sprintf("%s to come back after the start of the agent; the run is opened without the others at %s",
			text.Count(f.silent, "host", "hosts"), view.Time(at).Format(time.RFC3339)), at)
	case f.ofSteps:
	case f.members == 0 && len(planned.Exempt) > 0 && e.Release != nil:
		return s.idles(env, now, "window", "nobody: "+leavesAll(planned, e.Release), e.WindowEnd)
	case f.members == 0 && len(planned.Exempt) > 0:
		return s.idles(env, now, "window", fmt.Sprintf("nobody: the rollout leaves out every one of %s", text.Count(len(planned.Exempt), "host", "hosts")), e.WindowEnd)
	case f.members == 0 && s.elsewhere(env) != nil:
		other := s.elsewhere(env)
		return s.idles(env, now, "host", fmt.Sprintf("run %d of environment %s to end, which has hosts of this one", other.ledger.Key(), nameOf(other.name)), e.WindowEnd)
	case f.members == 0 && env.name != defaultName:
		return s.idles(env, now, "host", fmt.Sprintf("a host of a listed worker application in environment %s: none is known", env.name), e.WindowEnd)
	case f.members == 0:
		return s.idles(env, now, "host", "a worker to be started: no host of a listed worker application is known", e.WindowEnd)
	case !isDue && left.Have > 0:
		return s.idles(env, now, "host", fmt.Sprintf("a host to come back: %s, all silent; the others have release %s", text.Count(f.silent, "host", "hosts"), e.Release.Name), e.WindowEnd)
	case !isDue:
		return s.idles(env, now, "host", fmt.Sprintf("a host to come back: %s, all silent", text.Count(f.silent, "host", "hosts")), e.WindowEnd)
	}
	if !now.Before(e.NotAfter) {
		return s.idles(env, now, "window", fmt.Sprintf("the next window: this one has no time left before the reserve of %s", window.FormatDuration(planned.Reserve())), e.WindowEnd)
	}
	env.notIdle()
	return s.open(ctx, env, e, planned)
}

// whyAgain tells why the next run of an open window is opened at a time.
func (e *environment) whyAgain(at time.Time) string {
	newest := e.ledger.Newest()
	return message.CleanText(fmt.Sprintf("%s to try again: run %d touched no host: %s", at.UTC().Format(time.RFC3339), newest.Key(), newest.Reason))
}

// idles notes why an open window has no run, and logs that once.
func (s *state) idles(env *environment, now time.Time, what, detail string, until time.Time) time.Time {
	if env.idle.What != what || env.idle.Detail != detail {
		env.notIdle()
		env.idle = v1.WaitingFor{What: what, Detail: detail, Since: view.Time(now)}
		s.Logger.Warn("a window is open and no run is opened", "tenant", s.Tenant, "waiting-for", detail)
		s.show()
	}
	return until
}

// open appends the event that opens a planned run.
func (s *state) open(ctx context.Context, env *environment, e message.Opened, planned plan.Plan) time.Time {
	return s.append(ctx, eventEntry(0, s.opening(env, e, planned)))
}

// opening adds a plan to the event that opens its run.
func (s *state) opening(env *environment, e message.Opened, planned plan.Plan) message.Opened {
	e.Environment = env.name
	e.Members, e.Exempt, e.Rollout = planned.Hosts, planned.Exempt, planned.Rollout
	e.Until, e.Reached, e.Promotion = planned.Until, planned.Reached, env.ledger.Promotion()
	e.Roster = s.ledger.Opening(env.name, planned.Hosts, planned.Silent, planned.Others)
	e.Considered = env.ledger.Considered()
	if len(s.intent.followers()[env.name]) > 0 {
		e.Completed = env.ledger.Completed()
	}
	e.RosterAsOf = s.ledger.RosterAsOf(env.name)
	e.Budgets = s.intent.budgetsID
	e.Cells = s.cellsOf(e.Rollout.Absent, s.ledger.Says(e))
	return e
}

// moment is what is known of an opening but for the fleet.
func (s *state) moment(env *environment, now time.Time, span window.Span) moment {
	f := moment{now: now, span: span, skipped: s.intent.skips[env.name].Of(span.Start) != nil, changed: s.intent.of(env.name).scheduledAt, started: s.started, joined: s.hosts.joined}
	newest := env.ledger.Newest()
	if newest != nil && newest.Over() && !newest.UsesWindow() {
		f.unused = true
		after := s.intent.retryAfter(env.name)
		since := after
		if !env.endSeen.IsZero() {
			since = time.Since(env.endSeen)
		}
		if at := retryTime(newest.EndedAt, now, after, since); at.Before(span.End.Add(-s.intent.reserve(env.name))) {
			f.retryAt = at
		}
	}
	switch {
	case newest == nil:
	case newest.Window.IsZero():
		f.last = newest.OpenedAt
	default:
		f.last, f.lastEnd = newest.Window, newest.WindowEnd
	}
	return f
}

// missed returns the event of a window that has closed without a run, the
// oldest one first; false when there is none.
func (s *state) missed(env *environment, now time.Time) (e message.Missed, some bool) {
	if s.intent.config == nil || len(s.hosts.in(env.name)) == 0 {
		return e, false
	}
	owed := s.owed(env, now)
	if len(owed) == 0 {
		return e, false
	}
	o := owed[0]
	e = message.Missed{Environment: env.name, Window: o.Start, WindowEnd: o.End}
	e.Reason, e.Release = s.whyMissed(env, o)
	return e, true
}

// setIntent takes up an object that was written or deleted. Windows that have closed by
// then and are still owed a run or a reason stay so: the new schedule says nothing of
// the time before it was written (seed 2027900).
func (s *state) setIntent(seen store.Seen) {
	concerned, wasAlone, before := s.inOrder, s.alone(), s.intent.environments[seen.Name]
	all := s.intent.concernsAll(seen)
	if !all {
		concerned = slices.DeleteFunc([]*environment{s.environments[seen.Name]}, func(e *environment) bool { return e == nil })
	}
	if s.intent.complete && seen.Kind != store.Rollout && seen.Kind != store.Budget && seen.Kind != store.Skip && seen.Kind != store.Release {
		for _, env := range concerned {
			s.intent.of(env.name).owed = s.owed(env, times.Sooner(seen.At, s.Now()))
		}
	}
	s.intent.set(seen)
	s.goalsChange(seen.Object)
	moved := false
	switch {
	case seen.Object == (store.Object{}), all && seen.Kind == store.Environment:
		s.declareAll()
		s.placeAll()
	case seen.Kind == store.Environment:
		s.declare(seen.Name)
		moved = s.placeOf(seen.Name, before)
	}
	if all || moved || s.alone() != wasAlone {
		s.wakeAll()
	} else {
		s.wakeDeclared(seen.Name)
	}
	s.tellCalendar(seen)
	if seen.Kind == store.Skip && seen.Skips != nil {
		s.news.putBeside(s.teller.Skipped(onLog(seen.Name), *seen.Skips, s.Now())...)
	}
}

// tellCalendar tells people of a calendar that cannot be fetched, or can be again.
func (s *state) tellCalendar(seen store.Seen) {
	if declared, isFetched := s.intent.fetched[seen.Name]; isFetched && seen.Kind == store.Copy && seen.Copy != nil {
		s.news.putBeside(s.teller.Calendar(seen.Name, declared, *seen.Copy, s.Now())...)
	}
}

// TellWaiting tells people of hosts that wait for approval, of each once.
func (c *Controller) TellWaiting(ctx context.Context, hosts []v1.WaitingHost) error {
	return c.attempt(ctx, func(s *state) error {
		for _, h := range hosts {
			s.news.putBeside(s.teller.HostWaiting(h))
		}
		return nil
	})
}

// owed returns the last windows that have closed by now without a run, and of which
// no record says why, the oldest one first.
func (s *state) owed(env *environment, now time.Time) []window.Opening {
	considered := env.ledger.Considered()
	if considered.After(now) { // It was, by a clock that was ahead; setBack notes when that ended.
		considered = s.started
	}
	since := times.Later(considered.Add(1), now.Add(-longestAbsence))
	agenda := s.intent.of(env.name)
	owed := slices.DeleteFunc(slices.Clone(agenda.owed), func(o window.Opening) bool {
		// One that closes later became owed by a clock that was ahead.
		return o.Start.Before(since) || o.End.After(now) || s.intent.skips[env.name].Of(o.Start) != nil
	})
	if !now.Before(agenda.lookBackAt) && !agenda.scheduledAt.IsZero() {
		closed := s.closed(env, since, now)
		if len(closed) == 0 {
			agenda.lookBackAt = now.Add(day)
			if next, found := agenda.nextOpening(now); found {
				agenda.lookBackAt = next.End
			}
		}
		owed = append(owed, closed...)
	}
	return owed[max(0, len(owed)-mostMissed):]
}

// closed returns the windows of the schedule that opened from an instant on, have
// closed by now and had no run: at most mostMissed, the last ones. The schedule says
// nothing of the time before it was written; a window that was open then is owed a run,
// unless it is what an edit has made of the window of the last run.
func (s *state) closed(env *environment, since, now time.Time) []window.Opening {
	var closed []window.Opening
	agenda := s.intent.of(env.name)
	for o := range agenda.schedule.Ahead(times.Later(since, agenda.scheduledAt), now, 0) {
		if o.Start.Before(since) || o.End.After(now) || s.intent.skips[env.name].Of(o.Start) != nil || edited(s.moment(env, now, o.Span)) {
			continue
		}
		if closed = append(closed, o); len(closed) > mostMissed {
			closed = closed[1:]
		}
	}
	return closed
}

// whyMissed tells why a window that has closed had no run; release is that of the environment if it needed none.
func (s *state) whyMissed(env *environment, o window.Opening) (why, release string) {
	switch {
	case s.lastJump.jumpsOver(o.Start, o.End):
		return "the clock of the site was set forward over it", ""
	case !o.End.After(s.started):
		return "the agent was not running", ""
	case env.rests.why != "" && !env.rests.since.Before(view.Time(o.Start)):
		return env.rests.why, env.rests.release
	case env.idle.What != "" && !env.idle.Since.Before(view.Time(o.Start)):
		return "it was waiting for " + env.idle.Detail, ""
	}
	return "no run could be opened while it was open", ""
}
