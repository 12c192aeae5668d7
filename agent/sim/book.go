package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// book keeps account of the log and of what the machines truly did, on its
// own: it uses nothing of package run. The world's lock guards it.
type book struct {
	w *World
	// run is the newest one; nil before the first.
	run *pass
	// over are the ids of the ended runs, oldest first.
	over  []uint64
	hosts map[string]*truth
	// trusted are the replies that an honest worker sent.
	trusted map[replyKey]bool
	// forced are the hosts that somebody released or deleted, without a look at
	// what they do.
	forced map[string]bool
	// unwell are the hosts that were not well when a run ended, nor since.
	unwell map[string]unwell
	seen   uint64
}

func newBook(w *World) *book {
	return &book{w: w, hosts: map[string]*truth{}, trusted: map[replyKey]bool{}, unwell: map[string]unwell{}, forced: map[string]bool{}}
}

// pass is what the log says of one run.
type pass struct {
	// id is the sequence of its prepare, 0 before it, seq that of its opening.
	id, seq                            uint64
	opened                             message.Event
	policy                             message.Policy
	notAfter                           time.Time
	members                            map[string]*part
	order                              []string
	asides                             map[string]*aside
	approved                           map[string]bool
	paused, aborted, finished, fleetOK bool
	// failed counts the hosts that said so since somebody resumed the run,
	// stopped is since when no further host may begin because of that, forGood
	// whether it stays so.
	failed  int
	stopped time.Time
	forGood bool
}

// part is what the log says of one member.
type part struct {
	host  string
	stage int
	// answered tells that nobody waits for its answer to prepare, prepared that
	// it was "done".
	answered, prepared bool
	silent, left       bool
	// upgrade and reboot are the commands to it, 0 for none, and what it
	// answered to them after they were sent.
	upgrade, reboot         uint64
	upgradeSaid, rebootSaid string
	// gaveUp are the commands and tasks that are waited for no longer.
	gaveUp map[string]bool
	// slot tells that it was given one, begun that it had its turn.
	slot, begun, failed bool
	// replied tells that its answer to prepare came, holds that the run was
	// opened with it out of service, before what it lacks since.
	replied, holds bool
	before         unwell
	// lost tells that it answered that it does not know what it did.
	lost bool
	// ran are the outcomes of its tasks, tried which had any.
	ran, tried map[message.TaskKind]bool
}

// record takes in a record of the log and checks it. sent is when its writer
// sent it, by its own clock.
func (b *book) record(r message.Record, sent time.Time) {
	if r.Seq != b.seen+1 {
		b.w.violated("the simulation itself failed: record %d follows %d", r.Seq, b.seen)
	}
	b.seen = r.Seq
	switch r.Kind {
	case message.CommandAll, message.CommandHost:
		command, err := message.DecodeCommand(r.Body)
		if err != nil {
			b.w.violated("command %d cannot be read: %v", r.Seq, err)
			return
		}
		b.w.count("command " + string(command.Action))
		b.command(r, command, sent)
	case message.ReplyRecord:
		b.w.count("reply to " + string(r.Action))
		b.reply(r)
	case message.EventRecord:
		e, err := message.DecodeEvent(r.Body)
		if err != nil {
			b.w.violated("event %d cannot be read: %v", r.Seq, err)
			return
		}
		b.w.count("event " + e.Event)
		b.event(r, e, sent)
	}
}

func (b *book) event(r message.Record, e message.Event, sent time.Time) {
	if e.Event == message.Opened {
		b.open(r, e)
		return
	}
	if e.Event == message.Released || e.Event == message.Recovered && e.Reason == message.Deleted {
		for _, host := range e.Hosts {
			b.forced[host] = true
		}
	}
	p := b.run
	if p == nil || p.finished {
		b.rest(r, e)
		return
	}
	for _, host := range e.Hosts {
		if p.members[host] == nil && !b.outside(p, e, host) {
			b.w.violated("event %d, %s, is of %s, which is no member", r.Seq, e.Event, host)
			return
		}
	}
	switch e.Event {
	case message.Turn, message.Slot:
		b.begins(r, p.members[e.Hosts[0]], e.Event == message.Slot, sent)
	case message.Ran:
		b.ran(p, *e.Outcome)
	case message.Approved:
		p.approved[e.Stage] = true
	case message.Paused:
		p.paused = true
	case message.Resumed:
		p.paused, p.failed = false, 0
		if !p.forGood {
			p.stopped = time.Time{}
		}
	case message.Aborted:
		p.aborted = true
	case message.Finished:
		b.finish(p, e)
	default:
		p.hosts(e)
	}
}

// hosts takes in what an event says of hosts.
func (p *pass) hosts(e message.Event) {
	for _, host := range e.Hosts {
		m := p.members[host]
		switch {
		case m == nil: // It is aside.
		case e.Event == message.Silent:
			m.silent = true
		case e.Event == message.Recovered && e.Reason == message.Heard:
			m.silent = false
		case e.Event == message.Released && m.holds && m.replied && !p.out(m):
			// Whoever released it had not seen that it had answered and was well.
		case e.Event == message.Recovered, e.Event == message.Released:
			m.left, m.answered = true, true
		case e.Event == message.GaveUp && !m.said(e.Action):
			m.gaveUp[string(e.Action)+string(e.Task)] = true
			m.tried[e.Task] = true
			m.answered = m.answered || e.Action == message.Prepare
		}
	}
}

// said reports whether a host has answered: a reply may come to the log just
// before the event that gives it up, whose writer had not seen it.
func (m *part) said(a message.Action) bool {
	return a == message.Prepare && m.answered || a == message.Upgrade && m.upgradeSaid != "" || a == message.Reboot && m.rebootSaid != ""
}

func (b *book) open(r message.Record, e message.Event) {
	if b.run != nil && !b.run.finished {
		b.w.violated("run %d is opened while run %d is under way", r.Seq, b.run.id)
	}
	if e.Policy == nil {
		b.w.violated("run %d is opened without a policy", r.Seq)
		return
	}
	p := &pass{seq: r.Seq, opened: e, policy: *e.Policy, notAfter: *e.NotAfter, members: map[string]*part{}, order: e.Hosts, asides: map[string]*aside{}, approved: map[string]bool{}, paused: e.Policy.Paused}
	at := 0
	for n, s := range p.policy.Stages {
		for _, host := range e.Hosts[at : at+s.Size] {
			p.members[host] = &part{
				host: host, stage: n, silent: slices.Contains(e.Silent, host), gaveUp: map[string]bool{},
				ran: map[message.TaskKind]bool{}, tried: map[message.TaskKind]bool{},
			}
		}
		for _, host := range s.Aside {
			p.asides[host] = &aside{stage: n, silent: slices.Contains(e.Silent, host)}
		}
		at += s.Size
	}
	b.run = p
	b.inherit(p)
	b.w.count("runs opened by " + e.Trigger)
	if e.RetryOf != 0 {
		b.w.count("runs that retry")
	}
}

// reply takes in an answer, if it is the first one to a command that was sent
// before it.
func (b *book) reply(r message.Record) {
	b.true(r)
	p := b.run
	if p == nil || p.finished || r.Run != p.id {
		b.w.count("replies that come late")
		if p != nil && p.finished && r.Run == p.id {
			b.afterwards(p, r)
		}
		return
	}
	m := p.members[r.Host]
	if m == nil {
		b.w.count("replies of hosts that are not asked")
		return
	}
	result := resultOf(r)
	if r.Action == message.Prepare && m.before.answer {
		m.before.unknown = m.before.unknown || lost(result)
		m.replied = m.replied || !lost(result)
	}
	switch {
	case r.Action == message.Prepare && !m.answered:
		m.answered, m.prepared = true, result == message.Done
		b.judge(p, m, result == message.Done)
	case r.Action == message.Upgrade && m.upgrade != 0 && m.upgradeSaid == "" && m.reboot == 0:
		m.upgradeSaid, m.lost = result, lost(result)
		b.judge(p, m, result == message.Done || result == message.RebootRequired || m.gaveUp[string(message.Upgrade)])
	case r.Action == message.Reboot && m.reboot != 0 && m.rebootSaid == "":
		m.rebootSaid, m.lost = result, lost(result)
		b.judge(p, m, result == message.Done || m.gaveUp[string(message.Reboot)])
	default:
		b.w.count("replies that are not asked for")
	}
}

// judge counts a host that says that it failed.
func (b *book) judge(p *pass, m *part, well bool) {
	if well || m.left || m.failed {
		return
	}
	m.failed = true
	p.failed++
	if p.failed >= p.policy.MaxFailures && p.policy.OnFailure != message.Continue && p.stopped.IsZero() {
		p.stopped, p.forGood = time.Now(), p.policy.OnFailure == message.Stop
	}
}

// resultOf is what a reply says; what cannot be read is a failure.
func resultOf(r message.Record) string {
	reply, err := message.DecodeReply(r.Body)
	if err != nil || reply.Action != r.Action {
		return "cannot be read"
	}
	return reply.Result
}

func (b *book) ran(p *pass, o message.Outcome) {
	b.w.count(fmt.Sprintf("outcome of %s: %v", o.Kind, o.OK))
	if o.Kind == message.Fleet {
		p.fleetOK = p.fleetOK || o.OK
		return
	}
	m := p.members[o.Host]
	if m == nil {
		b.w.violated("an outcome of %s, which is no member, is on the log", o.Host)
		return
	}
	m.tried[o.Kind] = true
	m.ran[o.Kind] = m.ran[o.Kind] || o.OK
}

func (b *book) finish(p *pass, e message.Event) {
	p.finished = true
	b.leave(p)
	b.w.count("result " + e.Result)
	if p.id != 0 {
		b.over = append(b.over, p.id)
	}
	for _, host := range p.order {
		if m := p.members[host]; m.slot && p.policy.Hooks.Undrain != nil && !m.left && !m.tried[message.Undrain] {
			b.w.violated("run %d ends, and %s was drained and never undrained", p.id, host)
		}
	}
}

// ended returns a run that has ended, counted from the newest; 0 when there is
// none.
func (b *book) ended(back int) uint64 {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	if back >= len(b.over) {
		return 0
	}
	return b.over[len(b.over)-1-back]
}

// underWay tells whether a run is, which, until when, and how long it may last
// after that: what is under way is waited for, and then put back into service.
func (b *book) underWay() (under bool, opened uint64, notAfter time.Time, rest time.Duration) {
	p := b.run
	if p == nil || p.finished {
		return false, 0, time.Time{}, 0
	}
	times := p.policy.Timeouts
	rest = time.Duration(times.Prepare + times.Upgrade + times.Reboot)
	rest += message.Task{Checks: p.policy.Checks.AfterHost}.Limit() + 2*message.Task{Hook: p.policy.Hooks.Undrain}.Limit() + message.Task{Hook: p.policy.Hooks.Drain}.Limit()
	return true, p.seq, p.notAfter, rest
}

// story says in words where the run stands.
func (b *book) story() string {
	p := b.run
	var hosts []string
	for _, host := range p.order {
		hosts = append(hosts, fmt.Sprintf("%+v", *p.members[host]))
	}
	return fmt.Sprintf("run %d until %s, paused %v, stopped %v, aborted %v: %s", p.id, p.notAfter, p.paused, !p.stopped.IsZero(), p.aborted, strings.Join(hosts, " "))
}
