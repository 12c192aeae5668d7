package oracle

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// machine is the ground truth of a host: what an observer outside of the host saw.
type machine struct {
	// byzantine means that the host has no worker and sends arbitrary messages.
	byzantine bool
	// readsNone means that its workers carry out no release.
	readsNone bool
	// has are the releases that it had once, by name and digest.
	has map[string]bool
	// boot counts the machine's boots; bootAt is the boot in which each upgrade
	// happened, by run.
	boot   int
	bootAt map[uint64]int
	// blind is the boot in which a worker could not find out which system has started.
	blind int
	// unchecked are the runs that have installed a system since checks after an upgrade have
	// passed on the machine.
	unchecked map[uint64]bool
	// prepared are the runs for which the machine prepared, installed counts upgrades
	// by run, undone are the runs that it rolled back, and pending is the run whose
	// upgrade needs a reboot.
	prepared  map[uint64]bool
	installed map[uint64]int
	undone    map[uint64]bool
	pending   uint64
	// asked are the calls to reboot, by run; rebooted counts how often the machine went
	// down for a run.
	asked    map[uint64]calls
	rebooted map[uint64]int
	// installs are what it had before each run that has changed it, in their order.
	installs []install
	// isBack are the rollbacks that have found nothing to roll back.
	isBack map[uint64]bool
	// askedBack and wentBack are the same for the reboots that a rollback required.
	askedBack map[uint64]calls
	wentBack  map[uint64]int
	// drained, busy and down are the runs for which the machine is out of service:
	// it is drained, its package manager runs, or it is down for a reboot.
	drained, busy, down uint64
	// journals are the last journals of the machine's workers, by worker.
	journals map[string]journal
	// name is the name of the machine, host that of its host; a clone is the same host as
	// its original.
	name, host string
	// clone is another machine that is the same host; nil if there is none. removed
	// means that nobody starts the machine any more.
	clone   *machine
	removed bool
	// replied are the answers on the log; sent are those that workers have sent. The
	// answers of a clone are those of its host.
	replied map[answer]bool
	sent    map[answer][]sending
}

// answer identifies a command that a host may answer once.
type answer struct {
	run    uint64
	action message.Action
}

// sending is an answer that the worker of a machine has sent, and whether it was true then.
type sending struct {
	machine, result string
	honest          bool
}

// calls are the calls to reboot a machine for one run: their number, and the boot of
// the first.
type calls struct{ number, boot int }

// journal is what the oracle reads of a worker's journal.
type journal struct {
	Run    uint64         `json:"run"`
	Seq    uint64         `json:"seq"`
	Action message.Action `json:"action"`
	Phase  string         `json:"phase"`
	Reboot string         `json:"reboot"`
	Back   string         `json:"back"`
	Epoch  uint64         `json:"epoch"`
	Away   bool           `json:"away"`
	Result message.Result `json:"result"`
	Retry  struct {
		Resume bool `json:"resume"`
	} `json:"retry"`
}

// Enlist adds a machine. A byzantine one has no worker.
func (o *Oracle) Enlist(name string, byzantine bool) {
	o.machines[name] = &machine{
		byzantine: byzantine, boot: 1, bootAt: map[uint64]int{}, has: map[string]bool{}, unchecked: map[uint64]bool{}, prepared: map[uint64]bool{}, installed: map[uint64]int{}, undone: map[uint64]bool{}, isBack: map[uint64]bool{},
		asked: map[uint64]calls{}, rebooted: map[uint64]int{}, askedBack: map[uint64]calls{}, wentBack: map[uint64]int{}, journals: map[string]journal{}, name: name, host: name, replied: map[answer]bool{}, sent: map[answer][]sending{},
	}
}

// Clone adds a machine that is a clone of another machine, and so the same host. It
// has the history of the original until now, and has booted since. worker is its
// worker, a clone of the original's worker.
func (o *Oracle) Clone(name, of, worker, ofWorker string) {
	t := o.machines[of]
	c := *t
	c.name, c.clone, c.host, c.boot, c.pending, c.drained, c.busy, c.down = name, nil, of, t.boot+1, 0, 0, 0, 0
	c.unchecked, c.isBack = maps.Clone(t.unchecked), maps.Clone(t.isBack)
	c.bootAt, c.prepared, c.installed, c.undone, c.rebooted = maps.Clone(t.bootAt), maps.Clone(t.prepared), maps.Clone(t.installed), maps.Clone(t.undone), maps.Clone(t.rebooted)
	c.asked, c.askedBack, c.wentBack = maps.Clone(t.asked), maps.Clone(t.askedBack), maps.Clone(t.wentBack)
	c.journals, c.replied, c.sent = map[string]journal{}, nil, nil
	if j, known := t.journals[ofWorker]; known {
		c.journals[worker] = j
	}
	o.machines[name] = &c
	t.clone = &c
}

// Remove notes that a machine is removed for good.
func (o *Oracle) Remove(name string) { o.machines[name].removed = true }

// Prepared notes that a machine is prepared for a run, with a release by its name and digest, or with
// none.
func (o *Oracle) Prepared(host string, run uint64, release string) {
	o.count("machines prepared")
	o.installs("prepares for", host, run, release)
	t := o.machines[host]
	if named, known := o.named[run]; known && !has(named, t.host) {
		o.violated("invariant 10: %s prepares for run %d, which does not name it", host, run)
	}
	t.prepared[run] = true
}

// UpgradeBegins judges the start of the package manager: the journal was written
// before, the host has the command, and no other upgrade is under way. An operator who
// releases or deletes a host vouches for the last.
func (o *Oracle) UpgradeBegins(host, worker string, run uint64, release string) {
	o.installs("upgrades for", host, run, release)
	o.count("upgrades begun")
	t := o.machines[host]
	if j := t.journals[worker]; j.Run != run || j.Phase != "upgrading" {
		o.violated("invariant 5: %s upgrades for run %d, and its journal says run %d, %s", host, run, j.Run, j.Phase)
	}
	if m := o.memberOf(t.host, run); m != nil && m.upgrade == 0 {
		o.violated("invariant 3: %s upgrades for run %d, and was not told to", host, run)
	}
	if t.busy != 0 && !o.host(t.host).forced {
		o.violated("%s upgrades for run %d, and its upgrade for run %d is at work", host, run, t.busy)
	}
	t.busy = run
	o.outNow(t.host, run)
}

// Installed judges the effect of an upgrade (invariant 2).
func (o *Oracle) Installed(host string, run uint64, needsReboot bool) {
	o.count("machines upgraded")
	t := o.machines[host]
	t.bootAt[run] = t.boot
	if needsReboot {
		t.pending = run
	}
	if pinned := o.pinned[run]; pinned != "" {
		t.has[pinned] = true
	}
	if t.installed[run]++; t.installed[run] > 1 {
		o.violated("invariant 2: %s is upgraded twice for run %d", host, run)
	}
}

// UpgradeEnds notes that the package manager has ended.
func (o *Oracle) UpgradeEnds(host string) { o.machines[host].busy = 0 }

// RolledBack notes that a machine has undone its upgrade: by its strategy, or by itself
// because the new system did not start.
func (o *Oracle) RolledBack(host string, run uint64) {
	o.count("upgrades rolled back")
	t := o.machines[host]
	t.undone[run] = true
	if t.pending == run {
		t.pending = 0
	}
}

// Unchecked notes that a run has installed a new system, which no checks have seen.
func (o *Oracle) Unchecked(host string, run uint64) { o.machines[host].unchecked[run] = true }

// ChecksPassed notes that the checks after an upgrade have passed on a machine: the site
// counts it as in service, whatever it starts next of what is installed.
func (o *Oracle) ChecksPassed(host string) { clear(o.machines[host].unchecked) }

// Confirmed judges that the worker of a machine marks a new system as good, which a run has
// installed: if that run checks its hosts after their upgrade, such checks have passed since,
// or a later run has none.
func (o *Oracle) Confirmed(host string, run uint64) {
	switch {
	case !o.checks[run]:
		o.count("new systems confirmed without checks")
	case !o.machines[host].unchecked[run]:
		o.count("new systems confirmed after their checks")
	case o.uncheckedRun > run:
		o.count("new systems confirmed because a later run has no checks")
	default:
		o.violated("%s confirms the system that run %d has installed, and its checks have not passed", host, run)
	}
}

// ChecksHosts reports whether a run checks its hosts after their upgrade.
func (o *Oracle) ChecksHosts(run uint64) bool { return o.checks[run] }

// SaidDone reports whether the last that the worker of a machine has answered, or answers, is
// that it is upgraded in a run.
func (o *Oracle) SaidDone(host, worker string, run uint64) bool {
	j := o.machines[host].journals[worker]
	return j.Run == run && j.Action != message.Prepare && j.Result.Outcome == message.Done
}

// Blind notes that a worker cannot find out which system has started on a machine.
func (o *Oracle) Blind(host string) { t := o.machines[host]; t.blind = t.boot }

// RebootAsked judges that a worker asks for a reboot: the journal was written before
// (invariant 5). A worker that was killed before it could know whether the machine
// has accepted asks once more, in the same boot. It returns the reboot for GoesDown: one
// for the upgrade and one to roll it back are counted apart.
func (o *Oracle) RebootAsked(host, worker string, run uint64) Reboot {
	o.count("reboots asked for")
	t := o.machines[host]
	j := t.journals[worker]
	all := t.asked
	if j.Back != "" {
		o.count("reboots asked for to roll back")
		all = t.askedBack
	}
	asked := all[run]
	if j.Phase != "rebooting" || j.Reboot != "asked" && j.Reboot != "asked-again" {
		o.violated("invariant 5: %s reboots for run %d, and its journal says run %d, %s %s", host, run, j.Run, j.Phase, j.Reboot)
	}
	if j.Reboot == "asked-again" {
		o.count("reboots asked for again")
	}
	if asked.number == 0 {
		asked.boot = t.boot
	}
	if asked.number++; asked.number > 2 || asked.number == 2 && j.Reboot != "asked-again" || asked.boot != t.boot {
		o.violated("invariant 2: %s is asked to reboot for run %d, call %d, in boot %d after boot %d", host, run, asked.number, t.boot, asked.boot)
	}
	all[run] = asked
	return Reboot{run: run, action: j.Action, back: j.Back != ""}
}

// Reboot is a reboot that a worker has asked for.
type Reboot struct {
	run    uint64
	action message.Action
	// back means that it is to roll an upgrade back.
	back bool
}

// GoesDown judges that a machine goes down for a reboot, once per run for the upgrade and
// once to roll it back (invariant 2). If the worker has answered already, a late reboot
// does not count as out of service.
func (o *Oracle) GoesDown(host string, r Reboot) {
	t := o.machines[host]
	all := t.rebooted
	if r.back {
		all = t.wentBack
	}
	if all[r.run]++; all[r.run] > 1 {
		o.violated("invariant 2: %s reboots twice for run %d, to roll back: %t", host, r.run, r.back)
	}
	m := o.memberOf(t.host, r.run)
	answered := m == nil || m.rebootAnswered || r.back && o.machines[t.host].replied[answer{r.run, r.action}]
	if !answered {
		t.down = r.run
	}
}

// Booted notes that a machine has booted.
func (o *Oracle) Booted(host string) {
	o.count("boots")
	t := o.machines[host]
	t.boot++
	t.down, t.pending = 0, 0
}

// Drained notes the effect of a drain hook. Without an undrain hook in its policy, a run
// does not count the host as drained.
func (o *Oracle) Drained(host string, run uint64) {
	t := o.machines[host]
	if m := o.memberOf(t.host, run); m == nil || m.run.policy.Hooks.Undrain == nil {
		return
	}
	t.drained = run
	o.outNow(t.host, run)
}

// Undrained notes the effect of an undrain hook.
func (o *Oracle) Undrained(host string) { o.machines[host].drained = 0 }

// memberOf returns a host's part in a run that is under way; nil when the host is no
// member.
func (o *Oracle) memberOf(host string, run uint64) *member {
	p := o.byID(run)
	if p == nil || p.finished {
		return nil
	}
	return p.member(host)
}

// outNow judges that no more machines are out of service for a run than their stage
// allows (invariant 1), whatever the log says. Byzantine hosts do not count. A host
// with a clone is in service by either machine: nobody promises that a machine is in
// service when its clone has answered for it.
func (o *Oracle) outNow(host string, run uint64) {
	m := o.memberOf(host, run)
	if m == nil || m.removed {
		return
	}
	out, limit := 0, m.run.stages[m.stage].MaxUnavailable
	for _, other := range m.run.members {
		if t := o.machines[other.name]; other.stage == m.stage && !other.removed && !t.byzantine && t.hostOut(other) {
			out++
		}
	}
	if out > limit {
		o.violated("invariant 1: %d machines are out of service with %s, of at most %d", out, host, limit)
	}
	o.outOfCellsNow(m)
}

// outOfCellsNow judges the same of the cells of a member (invariant 9), but for members that were
// out of service already, by the log, when the run took them. After a limit was lowered a machine may
// carry out what its host was told before that.
func (o *Oracle) outOfCellsNow(m *member) {
	if m.outlastsLimit || m.hadPlace {
		return
	}
	for _, c := range o.cellsOf(m.name) {
		out := 0
		for name := range c.hosts {
			other, t := o.host(name).member, o.machines[name]
			if other != nil && !other.hadPlace && !other.removed && !t.byzantine && t.hostOut(other) {
				out++
			}
		}
		if out > c.limit {
			o.violated("invariant 9: %d machines of %s are out of service with %s, of at most %d", out, c.name, m.name, c.limit)
		}
	}
}

// hostOut reports whether a host is out of service for a run: each of its machines is.
func (t *machine) hostOut(m *member) bool {
	c := t.clone
	switch {
	case c == nil:
		return t.out(m) && !t.removed
	case c.removed:
		return t.out(m) && !t.removed && !t.answered(c, m.run.id)
	case t.removed:
		return c.out(m) && !t.answered(t, m.run.id)
	}
	return t.out(m) && c.out(m)
}

// answered reports whether the worker of one of the machines of a host has answered a
// command of a run that takes it out of service.
func (t *machine) answered(one *machine, run uint64) bool {
	by := func(s sending) bool { return s.machine == one.name }
	return slices.ContainsFunc(t.sent[answer{run, message.Upgrade}], by) || slices.ContainsFunc(t.sent[answer{run, message.Reboot}], by)
}

// out reports whether a machine is out of service for a run. A drain that has timed out
// may end later than the undrain after it.
func (t *machine) out(m *member) bool {
	id := m.run.id // 0 before the prepare of the run, when it has nobody do anything.
	return id != 0 && (t.drained == id && !m.drainGivenUp || t.down == id || t.busy == id)
}

// Sent notes that a worker, not a byzantine host, sends an answer from a machine, and whether
// it is true.
func (o *Oracle) Sent(host, machine string, run uint64, reply message.Reply) {
	all, key := o.machines[host].sent, answer{run, reply.Action}
	this := sending{machine, reply.Result.String(), o.machines[machine].did(run, reply)}
	if !has(all[key], this) {
		all[key] = append(all[key], this)
	}
}

// did reports whether a machine did what an answer says; it may say that it failed.
func (t *machine) did(run uint64, reply message.Reply) bool {
	upgraded := t.installed[run] == 1 && !t.undone[run]
	switch {
	case reply.Result.Outcome != message.Done && reply.Result.Outcome != message.RebootRequired:
		return true
	case reply.Action == message.Upgrade && t.isBack[run]:
		return reply.Result.Outcome == message.Done && t.installed[run] == 0
	case reply.Action != message.Prepare && t.blind == t.boot:
		return t.installed[run] == 1 // That the machine went back is known to nobody yet.
	case reply.Action == message.Prepare:
		return t.prepared[run]
	case reply.Action == message.Upgrade:
		return upgraded && (reply.Result.Outcome == message.RebootRequired || t.pending != run)
	}
	return upgraded && t.boot > t.bootAt[run]
}

// replied judges that the answer of a worker was true when it was sent (invariant 2): it may
// come to the log after the machine has gone back by itself. An answer that leaves open what
// was done is not among those sent.
func (o *Oracle) replied(r message.Decoded) {
	t, key, result := o.machines[r.Host], answer{r.Run, r.Action}, replyOf(r).Result.String()
	if t == nil {
		return
	}
	t.replied[key] = true
	if sent := t.sent[key]; r.Outcome != message.Unknown && len(sent) > 0 && !slices.ContainsFunc(sent, func(s sending) bool { return s.result == result && s.honest }) {
		o.violated("invariant 2: %s answers %s to %s of run %d, and that was not true when it was sent: %+v", r.Host, result, r.Action, r.Run, sent)
	}
}

// Journal judges a journal that a worker writes, and returns its run (invariant 5). A
// worker that gets the lease back after another worker may write a new journal.
func (o *Oracle) Journal(host, worker string, data []byte) uint64 {
	var file struct {
		Journal journal `json:"journal"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		o.violated("%s writes a journal that cannot be read: %v", worker, err)
		return 0
	}
	t, now := o.machines[host], file.Journal
	was, known := t.journals[worker]
	t.journals[worker] = now
	o.count("journal: " + now.Phase)
	moved, same := known && now.Seq != was.Seq, now.Epoch == was.Epoch && !was.Away
	switch {
	case !known:
	case now.Seq < was.Seq:
		o.violated("invariant 5: %s goes back from command %d to %d", worker, was.Seq, now.Seq)
	case moved && was.Phase != "" && was.Phase != "answered" && same:
		o.violated("invariant 5: %s goes on from command %d, which is %s, to %d", worker, was.Seq, was.Phase, now.Seq)
	case !moved && was.Phase == "answered" && now.Phase != "answered" && same:
		o.violated("invariant 5: %s takes up command %d again, which it has answered", worker, now.Seq)
	case now.Phase == "answered" && was.Phase != "answered" && o.hears(t.host, now.Run) && !o.machines[t.host].replied[answer{now.Run, now.Action}]:
		o.violated("invariant 5: %s calls %s of run %d answered, and no reply is on the log", worker, now.Action, now.Run)
	}
	return now.Run
}

// hears reports whether a reply of a host to a run is taken: it is the newest one of an environment,
// and no run of another one has named the host since.
func (o *Oracle) hears(host string, run uint64) bool {
	p, h := o.byID(run), o.hosts[host]
	return p != nil && (h == nil || !h.homed || o.runs[h.home] == p)
}

// TakesUp reports whether a worker takes up, by its journal, what an earlier call may have begun.
func (o *Oracle) TakesUp(host, worker string) bool {
	return o.machines[host].journals[worker].Retry.Resume
}

// JournalLost notes that a worker's journal is gone.
func (o *Oracle) JournalLost(host, worker string) { delete(o.machines[host].journals, worker) }
