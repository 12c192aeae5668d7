package controller

import (
	"context"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/policy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
)

// folded does what follows from a record that counts: it tells the story,
// keeps a run that has ended, and asks for what the run wants of the hosts
// that the record is about.
func (s *state) folded(ctx context.Context, r message.Record) {
	newest := s.ledger.Newest()
	if newest == nil || isMissed(r) {
		return
	}
	if newest.OpenedSeq == r.Seq {
		if !s.rekeepAt.IsZero() {
			s.rekeep(s.rekeepAt) // The story is still that of the run before.
		}
		s.events = nil
	}
	s.tell(r)
	s.recognize(newest, r)
	switch {
	case newest.Over():
		s.tasks.dropAll()
		s.suspects = map[string]bool{}
		switch {
		case r.Seq > newest.EndedSeq && s.rekeepAt.IsZero():
			s.rekeepAt = s.Now().Add(rekeepAfter)
		case newest.Key() > s.kept && r.Seq == newest.EndedSeq:
			s.past.put(s.fullView(newest), newest.LastSeq)
		}
	case r.Seq > s.startedAt: // What was there at the start is taken up at its end.
		s.follow(ctx, newest, r)
	}
}

// rekeepAfter is the wait until an ended run is kept anew after a change: many
// hosts may answer after its end, and each time all of it is written.
const rekeepAfter = time.Second

// rekeep keeps the ended run anew once that is due.
func (s *state) rekeep(now time.Time) {
	if !s.rekeepAt.IsZero() && !now.Before(s.rekeepAt) {
		s.rekeepAt = time.Time{}
		if ended := s.ledger.Ended(); ended != nil {
			s.past.put(s.fullView(ended), ended.LastSeq)
		}
	}
}

// isMissed reports whether a record tells of a window that was missed, which
// belongs to no run.
func isMissed(r message.Record) bool {
	if r.Kind != message.EventRecord {
		return false
	}
	e, err := message.DecodeEvent(r.Body)
	return err == nil && e.Event == message.Missed
}

// takeUp goes on with a run that was under way when the controller started.
func (s *state) takeUp(ctx context.Context, current *run.State) {
	s.suspectAll(current)
	if hasTasks(current.Policy()) {
		for _, h := range current.Hosts() {
			s.sync(ctx, current, h.Name)
		}
	}
}

func hasTasks(p policy.Resolved) bool {
	return len(p.Checks.BeforeHost)+len(p.Checks.AfterHost) > 0 || p.Hooks.Drain != nil || p.Hooks.Undrain != nil
}

// follow looks again at the hosts that a record is about.
func (s *state) follow(ctx context.Context, current *run.State, r message.Record) {
	if r.Kind == message.CommandAll || r.Seq == current.OpenedSeq {
		s.suspectAll(current)
		return
	}
	hosts := []string{r.Host}
	if r.Kind == message.EventRecord {
		e, err := message.DecodeEvent(r.Body)
		if err != nil {
			return
		}
		hosts = s.overhear(e)
	}
	if r.Kind == message.ReplyRecord { // A sign of life.
		s.present.hear(r.Host, s.Now())
	}
	tasks := hasTasks(current.Policy())
	for _, host := range hosts {
		s.suspect(host)
		if tasks {
			s.sync(ctx, current, host)
		}
	}
}

// overhear takes in what another controller may have written, and returns the
// hosts that it is about: whom that one has heard, for two of which only one
// hears a host would otherwise contradict each other as fast as they can write,
// and which task it has the outcome of.
func (s *state) overhear(e message.Event) []string {
	if e.Event == message.Recovered && e.Reason == message.Heard {
		for _, host := range e.Hosts {
			s.present.hear(host, s.Now())
		}
	}
	if e.Outcome == nil {
		return e.Hosts
	}
	s.tasks.over(*e.Outcome)
	if e.Outcome.Host == "" {
		return e.Hosts
	}
	return []string{e.Outcome.Host}
}
