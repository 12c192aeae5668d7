package controller

import (
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/view"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// follower takes each record of one run after it was folded into the run. live means that this
// controller is the one to act on it: it is active, and the record came after it had started.
type follower func(r *run.State, record message.Decoded, live bool)

// followRun begins to follow a run, known by the record that opened it. What a follower knows is of
// one run, so all of them are made anew.
func (s *state) followRun(opened uint64) {
	s.followed, s.story, s.teller, s.traces = opened, &view.Story{}, s.teller.Of(opened), newTraces(s.Options)
	s.followers = []follower{
		func(_ *run.State, record message.Decoded, _ bool) { s.story.Add(record) },
		newRunLog(s.Options).record,
		newObserved(s.Observer, func() []string { return s.ledger.Roster().Watched() }).record,
	}
	if s.active {
		s.followers = append(s.followers, s.traces.record, func(r *run.State, record message.Decoded, _ bool) {
			s.news.put(record.Seq, s.teller.Record(r, record)...)
		})
	}
}
