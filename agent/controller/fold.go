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
	if err := s.guard.see(r, r.Kind == message.EventRecord && s.ledger.Current() == nil); err != nil {
		s.raise(err)
		return
	}
	s.clock.fold(r, s.Now(), r.Seq > s.startedAt)
	decoded := r.Decode()
	s.witnesses.Fold(decoded)
	if err := s.ledger.Fold(decoded); err != nil {
		s.Logger.Warn("record ignored", "tenant", s.Tenant, "record", r.Seq, "host", r.Host, "reason", err)
	} else if missed, ok := decoded.Event.(message.Missed); ok {
		s.noteMissed(r, missed)
	} else if newest := s.ledger.Newest(); newest != nil && !message.OfNoRun(decoded.Event) {
		s.folded(ctx, newest, decoded)
	}
	s.tasks.folded.set(s.ledger.LastSeq)
	if r.Kind != message.ReplyRecord {
		s.log.alive()
	}
	if newest := s.ledger.Newest(); r.Seq == s.startedAt && newest != nil {
		// The records of the start are folded: take up the run that they tell of.
		s.compareAll()
		if s.active && !newest.Over() {
			s.tasks.syncAll(ctx, newest)
		}
		if s.active {
			s.traces.started(newest, s.Now())
		}
	}
	s.checkLoaded()
	s.changed()
}

// noteMissed tells of a window that was missed.
func (s *state) noteMissed(r message.Record, missed message.Missed) {
	if s.Observer != nil && s.active && r.Seq > s.startedAt {
		s.Observer.WindowMissed()
	}
	if s.active {
		s.news.put(r.Seq, s.teller.Missed(r.Seq, r.Time, missed))
	}
}

// folded does what follows from a record of the newest run: it passes the record to the
// followers, has a run that has ended written to the history, and requests the tasks that
// the run now waits for.
func (s *state) folded(ctx context.Context, newest *run.State, r message.Decoded) {
	if newest.OpenedSeq != s.followed {
		s.archiveWhenDue(s.archiveAt) // The story is still that of the run before.
		s.followRun(newest.OpenedSeq)
		s.endSeen = time.Time{}
	}
	for _, record := range s.followers {
		record(newest, r, s.active && r.Seq > s.startedAt)
	}
	s.recognize(newest, r.Record)
	switch {
	case newest.Over():
		s.tasks.dropAll()
		if r.Seq == newest.EndedSeq {
			live := r.Seq > s.startedAt
			s.noteEnd(newest, live)
			if live {
				s.endSeen = time.Now()
			}
		}
		switch {
		case r.Seq > newest.EndedSeq && s.archiveAt.IsZero():
			s.archiveAt = s.Now().Add(rearchiveAfter)
		case newest.Key() > s.archived && r.Seq == newest.EndedSeq:
			s.archive(newest)
		}
	case r.Seq > s.startedAt:
		s.follow(ctx, newest, r)
	}
}

// archiveWhenDue has a run that has changed after its end written to the history
// again once that is due.
func (s *state) archiveWhenDue(now time.Time) {
	if !s.archiveAt.IsZero() && !now.Before(s.archiveAt) {
		s.archiveAt = time.Time{}
		if ended := s.ledger.Ended(); ended != nil {
			s.noteEnd(ended, true)
			s.archive(ended)
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
func (s *state) archive(ended *run.State) {
	if s.active {
		s.writer.lastRuns.Put(s.Tenant, queuedRuns{runs: s.hosts.lastRuns()})
		s.past.put(s.fullView(ended), ended.LastSeq)
	}
}

// compareAll has the next decision compare the silence of all hosts, as the roster
// knows it, with what was heard of them.
func (s *state) compareAll() {
	for _, name := range s.ledger.Roster().Watched() {
		s.hosts.unreported[name] = true
	}
}

// follow brings the silence and the tasks of those hosts up to date that a record
// is about.
func (s *state) follow(ctx context.Context, current *run.State, r message.Decoded) {
	if r.Kind == message.CommandAll || r.Seq == current.OpenedSeq {
		s.compareAll()
		return
	}
	hosts := []string{r.Host}
	switch {
	case r.Event != nil:
		hosts = s.overhear(r.Event)
	case r.Kind == message.ReplyRecord: // A sign of life.
		s.hosts.present.hear(r.Host, s.Now())
	}
	tasks := s.active && hasTasks(current.Rollout())
	for _, host := range hosts {
		s.hosts.unreported[host] = true
		if tasks {
			s.tasks.sync(ctx, current, host)
		}
	}
}

// overhear notes an event that another controller may have written, and returns the
// hosts that it is about. A host that another controller has heard counts as
// heard: otherwise two controllers of which only one hears a host would contradict
// each other as fast as they can write. A task whose outcome is on the log ends.
func (s *state) overhear(e message.Event) []string {
	switch e := e.(type) {
	case message.Recovered:
		for _, host := range e.Hosts {
			s.hosts.present.hear(host, s.Now())
		}
	case message.Ran:
		s.tasks.done(e.Outcome)
	}
	return message.Hosts(e)
}
