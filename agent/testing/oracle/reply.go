package oracle

import (
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// replyCounts reports whether a reply counts: it is the first answer to the host's
// last command (invariant 4). A host that never answered a command of an earlier run
// clears that debt by its answer to this run's prepare, even if that answer is too late
// for the run: a worker does one thing at a time.
func (p *run) replyCounts(r message.Decoded) bool {
	m := p.member(r.Host)
	if m == nil || r.Run != p.id {
		return false
	}
	return m.asked() != "" && m.asked() == r.Action || m.clearsOldDebt(r.Action)
}

// clearsOldDebt reports whether an answer to an action shows that the host has
// finished a command of an earlier run.
func (m *member) clearsOldDebt(a message.Action) bool {
	return a == message.Prepare && m.owesBefore() && !m.owes.look
}

// replyOf reads a reply. A reply that cannot be read is a failure: a host has only one
// answer.
func replyOf(r message.Decoded) message.Reply {
	if r.Reply == nil || r.Reply.Action != r.Action {
		return message.Reply{Action: r.Action, Result: message.NotDone(message.Failed, "", "cannot be read")}
	}
	return *r.Reply
}

// reply applies a reply that counts.
func (o *Oracle) reply(r message.Decoded) {
	p, m, reply := o.run, o.run.member(r.Host), replyOf(r)
	result := reply.Result.Outcome
	// Another worker was prepared: this worker does not know what the other did.
	unknown := r.Outcome == message.Unknown || r.Action != message.Prepare && r.Epoch != m.epoch
	if p.finished {
		m.lateAt, m.lateOwed, m.lateWorks = r.Seq, m.owes, m.works
		o.count("replies that come late")
	}
	asked := m.asked()
	m.rebootAnswered = m.rebootAnswered || asked == r.Action && asked == message.Reboot
	if m.clearsOldDebt(r.Action) {
		m.answered(unknown)
	}
	switch {
	case asked != r.Action:
	case m.phase == preparing:
		o.prepared(m, r, result == message.Done && !unknown)
	case m.phase != upgrading && m.phase != rebooting: // The run no longer waited for the answer.
		m.answered(unknown)
	case unknown:
		m.answered(true)
		o.fail(m, r.Seq, r.Time)
	case result == message.RebootRequired && r.Action == message.Upgrade && !p.needless(m.name):
		m.phase = rebootDue
	case result == message.Done || result == message.RebootRequired && r.Action == message.Upgrade:
		if len(p.policy.Checks.AfterHost) > 0 {
			m.phase = rechecking
			return
		}
		o.wellAgain(m, r.Time)
	default:
		o.fail(m, r.Seq, r.Time)
	}
}

// answered clears the answer that a host owes. If the answer is that the host does not
// know what it did, the host owes a look instead, unless it was released.
func (h *host) answered(unknown bool) {
	h.owes.look = h.owes.look || unknown && h.works == ""
	h.owes.answer, h.owes.answerOf, h.works = "", 0, ""
}

// prepared applies the answer to prepare.
func (o *Oracle) prepared(m *member, r message.Decoded, done bool) {
	if !done {
		o.unmet(m)
		o.fail(m, r.Seq, r.Time)
		return
	}
	if o.run.allPrepared {
		o.count("hosts that are late and join")
	}
	m.phase, m.prepared, m.epoch = prepared, true, r.Epoch
}
