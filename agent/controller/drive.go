package controller

import (
	"context"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
)

// attend writes down what people want of the newest run, be it over or not: what
// they ask, and the hosts that they have deleted. It reports whether there was
// anything to write, and when to try again if that failed.
func (s *state) attend(ctx context.Context, newest *run.State) (retryAt time.Time, wrote bool) {
	if retryAt, wrote = s.decideRequests(ctx, newest); wrote {
		return retryAt, true
	}
	if e, some := s.deleted(newest); some {
		return s.appendEvent(ctx, newest, e), true
	}
	return time.Time{}, false
}

// drive takes the next step of the run under way: first it brings the log up
// to what is known beside it, then it does what the run says.
func (s *state) drive(ctx context.Context, current *run.State, now time.Time) time.Time {
	if !s.hasGathered(current, now) {
		return s.started.Add(gracePeriod)
	}
	if now.Before(s.hosts.pace.judgeAt) {
		return s.hosts.pace.judgeAt
	}
	for _, fact := range []func(*run.State) (message.Event, bool){s.silence, s.freezes, s.held, s.ran} {
		if e, some := fact(current); some {
			return s.appendEvent(ctx, current, e)
		}
	}
	ahead := s.clock.ahead(now)
	step := current.Next(now.Add(ahead))
	switch step.Act {
	case run.Send:
		return s.appendCommand(ctx, current, step.Command)
	case run.Note:
		return s.appendEvent(ctx, current, step.Event)
	case run.Wait:
		s.tasks.syncFleet(ctx, step)
	}
	if step.Until.IsZero() {
		return step.Until
	}
	return step.Until.Add(-ahead)
}

func (s *state) appendCommand(ctx context.Context, current *run.State, c message.Command) time.Time {
	kind := message.CommandHost
	if c.Action == message.Prepare {
		kind = message.CommandAll
	}
	return s.append(ctx, message.Record{Kind: kind, Host: c.Host, Run: current.ID, Epoch: current.Epoch(c.Host), Body: c.Encode()}, string(c.Action))
}

func (s *state) appendEvent(ctx context.Context, current *run.State, e message.Event) time.Time {
	return s.append(ctx, message.Record{Kind: message.EventRecord, Run: current.Key(), Body: message.EncodeEvent(e)}, message.Name(e))
}

// append writes a record, and returns when to try again if that failed.
func (s *state) append(ctx context.Context, r message.Record, label string) (retryAt time.Time) {
	worked := s.log.failing.IsZero()
	if s.log.append(ctx, r, label, &s.ledger) {
		return time.Time{}
	}
	if worked && !s.log.failing.IsZero() {
		s.show()
	}
	return s.log.retryAt
}

// silence returns the event that brings the run's view of its hosts up to
// date; false when it is.
func (s *state) silence(current *run.State) (message.Event, bool) {
	var gone, heard []string
	for name := range s.hosts.unreported {
		silent, matters := current.Silence(name)
		_, isDeleted := s.hosts.deleted[name]
		switch {
		case silent && s.hosts.present.online(name):
			heard = append(heard, name)
		case !isDeleted && !silent && matters && !s.hosts.present.online(name):
			gone = append(gone, name)
		default:
			delete(s.hosts.unreported, name)
		}
	}
	slices.Sort(heard)
	slices.Sort(gone)
	switch {
	case len(heard) > 0:
		return message.Recovered{Hosts: heard}, true
	case len(gone) > 0:
		return message.Silent{Hosts: gone}, true
	}
	return nil, false
}

// hasGathered reports whether a controller that has just started knows enough of
// the run's hosts to go on: each was heard of, or is known to be silent. After
// a while those that were not heard of are silent (design.md 5, invariant 1).
func (s *state) hasGathered(current *run.State, now time.Time) bool {
	if s.gathered || !now.Before(s.started.Add(gracePeriod)) {
		s.gathered = true
		return true
	}
	for name := range s.hosts.unreported {
		silent, matters := current.Silence(name)
		if _, isDeleted := s.hosts.deleted[name]; matters && !silent && !isDeleted && !s.hosts.present.online(name) {
			return false
		}
	}
	s.gathered = true
	return true
}

// freezes returns the event that has the run under way end with the freeze that
// is on or comes next, if that begins before its not-after. The run has the last
// word: the event bears the log's own time, and changes nothing when the freeze
// is over by that.
func (s *state) freezes(current *run.State) (message.Event, bool) {
	freeze, found := s.intent.nextFreeze(s.clock.forFreezes(s.Now()))
	if !found || !freeze.Start.Before(current.NotAfter) {
		return nil, false
	}
	return message.Frozen{Freeze: message.CleanText(freezeName(freeze)), NotAfter: freeze.Start, Until: freeze.End}, true
}

// held returns the event that pauses or resumes the run under way because the
// rollout says so, or because something cannot be read; false when the run is
// paused, or not, for what holds it up now. What somebody has paused is left to
// them.
func (s *state) held(current *run.State) (message.Event, bool) {
	hold, now := s.intent.hold(), current.Paused
	switch {
	case current.IsAborting():
	case now == nil && hold != nil:
		return *hold, true
	case now == nil || !message.GoesOn(now.By):
	case hold == nil || hold.By != now.By || hold.By == message.ByAgent && hold.Why != now.Why:
		return message.Resumed{By: now.By}, true
	}
	return nil, false
}

// ran returns the event of an outcome that is not on the log yet.
func (s *state) ran(current *run.State) (message.Event, bool) {
	for host, o := range s.tasks.outcomes {
		if !current.Awaits(o) {
			s.tasks.drop(host)
			continue
		}
		return message.Ran{Outcome: o}, true
	}
	return nil, false
}

// deleted returns the event of the hosts that were deleted and still matter to
// the newest run; false when there are none.
func (s *state) deleted(newest *run.State) (message.Event, bool) {
	var hosts []string
	for name := range s.hosts.deleted {
		if newest.Minds(name) {
			hosts = append(hosts, name)
		}
	}
	if len(hosts) == 0 {
		return nil, false
	}
	return s.deletion(hosts), true
}

// deletion returns the event of hosts that were deleted, by whoever has deleted
// the first of them; the others' comes next.
func (s *state) deletion(hosts []string) message.Deleted {
	slices.Sort(hosts)
	by := s.hosts.deleted[hosts[0]]
	return message.Deleted{Hosts: slices.DeleteFunc(hosts, func(name string) bool { return s.hosts.deleted[name] != by }), By: by}
}
