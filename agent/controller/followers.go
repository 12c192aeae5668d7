package controller

import (
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/view"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// follower takes each record of one run after it was folded into the run. live means that this
// controller is the one to act on it: it is active, and the record came after it had started.
type follower func(r *run.State, record message.Decoded, live bool)

// followRun begins to follow a run of an environment, known by the record that opened it. What a
// follower knows is of one run, so all of them are made anew.
func (s *state) followRun(env *environment, opened uint64) {
	env.followed, env.story, env.teller, env.traces = opened, &view.Story{}, s.teller.Of(opened, env.name), newTraces(s.Options)
	env.followers = []follower{
		func(_ *run.State, record message.Decoded, _ bool) { env.story.Add(record) },
		newRunLog(s.Options, env.name).record,
		newObserved(s.Observer, env.name, func() []string { return env.ledger.Roster().Watched() }).record,
	}
	env.compared = nil
	if newest := env.ledger.Newest(); s.active && newest != nil {
		if env.compared = newComparison(s.Options, newest, s.call, env.tasks.ready); env.compared != nil {
			env.followers = append(env.followers, env.compared.record)
		}
	}
	if s.active {
		env.followers = append(env.followers, env.traces.record, func(r *run.State, record message.Decoded, _ bool) {
			s.news.put(record.Seq, env.teller.Record(r, record)...)
		})
	}
}
