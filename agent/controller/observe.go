package controller

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
)

// Observer is told what happens in the runs of a tenant, for metrics. It is called in
// the controller's loop, so it may not wait. Records that were there when the
// controller started are not told again.
type Observer interface {
	// RunEnded tells of a run that has ended, and how long it took.
	RunEnded(result run.Result, took time.Duration)
	// HostEnded tells of a member that has come to its final status; class is empty
	// unless the host has told the class of its failure.
	HostEnded(status run.Status, class message.Class)
	// Answered tells how long a host took for its answer to a command.
	Answered(action message.Action, took time.Duration)
	// WindowMissed tells of a window that closed without a run.
	WindowMissed()
}

// observed is what is known of the newest run for the observer: when each command was
// sent that is not answered, and which members have been told of.
type observed struct {
	run      uint64
	prepared time.Time
	sent     map[string]time.Time
	ended    map[string]bool
}

// observe tells the observer what a record has changed of the newest run.
func (s *state) observe(r *run.State, record message.Decoded) {
	if s.Observer == nil {
		return
	}
	if s.observed.run != r.OpenedSeq {
		s.observed = observed{run: r.OpenedSeq, sent: map[string]time.Time{}, ended: map[string]bool{}}
	}
	live := s.active && record.Seq > s.startedAt
	switch {
	case record.Kind == message.CommandAll:
		s.observed.prepared = record.Time
	case record.Kind == message.CommandHost:
		s.observed.sent[record.Host] = record.Time
	case record.Kind == message.ReplyRecord && live:
		s.observeReply(record)
	}
	s.observeEnds(r, record, live)
	if live && r.Over() && record.Seq == r.EndedSeq {
		s.Observer.RunEnded(r.Result, r.EndedAt.Sub(r.OpenedAt))
	}
}

func (s *state) observeReply(record message.Decoded) {
	sent := s.observed.sent[record.Host]
	if record.Action == message.Prepare {
		sent = s.observed.prepared
	}
	delete(s.observed.sent, record.Host)
	if !sent.IsZero() {
		s.Observer.Answered(record.Action, max(0, record.Time.Sub(sent)))
	}
}

// observeEnds tells of members that have come to their final status. The end of a run
// may end all that are left.
func (s *state) observeEnds(r *run.State, record message.Decoded, live bool) {
	ended := 0
	for _, status := range run.Statuses() {
		if status.Final() {
			ended += r.Count(status)
		}
	}
	if ended == len(s.observed.ended) {
		return
	}
	names := record.Hosts()
	if record.Seq == r.OpenedSeq || record.Seq == r.EndedSeq {
		names = r.Watched()
	}
	for _, name := range names {
		if s.observed.ended[name] {
			continue
		}
		if member, found := r.Host(name); found && member.Status.Final() {
			if s.observed.ended[name] = true; live {
				s.Observer.HostEnded(member.Status, member.Class)
			}
		}
	}
}
