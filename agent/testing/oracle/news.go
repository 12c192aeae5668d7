package oracle

import (
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// The types of news that are judged.
const (
	newsOpened    = "run.opened"
	newsStage     = "stage.done"
	newsFailed    = "host.failed"
	newsBlocked   = "run.blocked"
	newsOverdue   = "run.overdue"
	newsWaiting   = "run.waiting"
	newsDiffering = "run.differing"
	newsFinished  = "run.finished"
	newsMissed    = "window.missed"
	newsUpToDate  = "window.up-to-date"
	newsSkipped   = "window.skipped"
)

// What a run waits for in news of type run.waiting.
const (
	waitResume   = "resume"
	waitApproval = "approval"
)

// longWait is how long a wait for a person lasts in the quiet phase without a record before
// its news must be there.
const longWait = time.Minute

// Told are news that a controller keeps.
type Told struct {
	ID, Type string
	// Run is the run that they are about; 0 for a window.
	Run uint64
	// About is the stage, the host or the window; What is what the run waits for.
	About, What string
	// AsOf is the last record that their writer knew.
	AsOf uint64
}

// matter is what news are about. Each is told once.
type matter struct {
	kind  string
	run   uint64
	about string
	// record is that of the pause, of which a run may have several.
	record uint64
}

func (m matter) String() string {
	return fmt.Sprintf("%s of run %d %s", m.kind, m.run, m.about)
}

// news are what has to be told, and what is told.
type news struct {
	// owed counts how often each matter has to be told: windows with the same times may be
	// missed twice.
	owed map[matter]int
	// ids are those of the kept news of each matter.
	ids map[matter][]string
	// waits are the persons that each run under way waited for after each record, by the
	// record and the id of the run.
	waits map[uint64]map[uint64]wait
}

// wait is how a run stood after a record, as far as news of waits go by it.
type wait struct {
	run uint64
	// paused is the record that paused the run, or has perhaps done so. perhaps is the first one that may
	// have; 0 for none.
	paused, perhaps uint64
	// approval is the stage that may wait to be approved.
	approval string
	// stuck means that no host is under way, and that one which the current stage waits
	// for or whose slot it needs is out of service, that a budget has no place for one, or that the
	// step of the stage may lack a host.
	stuck bool
	// works are the members whose command or task the run waits for.
	works []string
	// sure means that the run waits for a resume or an approval and for nothing else.
	sure bool
}

// owe notes that a matter has to be told.
func (o *Oracle) owe(m matter) { o.news.owed[m] = 1 }

// key is the number of a run in news: the id, or the opening of one without a prepare.
func (p *run) key() uint64 {
	if p.id == 0 {
		return p.opened
	}
	return p.id
}

// owes notes what a record has to tell that counts.
func (o *Oracle) owes(r message.Decoded) {
	if missed, ok := r.Event.(message.Missed); ok {
		kind := newsMissed
		if missed.UpToDate() {
			kind = newsUpToDate
		}
		o.news.owed[matter{kind: kind, about: missed.Window.UTC().Format(time.RFC3339)}]++
		return
	}
	p := o.run
	if p == nil {
		return
	}
	if r.Command != nil && r.Command.Action == message.Prepare {
		o.owe(matter{kind: newsOpened, run: p.key()})
	}
	for _, m := range p.members {
		if m.failed {
			o.owe(matter{kind: newsFailed, run: p.key(), about: m.name})
		}
	}
	if p.finished {
		o.owe(matter{kind: newsFinished, run: p.key()})
		return
	}
	for n := range p.stages {
		if s := &p.stages[n]; s.begun && !s.left() {
			o.owe(matter{kind: newsStage, run: p.key(), about: s.Name})
		}
	}
}

// left reports whether a stage has members that it waits for, or a step that is not done.
func (s *stage) left() bool {
	return s.Step != nil && !s.doing.done || slices.ContainsFunc(s.hosts, func(h *host) bool { return h.member != nil && h.member.left() })
}

// standings returns how each run under way stands, by its id.
func (o *Oracle) standings() map[uint64]wait {
	all := map[uint64]wait{}
	for _, p := range o.runs {
		if !p.finished && p.id != 0 {
			all[p.id] = o.standing(p)
		}
	}
	return all
}

// standing returns how a run under way stands.
func (o *Oracle) standing(p *run) (w wait) {
	w.works = p.atWork()
	if p.aborted || p.halted != 0 {
		return w
	}
	w.run = p.id
	if p.paused != 0 {
		w.paused = p.pausedSince
	}
	if w.perhaps = p.perhapsPaused; w.perhaps != 0 && w.paused == 0 {
		w.paused = o.seen
	}
	s := &p.stages[p.current()]
	if s.Approval && !s.approved {
		w.approval = s.Name
	}
	underWay, unstarted := p.stepUnderWay() != nil, s.Step != nil && !s.doing.passed
	for _, m := range p.members {
		underWay = underWay || !m.phase.before(draining) && m.phase != over
		unstarted = unstarted || m.left() && m.phase.before(draining)
	}
	// The oracle does not know which hosts are present: a step that is to begin on one may lack it, also
	// while a host of an earlier run or of a later stage is undrained.
	lacksHost := s.Step != nil && s.OnHost() && !s.doing.passed && p.stepUnderWay() == nil
	w.stuck = lacksHost || !underWay && (slices.ContainsFunc(s.hosts, (*host).out) || slices.ContainsFunc(s.hosts, o.keptByCell))
	w.sure = unstarted && !underWay && p.allAnswered() && (p.paused != 0 || w.approval != "" && p.soakedAll())
	return w
}

// atWork returns the members whose command or task a run waits for.
func (p *run) atWork() (names []string) {
	for _, m := range p.members {
		if m.phase == preparing && m.isAwaited() || has([]phase{checking, draining, upgrading, rebooting, rechecking, undraining}, m.phase) {
			names = append(names, m.name)
		}
	}
	return names
}

// mostOverdue is how often a host is told to be overdue at most: once for each phase.
const mostOverdue = 7

// soakedAll reports whether no stage soaks or may yet soak: none has a soak.
func (p *run) soakedAll() bool {
	return len(p.soaksBefore) == 0 && !slices.ContainsFunc(p.stages, func(s stage) bool { return s.Soak.Duration() > 0 })
}

// News judges news that are written into the store for the first time.
func (o *Oracle) News(t Told) {
	o.count("news " + t.Type)
	m := matter{kind: t.Type, run: t.Run, about: t.About}
	w := o.news.waits[t.AsOf][t.Run]
	switch {
	case t.Type == newsBlocked:
		if w.run != t.Run || !w.stuck || w.paused != 0 {
			o.violated("news %s: after record %d run %d is not blocked: %+v", t.ID, t.AsOf, t.Run, w)
		}
		return // A run may be blocked again and again.
	case t.Type == newsOverdue:
		if !has(w.works, t.About) {
			o.violated("news %s: after record %d run %d does not wait for host %s: %+v", t.ID, t.AsOf, t.Run, t.About, w)
		}
		if o.news.ids[m] = append(o.news.ids[m], t.ID); len(o.news.ids[m]) > mostOverdue {
			o.violated("host %s of run %d is told to be overdue %d times", t.About, t.Run, len(o.news.ids[m]))
		}
		return
	case t.Type == newsWaiting && t.What == waitResume:
		m.record = w.paused
		if w.run != t.Run || w.paused == 0 {
			o.violated("news %s: after record %d run %d is not paused: %+v", t.ID, t.AsOf, t.Run, w)
		}
	case t.Type == newsWaiting && t.What == waitApproval:
		if w.run != t.Run || w.approval != t.About {
			o.violated("news %s: after record %d stage %s of run %d waits for no approval: %+v", t.ID, t.AsOf, t.About, t.Run, w)
		}
	case o.news.owed[m] == 0 && o.skippedTimes(m) == 0:
		o.violated("news %s tell what has not happened: %s", t.ID, m)
	}
	o.news.ids[m] = append(o.news.ids[m], t.ID)
	if most := max(1, o.news.owed[m], o.skippedTimes(m)); len(o.news.ids[m]) > most && !o.schedule.wrong {
		o.violated("news are told under %d ids, of at most %d: %s: %v", len(o.news.ids[m]), most, m, o.news.ids[m])
	}
}

// skippedTimes is how often a window has been skipped, if news are about that. One that is skipped no longer
// before a controller has seen it need not be told.
func (o *Oracle) skippedTimes(m matter) (times int) {
	for _, s := range o.schedule.skips {
		if m.kind == newsSkipped && m.about == s.of.Start.Format(time.RFC3339) {
			times++
		}
	}
	return times
}

// Untold returns what has to be told and is not: empty when all is. The newest is judged
// after its writer has had some time.
func (o *Oracle) Untold() (all []string) {
	for m, times := range o.news.owed {
		if have := len(o.news.ids[m]); have < times {
			all = append(all, fmt.Sprintf("%s: %d of %d", m, have, times))
		}
	}
	slices.Sort(all)
	return all
}

// waited judges that a wait for a person which lasted until the next record was told.
func (o *Oracle) waited() {
	for _, w := range o.news.waits[o.seen] {
		o.waitedFor(w)
	}
}

// toldOfWait reports whether a wait for a person was told: a pause with or without the stage whose step has
// failed and is done again once the run is resumed.
func (o *Oracle) toldOfWait(w wait) bool {
	if w.paused == 0 {
		return len(o.news.ids[matter{kind: newsWaiting, run: w.run, about: w.approval}]) > 0
	}
	for m := range o.news.ids {
		perhaps := w.perhaps != 0 && m.record >= w.perhaps && m.record <= w.paused
		if m.kind == newsWaiting && m.run == w.run && (m.record == w.paused || perhaps) {
			return true
		}
	}
	return false
}

func (o *Oracle) waitedFor(w wait) {
	if !w.sure || o.Calm == nil || min(o.Calm(), o.least().Sub(o.newest)) < longWait {
		return
	}
	o.count("long waits for a person")
	if !o.toldOfWait(w) {
		o.violated("run %d has waited for a person since record %d, and no news say so: %+v", w.run, o.seen, w)
	}
}
