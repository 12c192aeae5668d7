package controller

import (
	"context"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// fold folds a record of the log, and does what follows from it.
func (s *state) fold(ctx context.Context, r message.Record) {
	if r.Seq <= s.ledger.LastSeq {
		return // The log delivers a record twice when it is followed anew.
	}
	decoded := r.Decode()
	if err := s.guard.see(r, beginsAnew(decoded.Event)); err != nil {
		s.raise(err)
		return
	}
	s.clock.fold(r, s.Now(), r.Seq > s.startedAt)
	s.witnesses.Fold(decoded)
	err := s.ledger.Fold(decoded)
	s.touched()
	if err == nil {
		s.noteBeginning(decoded)
	}
	if err != nil {
		s.Logger.Warn("record ignored", "tenant", s.Tenant, "record", r.Seq, "host", r.Host, "reason", err)
		if opened, opens := decoded.Event.(message.Opened); opens {
			s.environment(opened.Environment).opensFrom = s.Now().Add(longestPause)
		}
	} else if missed, ok := decoded.Event.(message.Missed); ok {
		s.noteMissed(r, missed)
	} else if _, edited := decoded.Event.(message.Budgeted); edited {
		for _, env := range s.inOrder {
			env.compareAll()
		}
	} else if _, unlocked := decoded.Event.(message.Unlocked); unlocked {
		for _, env := range s.inOrder {
			s.recognize(env, decoded.Record)
		}
	} else if env := s.last(); env != nil && !message.OfNoRun(decoded.Event) {
		s.folded(ctx, env, decoded)
	}
	s.dispatching.folded.set(s.ledger.LastSeq)
	if r.Kind != message.ReplyRecord {
		s.log.alive()
	}
	if r.Seq == s.startedAt {
		for _, env := range s.inOrder {
			s.takeUp(ctx, env)
		}
	}
	s.checkLoaded()
	s.stale = true
	s.show()
}

// beginsAnew reports whether what the log says of an environment can be told from an event on,
// so that the records before it may be trimmed one day.
func beginsAnew(e message.Event) bool {
	switch e.(type) {
	case message.Opened, message.Missed, message.Carried:
		return true
	}
	return false
}

// takeUp takes up the newest run of an environment once the records of the start are folded.
func (s *state) takeUp(ctx context.Context, env *environment) {
	newest := env.ledger.Newest()
	if newest == nil {
		return
	}
	env.compareAll()
	if s.active && !newest.Over() {
		env.tasks.syncAll(ctx, newest)
	}
	if s.active {
		env.traces.started(newest, s.Now())
	}
}

// noteMissed tells of a window that had no run.
func (s *state) noteMissed(r message.Record, missed message.Missed) {
	if s.Observer != nil && s.active && r.Seq > s.startedAt && !missed.UpToDate() {
		s.Observer.WindowMissed(missed.Environment)
	}
	if s.active {
		s.news.put(r.Seq, s.teller.Missed(r.Seq, r.Time, missed))
	}
}

// folded does what follows from a record of the newest run of an environment: it passes the
// record to the followers, has a run that has ended written to the history, and requests the
// tasks that the run now waits for.
func (s *state) folded(ctx context.Context, env *environment, r message.Decoded) {
	newest := env.ledger.Newest()
	if newest.OpenedSeq != env.followed {
		s.archiveWhenDue(env, env.archiveAt) // The story is still that of the run before.
		s.followRun(env, newest.OpenedSeq)
		env.endSeen = time.Time{}
		env.unreported = map[string]bool{} // Whoever is silent now was so before the run.
	}
	for _, record := range env.followers {
		record(newest, r, s.active && r.Seq > s.startedAt)
	}
	s.recognize(env, r.Record)
	switch {
	case newest.Over():
		env.tasks.dropAll()
		env.compared = nil
		if r.Seq == newest.EndedSeq {
			live := r.Seq > s.startedAt
			s.noteEnd(newest, live)
			if live {
				env.endSeen = time.Now()
			}
		}
		switch {
		case r.Seq > newest.EndedSeq && env.archiveAt.IsZero():
			env.archiveAt = s.Now().Add(rearchiveAfter)
		case r.Seq == newest.EndedSeq && !s.past.has(newest.Key()):
			s.archive(env, newest)
		}
	case r.Seq > s.startedAt:
		s.follow(ctx, env, newest, r)
	}
}

// archiveWhenDue has a run that has changed after its end written to the history
// again once that is due.
func (s *state) archiveWhenDue(env *environment, now time.Time) {
	if !env.archiveAt.IsZero() && !now.Before(env.archiveAt) {
		env.archiveAt = time.Time{}
		if ended := env.ledger.Ended(); ended != nil {
			s.noteEnd(ended, true)
			s.archive(env, ended)
		}
	}
}

// noteEnd notes of the hosts of a run that has ended how they came out of it. That is stored with
// the run, not with each host: of a host only what the log does not record is written. A host that
// waits to be written is written as it is now, because a write after that of the last runs hides
// them.
func (s *state) noteEnd(ended *run.State, live bool) {
	s.hosts.ended(ended, live, func(h store.Host) {
		if s.active {
			s.writer.put(h)
		}
	})
	s.writer.queue.Revise(func(name string, h *store.Host) {
		if known := s.hosts.known[name]; known != nil {
			*h = known.Host
		}
	})
}

// archive has a run that has ended written to the history, and before it the last runs of all
// hosts: both must outlive the log, which may be trimmed or lost.
func (s *state) archive(env *environment, ended *run.State) {
	if s.active {
		s.writer.lastRuns.Put(s.Tenant, queuedRuns{runs: s.hosts.lastRuns()})
		s.past.put(s.fullView(env, ended), ended.LastSeq)
	}
}

// follow brings the silence and the tasks of those hosts up to date that a record
// is about.
func (s *state) follow(ctx context.Context, env *environment, current *run.State, r message.Decoded) {
	if r.Kind == message.CommandAll || r.Seq == current.OpenedSeq {
		env.compareAll()
		if s.active && current.AsksFirst() {
			env.tasks.syncAll(ctx, current)
		}
		return
	}
	hosts := []string{r.Host}
	switch {
	case r.Event != nil:
		hosts = s.overhear(env, r.Event)
	case r.Kind == message.ReplyRecord: // A sign of life.
		s.hosts.present.hear(r.Host, s.Now())
	}
	tasks := s.active && hasTasks(current.Rollout())
	for _, host := range hosts {
		env.unreported[host] = true
		if tasks {
			env.tasks.sync(ctx, current, host)
		}
	}
}

// overhear notes an event that another controller may have written, and returns the
// hosts that it is about. A host that another controller has heard counts as
// heard: otherwise two controllers of which only one hears a host would contradict
// each other as fast as they can write. A task whose outcome is on the log ends.
func (s *state) overhear(env *environment, e message.Event) []string {
	switch e := e.(type) {
	case message.Recovered:
		for _, host := range e.Hosts {
			s.hosts.present.hear(host, s.Now())
		}
	case message.Ran:
		env.tasks.done(e.Outcome)
	}
	return message.Hosts(e)
}
