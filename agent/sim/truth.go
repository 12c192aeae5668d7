package sim

import (
	"encoding/json"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// truth is what a machine truly did, as a recorder outside of it sees it.
type truth struct {
	m *machine
	// prepares are the runs that it prepared, boots its boot at the time of
	// each upgrade, rebooted counts the reboots it was asked for, by run.
	prepares map[uint64]bool
	boots    map[uint64]int
	rebooted map[uint64]int
	// drained, busy and down are the runs for which it is out of service.
	drained, busy, down uint64
	journals            map[string]entry
}

// entry is what a worker's journal says.
type entry struct {
	Run    uint64         `json:"run"`
	Seq    uint64         `json:"seq"`
	Action message.Action `json:"action"`
	Phase  string         `json:"phase"`
	Asked  bool           `json:"asked"`
	Tenure uint64         `json:"tenure"`
	Away   bool           `json:"away"`
	Result string         `json:"result"`
}

func (b *book) enlist(m *machine) {
	b.hosts[m.name] = &truth{m: m, prepares: map[uint64]bool{}, boots: map[uint64]int{}, rebooted: map[uint64]int{}, journals: map[string]entry{}}
}

// prepared takes in that a machine was prepared.
func (b *book) prepared(host string, run uint64) {
	b.w.note("%s is prepared for run %d", host, run)
	b.w.count("machines prepared")
	b.hosts[host].prepares[run] = true
}

// upgrading takes in that the package manager begins. The journal must say so
// before.
func (b *book) upgrading(host, worker string, run uint64) {
	t := b.hosts[host]
	b.w.note("%s begins to upgrade for run %d", host, run)
	b.w.count("upgrades begun")
	if j := t.journals[worker]; j.Run != run || j.Phase != "upgrading" {
		b.w.violated("%s upgrades for run %d, and its journal says run %d, %s", host, run, j.Run, j.Phase)
	}
	if b.run != nil && b.run.id == run && !b.run.finished && b.run.members[host].upgrade == 0 {
		b.w.violated("%s upgrades for run %d, and was not told to", host, run)
	}
	t.busy = run
	b.outNow(host, run)
}

// upgraded takes in the effect of an upgrade (design.md 5, invariant 2).
func (b *book) upgraded(host string, run uint64) {
	t := b.hosts[host]
	b.w.note("%s is upgraded for run %d", host, run)
	b.w.count("machines upgraded")
	t.boots[run] = t.m.boot
	if t.m.installed[run] > 1 {
		b.w.violated("invariant 2: %s is upgraded twice for run %d", host, run)
	}
}

// rests takes in that the package manager has ended.
func (b *book) rests(host string) { b.hosts[host].busy = 0 }

// rebooting takes in that a reboot is asked for.
func (b *book) rebooting(host, worker string, run uint64) {
	t := b.hosts[host]
	b.w.note("%s is asked to reboot for run %d", host, run)
	b.w.count("reboots asked for")
	if j := t.journals[worker]; j.Phase != "rebooting" || !j.Asked {
		b.w.violated("%s reboots for run %d, and its journal says run %d, %s", host, run, j.Run, j.Phase)
	}
	if t.rebooted[run]++; t.rebooted[run] > 1 {
		b.w.violated("invariant 2: %s reboots twice for run %d", host, run)
	}
}

// goesDown takes in that a machine goes down for a reboot. One that comes after
// its worker has told that it did not comes as a surprise to all.
func (b *book) goesDown(host string, run uint64) {
	if p := b.run; p != nil && p.id == run && p.members[host] != nil && p.members[host].rebootSaid == "" {
		b.hosts[host].down = run
	}
}

// booted takes in that a machine is up again.
func (b *book) booted(host string) {
	b.w.count("boots")
	b.hosts[host].down = 0
}

func (b *book) drained(host string, run uint64) {
	b.w.note("%s is drained for run %d", host, run)
	if p := b.run; p == nil || p.id != run || p.policy.Hooks.Undrain == nil {
		return
	}
	b.hosts[host].drained = run
	b.outNow(host, run)
}

func (b *book) undrained(host string) {
	b.w.note("%s is undrained", host)
	b.hosts[host].drained = 0
}

// outNow checks that no more machines are truly out of service, for a run, than
// its stage allows (design.md 5, invariant 1).
func (b *book) outNow(host string, run uint64) {
	p := b.run
	if p == nil || p.finished || p.id != run || p.members[host] == nil || p.members[host].left {
		return
	}
	stage, out := p.members[host].stage, 0
	// A byzantine host is in service as it likes.
	for name, m := range p.members {
		t := b.hosts[name]
		if m.stage == stage && !m.left && !t.m.traits.byzantine && t.out(m, run) {
			out++
		}
	}
	if limit := p.policy.Stages[stage].MaxUnavailable; out > limit {
		b.w.violated("invariant 1: %d machines are truly out of service with %s, of at most %d", out, host, limit)
	}
}

// out reports whether a machine is truly out of service for a run. A drain that
// was given up may come to its end later than the undrain that was run for it.
func (t *truth) out(m *part, run uint64) bool {
	drained := t.drained == run && !m.gaveUp[string(message.Drain)]
	return drained || t.down == run || t.busy == run
}

// honest notes that a reply is that of a worker, not of a byzantine host.
func (b *book) honest(key replyKey) { b.trusted[key] = true }

// true checks that what a worker says is so (design.md 5, invariant 2).
func (b *book) true(r message.Record) {
	t, result := b.hosts[r.Host], resultOf(r)
	if !b.trusted[replyKey{r.Run, r.Action, r.Host}] || result != message.Done && result != message.RebootRequired {
		return
	}
	upgraded := t.m.installed[r.Run] == 1 && !t.m.undone[r.Run]
	switch {
	case r.Action == message.Prepare && t.prepares[r.Run]:
	case r.Action == message.Upgrade && upgraded && (result == message.RebootRequired || t.m.pending != r.Run):
	case r.Action == message.Reboot && upgraded && t.m.boot > t.boots[r.Run]:
	default:
		b.w.violated("invariant 2: %s answers %s to %s of run %d, and it is not so", r.Host, result, r.Action, r.Run)
	}
}

// journal takes in what a worker writes down, and returns the run (design.md 5,
// invariant 5).
func (b *book) journal(host, worker string, data []byte) uint64 {
	var file struct {
		Journal entry `json:"journal"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		b.w.violated("%s writes a journal that cannot be read: %v", worker, err)
		return 0
	}
	t, now := b.hosts[host], file.Journal
	before, known := t.journals[worker]
	t.journals[worker] = now
	b.w.count("journal: " + now.Phase)
	moved := known && now.Seq != before.Seq
	switch {
	case known && now.Seq < before.Seq:
		b.w.violated("invariant 5: %s goes back from command %d to %d", worker, before.Seq, now.Seq)
	case moved && before.Phase != "" && before.Phase != "answered" && now.Tenure == before.Tenure:
		b.w.violated("invariant 5: %s goes on from command %d, which is %s, to %d", worker, before.Seq, before.Phase, now.Seq)
	}
	if known && !moved && before.Phase == "answered" && now.Phase != "answered" && now.Tenure == before.Tenure {
		b.w.violated("invariant 5: %s takes up command %d again, which it has answered", worker, now.Seq)
	}
	key := replyKey{now.Run, now.Action, host}
	if known && now.Phase == "answered" && before.Phase != "answered" && !b.w.log.replies[key] && b.w.log.prepare == now.Run {
		b.w.violated("invariant 5: %s calls %s of run %d answered, and no reply is on the log", worker, now.Action, now.Run)
	}
	return now.Run
}

// forgets takes in that a journal is gone.
func (b *book) forgets(host, worker string) { delete(b.hosts[host].journals, worker) }

// close checks what must be so in the end.
func (b *book) close() {
	if under, _, _, _ := b.underWay(); under && !b.w.broken() {
		b.w.violated("invariant 7: a run is under way in the end: %s", b.story())
	}
}
