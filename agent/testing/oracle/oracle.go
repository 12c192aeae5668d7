// Package oracle restates the invariants, which ARCHITECTURE.md explains under "What must
// always hold", and judges by them a log and the effects on machines. The simulation and
// the property tests of package run share the package.
//
// It is written from these sentences and uses nothing that decides in the
// product: neither package run nor package roster. It is slow and plain on
// purpose. The invariants, by their number:
//
//  1. In a stage no more hosts are out of service than its limit: mayTakeSlot in
//     invariants.go, by the records; outNow in machine.go, by what machines did.
//     (*host).out in host.go says in one line who is out of service.
//  2. A host executes upgrade and reboot at most once per run, and answers "done"
//     only when that is true: machine.go; by the records, checkCommand.
//  3. No command after not-after, after an abort, or before each member has answered
//     prepare, has timed out or is late: checkCommand and mayBegin in invariants.go,
//     patience.go. One host never costs the others their window: Due in patience.go.
//  4. A reply counts once, and only as the answer to the host's last command:
//     replyCounts in reply.go.
//  5. A host moves past a command only after the effect and the reply are on disk:
//     Journal in machine.go.
//  6. A configuration write names its revision: not here; package store tests it.
//  7. A run ends: UnderWay returns the deadline, and the caller waits. The conditions
//     at the end are checkFinished in invariants.go.
//  8. A window that opens while the site is up has its run, or a reason that is recorded:
//     WindowsTold in schedule.go. A window that somebody has skipped has none: notSkipped there. One
//     whose hosts all have the release of their environment needs none: needsNone in release.go.
//  9. No host leaves service, or is admitted, while a cell of a disruption budget that it is in
//     has no free place: budget.go recounts that from all hosts at each such record; outNow in
//     machine.go by what machines did; lock.go for hosts that reboot by themselves. Hosts that
//     fall silent and edits can exceed a limit.
//  10. A host is a member of one run under way at most, and gets commands of that run only:
//     mayOpen in environment.go; Prepared in machine.go.
//  11. A host is in the roster of one environment. A run of another environment takes it over
//     with all that it owes: compareDebts in host.go.
//  12. A run of an environment that comes after others follows completed runs of theirs: mayFollow in
//     order.go.
//  13. A step begins after all hosts before it are done, and ends before any host after it begins:
//     stepBegun and stepsAllow in step.go. It counts as done once, and only if it was done; only a
//     rollback undoes it: StepRuns there, by what was run.
//  14. Nothing of a run is touched whose start checks have not all passed: health.go.
//  15. A run goes on where the runs before it have ended: reached.go.
//  16. A host acts by the release with which its run was opened, and by no other; no run is opened
//     with a release that is withdrawn, and one under way asks no further host: release.go.
//  17. A rollback leaves each host at what it had before the runs that it rolls back, and there is none
//     after the point of no return: rollback.go.
//
// All of them hold for each environment by itself: the runs of environments go side by side,
// and the limit of a stage is that of its run. Only the cells are those of the tenant.
//
// The runs of environments are independent: none waits for another but for a place in a cell, and none
// ends because of another; see Startable in turns.go and checkFinished in invariants.go.
//
// Runs that share a cell take turns, so that none starves: between two turns of one of them no other
// was ready for the same place since before the first; see turns.go.
//
// Beside them it judges what each opening says of the release to which its environment goes: see
// promotion.go. And it judges the news: what happens to a run is told, once, and nothing else is;
// see news.go.
//
// A controller may decide before it has seen the newest replies: the log refuses an
// append only if the writer has not seen the last command or event. When a reply
// forbids something, one record of it may therefore follow the reply; see known.
package oracle

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// Oracle holds the state by the records of a log and the effects on machines. It is not
// safe for concurrent use.
type Oracle struct {
	violated func(format string, args ...any)
	count    func(what string)
	hosts    map[string]*host
	machines map[string]*machine
	// runs are the newest runs, by environment; see environment.go. run is that of the
	// record at hand, and environment its name; nil before the first.
	runs        map[string]*run
	run         *run
	environment string
	// asked is the environment of which In tells.
	asked string
	// named are the hosts that each prepare names.
	named map[uint64][]string
	// ended are the ids of the ended runs, oldest first.
	ended []uint64
	// checks tells of each run whether it checks its hosts after their upgrade; uncheckedRun
	// is the newest that does not.
	checks       map[uint64]bool
	uncheckedRun uint64
	// tasksRun are the steps and start checks that were run and how that came out; nil where nobody
	// tells.
	tasksRun map[message.Key]taskRun
	// gave are the outputs of the steps that were run; nil where nobody tells.
	gave map[message.Key][]map[string]string
	// seen is the last record, written the last command or event before it.
	seen, written uint64
	// knows and frozen are Sending.Knows and Sending.Frozen of the record at hand.
	knows  uint64
	frozen Frozen
	// gathering and skips are Sending.Gathering and Sending.Skips of the record at hand.
	gathering bool
	skips     []Opening
	// withdrawn is Sending.Withdrawn of the record at hand, pinned the release of each run.
	withdrawn []string
	pinned    map[uint64]string
	// grouped means that there are other environments than the default one.
	grouped bool
	// newest is the time of the last record, back the last one before which the clock was set back.
	newest time.Time
	back   back
	// Passed returns how much real time has passed since the last record: a clock
	// that is set back delays no deadline. Nil means none.
	Passed func() time.Duration
	// Opened returns the outputs of steps that the site has sealed. Nil where nobody sees any.
	Opened func(sealed string) map[string]string
	// Calm returns for how long nothing has failed any more. Nil means never.
	Calm     func() time.Duration
	schedule schedule
	orders   orders
	news     news
	// soFar is what the runs of each environment have done that the next one goes on from.
	soFar map[string]*soFar
	// goes is where each environment goes by its runs that have ended.
	goes map[string]*goes
	// done are, by environment, the runs that have done its steps last, changedBy those that have changed
	// each host, and rollsBack what each run rolls back.
	done      map[string]*doneBy
	changedBy map[string]uint64
	rollsBack map[uint64]message.Interval
	// upgraded are the ended runs that have upgraded a host, oldest first.
	upgraded []uint64
	// cells are those of the disruption budgets, and budgets identifies these.
	cells   map[message.CellKey]*cell
	budgets string
}

// New makes an oracle. It calls violated for each violation, and count for each kind of
// record and effect.
func New(violated func(format string, args ...any), count func(what string)) *Oracle {
	return &Oracle{
		violated: violated, count: count, checks: map[uint64]bool{}, pinned: map[uint64]string{}, runs: map[string]*run{}, named: map[uint64][]string{}, hosts: map[string]*host{}, machines: map[string]*machine{}, soFar: map[string]*soFar{}, goes: map[string]*goes{}, done: map[string]*doneBy{}, changedBy: map[string]uint64{}, rollsBack: map[uint64]message.Interval{}, cells: map[message.CellKey]*cell{}, schedule: newSchedule(),
		news: news{owed: map[matter]int{}, ids: map[matter][]string{}, waits: map[uint64]map[uint64]wait{}},
		// Who applies records alone says nothing of their sending: their writer knew all.
		knows: math.MaxUint64,
	}
}

// Sending is what is known of the sending of a record.
type Sending struct {
	// At is when its writer sent it, by the writer's own clock.
	At time.Time
	// Knows is the last record that its writer, a controller, had been given.
	Knows uint64
	// Frozen is the freeze that its writer had been given; zero for none.
	Frozen Frozen
	// Gathering means that its writer has started so lately that it may not know of all hosts yet
	// whether they are heard of.
	Gathering bool
	// Skips are the windows that its writer has known for a while to be skipped.
	Skips []Opening
	// Withdrawn are the releases that its writer has known for a while to be withdrawn, each by its
	// name and digest.
	Withdrawn []string
}

// Record judges the next record of the log and applies it, if it counts.
func (o *Oracle) Record(record message.Record, sending Sending) {
	r, sent := record.Decode(), sending.At
	o.knows, o.frozen, o.gathering, o.skips = sending.Knows, sending.Frozen, sending.Gathering, sending.Skips
	o.withdrawn = sending.Withdrawn
	o.turnTo(r)
	if r.Seq != o.seen+1 {
		o.violated("record %d follows record %d", r.Seq, o.seen)
	}
	o.countKind(r)
	o.waited()
	if r.Kind == message.ReplyRecord {
		o.replied(r)
	}
	switch {
	case !o.Counts(r):
		o.ignored(r, sent)
	case o.uncertain(r):
		if o.run.policy.OnFailure == rollout.Pause && o.run.perhapsPaused == 0 {
			o.run.perhapsPaused = r.Seq
		}
		o.Pass(r)
	default:
		if r.Command != nil && r.Checks != (len(o.run.policy.Checks.AfterHost) > 0) {
			o.violated("command %d says whether its run checks its hosts after their upgrade: %t, and the policy says otherwise", r.Seq, r.Checks)
		}
		o.Apply(r, sent)
		o.owes(r)
	}
	o.news.waits[r.Seq] = o.standings()
}

// uncertain reports whether a record is a failure of the fleet's checks that a reply
// has overtaken. The record does not count if the reply changed the fleet.
func (o *Oracle) uncertain(r message.Decoded) bool {
	ran, ok := r.Event.(message.Ran)
	return ok && o.raced() && ran.Outcome.Kind == message.Fleet && !ran.Outcome.OK
}

// Counts reports whether a record has an effect. A repeated reply, a late reply and the
// reply of a host without a command have none.
func (o *Oracle) Counts(r message.Decoded) bool {
	o.turnTo(r)
	switch e := r.Event.(type) {
	case message.Budgeted:
		return true
	case message.Locked:
		return o.lockCounts(e)
	case message.Unlocked:
		return o.host(e.Host).locked
	}
	under := o.run != nil && !o.run.finished
	switch {
	case r.Command != nil:
		return under && o.run.commandCounts(r, *r.Command)
	case r.Kind == message.ReplyRecord:
		return o.run != nil && o.run.replyCounts(r)
	case r.Event == nil:
		return false
	case under:
		return o.eventCounts(r, r.Event)
	}
	switch e := r.Event.(type) {
	case message.Opened:
		return o.mayOpen(e)
	case message.Missed, message.Carried:
		return true
	}
	return o.run != nil && o.countsAfter(r.Event)
}

// Apply judges a record that counts, and applies it.
func (o *Oracle) Apply(r message.Decoded, sent time.Time) {
	o.turnTo(r)
	if o.clock(r) {
		// The writer did not know that the clock was set back: the time of sending is
		// moved like all other times.
		sent = earlier(sent, r.Time)
	}
	defer o.saw(r)
	switch {
	case r.Command != nil:
		o.checkCommand(r, *r.Command, sent)
		o.command(r, *r.Command)
	case r.Event != nil:
		o.event(r, r.Event, sent)
	default:
		o.reply(r)
	}
	o.leaveOut(r.Time)
	o.notePatience(r.Time)
}

// leaveOut leaves out the members that have not answered a command of an earlier run,
// once all others have answered prepare: the run does not wait for them.
func (o *Oracle) leaveOut(at time.Time) {
	p := o.run
	if p == nil || p.finished || p.id == 0 || p.allPrepared || !p.allAnswered() {
		return
	}
	o.begins(at)
}

// begins notes that the run waits for no further answer to prepare before it begins.
func (o *Oracle) begins(at time.Time) {
	o.run.allPrepared = true
	for _, m := range o.run.members {
		if m.phase.before(prepared) && m.owesBefore() {
			o.count("members that are left out because they have not answered before")
			m.leftOut = true
			o.end(m, at)
		}
	}
}

// Pass notes a record that does not count: only its time has an effect.
func (o *Oracle) Pass(r message.Decoded) {
	o.clock(r)
	o.saw(r)
}

// ignored judges a record without effect. A reply may be one. A controller must not
// write one, unless a reply has overtaken it.
func (o *Oracle) ignored(r message.Decoded, sent time.Time) {
	defer o.Pass(r)
	switch {
	case r.Kind == message.ReplyRecord:
		o.count("replies without effect")
	case r.Event != nil && overtaken(r.Event) && o.raced():
		o.count("events that a reply has overtaken")
	case isOver(r):
		o.count("freezes that are over when they are written")
	case r.Event != nil && message.Name(r.Event) == message.Name(message.Frozen{}) && r.Time.Before(o.newest):
		o.count("freezes that begin after the end of a run whose clock was set back")
	case r.Command != nil:
		o.checkCommand(r, *r.Command, sent)
		o.violated("command %d has no effect: %s", r.Seq, r.Body)
	default:
		o.violated("record %d has no effect: %s %v", r.Seq, r.Body, r.Err)
	}
}

// overtaken reports whether an event may have no effect because of a reply that its
// writer had not seen.
func overtaken(e message.Event) bool {
	switch e.(type) {
	case message.Overdue, message.Late, message.Unprepared, message.Cancelled, message.Released, message.Recovered, message.Deleted, message.Ran, message.Paused, message.Frozen:
		return true
	}
	return false
}

// isOver reports whether a record is of a freeze that was over by the log's clock. The
// writer's clock may be behind, or the append may have taken long.
func isOver(r message.Decoded) bool {
	f, frozen := r.Event.(message.Frozen)
	return frozen && !r.Time.Before(f.Until)
}

// saw notes the last record.
func (o *Oracle) saw(r message.Decoded) {
	o.seen, o.newest = r.Seq, r.Time
	if r.Kind != message.ReplyRecord {
		o.written = r.Seq
	}
	o.noteReady(r.Seq, r.Time)
}

// known reports whether the writer of the next command or event knows a record:
// it has seen all records up to the last command or event.
func (o *Oracle) known(seq uint64) bool { return seq <= o.written }

// raced reports whether the log has replies after the last command or event.
func (o *Oracle) raced() bool { return o.seen > o.written }

// clock notes the time of a record. If that is before the time of the last record, the
// log's clock was set back: times that would now be in the future become the new time.
func (o *Oracle) clock(r message.Decoded) (setBack bool) {
	now, least := r.Time, o.least()
	if len(o.runs) == 0 || !now.Before(least) {
		return false
	}
	setBack = now.Before(o.newest)
	lag := min(least.Sub(now), least.Sub(o.newest))
	if !o.known(o.back.seq) {
		lag += o.back.lag
	}
	o.back = back{r.Seq, lag}
	if !setBack {
		return false
	}
	for _, p := range o.runs {
		o.setBack(p, now)
		for _, m := range p.members {
			m.readySince, m.tookAt = 0, earlier(m.tookAt, now)
		}
	}
	for _, of := range o.soFar {
		for stage, s := range of.soaks {
			of.soaks[stage] = s.setBack(o.least(), now)
		}
	}
	return true
}

// back is a record before which the log's clock was set back, perhaps by less than had passed since the
// record before it.
type back struct {
	seq uint64
	// lag is how much real time the record does not show: a controller that was not given it yet goes
	// by the record before it and all that has passed since.
	lag time.Duration
}

// setBack moves the times of a run that would be in the future now.
func (o *Oracle) setBack(p *run, now time.Time) {
	p.ends, p.overAt = now.Add(p.ends.Sub(o.newest)), now.Add(p.overAt.Sub(o.newest))
	for n := range p.stages {
		s := &p.stages[n]
		s.soaked = s.soaked || !s.doneAt.IsZero() && !o.least().Before(s.doneAt.Add(s.Soak.Duration()))
		s.doneAt, s.begunAt = earlier(s.doneAt, now), earlier(s.begunAt, now)
		s.approvedAt = earlier(s.approvedAt, now)
	}
	for n, s := range p.soaksBefore {
		p.soaksBefore[n] = s.setBack(o.least(), now)
	}
	p.patience.clock(o.least(), now)
	for _, m := range p.members {
		m.passedAt = earlier(m.passedAt, now)
	}
}

// least is the lower bound of the time by which a controller decides: the time of the
// last record plus the real time since then.
func (o *Oracle) least() time.Time {
	if o.Passed == nil {
		return o.newest
	}
	return o.newest.Add(o.Passed())
}

// Now is the time by which controllers decide at least.
func (o *Oracle) Now() time.Time { return o.least() }

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// countKind counts records by kind.
func (o *Oracle) countKind(r message.Decoded) {
	switch {
	case r.Command != nil:
		o.count("command " + string(r.Command.Action))
	case r.Event != nil:
		o.count("event " + message.Name(r.Event))
	case r.Kind == message.ReplyRecord:
		o.count("reply to " + string(r.Action))
	}
}

// Ended returns the id of a run that has ended, counted back from the newest; 0
// when there is none.
func (o *Oracle) Ended(back int) uint64 {
	if back >= len(o.ended) {
		return 0
	}
	return o.ended[len(o.ended)-1-back]
}

// Deadline is by when a run under way must have ended.
type Deadline struct {
	// Opened identifies the run: the sequence of its opening.
	Opened uint64
	// Over is when no host is begun any more.
	Over time.Time
	// Rest is how long the run may last after that, whatever its hosts do.
	Rest time.Duration
}

// UnderWay returns the deadline of the run under way, if there is one (invariant
// 7).
func (o *Oracle) UnderWay() (Deadline, bool) {
	p := o.runs[o.asked]
	if p == nil || p.finished {
		return Deadline{}, false
	}
	if p.atOnce {
		return Deadline{p.opened, p.overAt, 0}, true
	}
	return Deadline{p.opened, p.overAt, p.policy.OverrunLimit.Duration()}, true
}

// Close judges the end of a log: no run is under way.
func (o *Oracle) Close() {
	for _, environment := range o.Environments() {
		if in := o.In(environment); !in.runs[environment].finished {
			o.violated("invariant 7: a run is under way in the end: %s", in.Summary())
		}
	}
	if untold := o.Untold(); len(untold) > 0 {
		o.violated("news were never told: %s", strings.Join(untold, "; "))
	}
}

// Summary describes the newest run.
func (o *Oracle) Summary() string {
	p := o.runs[o.asked]
	if p == nil {
		return "no run"
	}
	var hosts []string
	for _, m := range p.members {
		hosts = append(hosts, fmt.Sprintf("%s is %s, owes %+v, silent %t", m.name, m.phase, m.owes, m.silent))
	}
	return fmt.Sprintf("run %d until %s, paused %t, halted %t, aborted %t: %s", p.id, p.notAfter, p.paused != 0, p.halted != 0, p.aborted, strings.Join(hosts, "; "))
}

// Run returns the id of the newest run; 0 before its prepare.
func (o *Oracle) Run() uint64 { return o.runs[o.asked].id }

// Members returns the members of the newest run, in their order.
func (o *Oracle) Members() []string {
	var names []string
	for _, m := range o.runs[o.asked].members {
		names = append(names, m.name)
	}
	return names
}

// Asked returns the command that a member has yet to answer; empty for none.
func (o *Oracle) Asked(name string) message.Action { return o.runs[o.asked].member(name).asked() }

// Out reports whether a host is out of service.
func (o *Oracle) Out(name string) bool { return o.hosts[name] != nil && o.hosts[name].out() }

// OutOfStage returns how many hosts of a stage are out of service, members or not.
func (o *Oracle) OutOfStage(n int) int {
	out := 0
	for _, h := range o.runs[o.asked].stages[n].hosts {
		if h.out() {
			out++
		}
	}
	return out
}

// Finished reports whether the newest run has ended.
func (o *Oracle) Finished() bool { return o.runs[o.asked].finished }

func has[T comparable](all []T, one T) bool { return slices.Contains(all, one) }
