package controller

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Observer is told what happens in the runs of a tenant, for metrics. It is called in
// the controller's loop, so it may not wait. Records that were there when the
// controller started are not told again. The name of the default environment is empty.
type Observer interface {
	// RunEnded tells of a run that has ended, and how long it took.
	RunEnded(environment string, result run.Result, took time.Duration)
	// HostEnded tells of a member that has come to its final status; class is empty
	// unless the host has told the class of its failure.
	HostEnded(environment string, member run.Host)
	// Answered tells how long a host took for its answer to a command.
	Answered(action message.Action, took time.Duration)
	// WindowMissed tells of a window that closed without a run.
	WindowMissed(environment string)
}

// observed is what is known of a run for the observer: when each command was sent that is
// not answered, and which members have been told of.
type observed struct {
	to          Observer
	environment string
	// watched returns the hosts that the roster watches.
	watched  func() []string
	prepared time.Time
	sent     map[string]time.Time
	ended    map[string]bool
}

func newObserved(to Observer, environment string, watched func() []string) *observed {
	return &observed{to: to, environment: environment, watched: watched, sent: map[string]time.Time{}, ended: map[string]bool{}}
}

// record tells the observer what a record has changed of a run.
func (o *observed) record(r *run.State, record message.Decoded, live bool) {
	if o.to == nil {
		return
	}
	switch {
	case record.Kind == message.CommandAll:
		o.prepared = record.Time
	case record.Kind == message.CommandHost:
		o.sent[record.Host] = record.Time
	case record.Kind == message.ReplyRecord && live:
		o.reply(record)
	}
	o.ends(r, record, live)
	if live && r.Over() && record.Seq == r.EndedSeq {
		o.to.RunEnded(o.environment, r.Result, r.EndedAt.Sub(r.OpenedAt))
	}
}

func (o *observed) reply(record message.Decoded) {
	sent := o.sent[record.Host]
	if record.Action == message.Prepare {
		sent = o.prepared
	}
	delete(o.sent, record.Host)
	if !sent.IsZero() {
		o.to.Answered(record.Action, max(0, record.Time.Sub(sent)))
	}
}

// ends tells of members that have come to their final status. The end of a run
// may end all that are left.
func (o *observed) ends(r *run.State, record message.Decoded, live bool) {
	ended := 0
	for _, status := range run.Statuses() {
		if status.Final() {
			ended += r.Count(status)
		}
	}
	if ended == len(o.ended) {
		return
	}
	names := record.Hosts()
	if record.Seq == r.OpenedSeq || record.Seq == r.EndedSeq {
		names = o.watched()
	}
	for _, name := range names {
		if o.ended[name] {
			continue
		}
		if member, found := r.Host(name); found && member.Status.Final() {
			if o.ended[name] = true; live {
				o.to.HostEnded(o.environment, member)
			}
		}
	}
}
