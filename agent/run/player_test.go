package run

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

var epoch = time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC)

// fataler is what a test, a fuzz and a property test have in common.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// player is a controller whose log is a slice.
type player struct {
	t      fataler
	log    []message.Record
	ledger Ledger
	now    time.Time
	out    strings.Builder
	turns  Turns
	// environment is the one that a script speaks of; once it has named one, sideBySide is set
	// and the lines of the controller say whose they are. said is the last wait of each.
	environment string
	sideBySide  bool
	said        map[*Environment]string
	// policy, stages and lasts are of the next run.
	policy *rollout.Resolved
	stages []rollout.ResolvedStage
	// others count in the next run and are no members.
	others []message.Entry
	// cells are those of the disruption budgets now.
	cells []message.Cell
	lasts time.Duration
	// wanted are the tasks that were printed, waits the last wait that was.
	wanted map[message.Key]bool
	waits  string
	// stopped tells that the controller does not run.
	stopped bool
	// watch sees each record that is folded; nil when nobody looks.
	watch func(r message.Record, err error)
	// away are the hosts that the controller does not hear of, though the log may not say so.
	away map[string]time.Time
	// back tells that the clock went back.
	back bool
	// seen is what the controller knows besides the log. Before a script says what
	// holds up each run, which looksAtHold tells, that is what the run says itself.
	seen        Seen
	looksAtHold bool
}

func newPlayer(t fataler) *player {
	return &player{t: t, now: epoch, lasts: 4 * time.Hour, wanted: map[message.Key]bool{}, said: map[*Environment]string{}}
}

func play(t fataler, script string) string {
	t.Helper()
	p := newPlayer(t)
	p.play(script)
	return p.out.String()
}

// play plays a script.
func (p *player) play(script string) {
	for line := range strings.Lines(script) {
		line = strings.TrimSuffix(line, "\n")
		if line != "" && strings.Contains(">=!@", line[:1]) {
			continue
		}
		p.out.WriteString(line + "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		p.line(strings.Fields(line), line)
		p.refold()
	}
}

// line plays one line of a script.
func (p *player) line(words []string, line string) {
	_, rest, _ := strings.Cut(line, " ")
	switch words[0] {
	case "stop", "start":
		if p.stopped = words[0] == "stop"; p.stopped {
			return
		}
	case "in":
		p.sideBySide = true
		if p.environment = words[1]; p.environment == message.DefaultEnvironment {
			p.environment = ""
		}
		return
	case "rollout", "absent", "stage", "lasts":
		p.prepareRun(words, rest)
		return
	case "cell":
		p.cell(words, rest)
		return
	case "hosts", "stages", "tasks", "forecast", "overdue":
		p.answer(words[0])
		return
	case "at":
		p.passTo(epoch.Add(p.span(words[1])))
		return
	case "open":
		p.fact(p.opening(words[1:]))
	case "silent":
		p.fact(message.Silent{Hosts: words[1:]})
	case "recovered":
		p.fact(message.Recovered{Hosts: words[1:]})
	case "deleted":
		p.fact(message.Deleted{Hosts: words[1:]})
	case "ran":
		p.ran(words)
	case "ask":
		p.ask(rest)
	case "seen":
		p.see(words[1:], rest)
	case "lock":
		p.lock(words[1])
	case "unlock":
		p.unlock(words[1])
	case "again":
		p.append(p.log[len(p.log)-1])
	case "event":
		p.append(message.Record{Kind: message.EventRecord, Body: []byte(rest)})
	case "command":
		p.append(message.Record{Kind: message.CommandHost, Run: p.in().Newest().ID, Body: []byte(rest)})
	default:
		p.replies(words, line)
	}
	p.drive()
}

// in is the environment that the script speaks of.
func (p *player) in() *Environment { return p.ledger.Of(p.environment) }

func (p *player) replies(words []string, line string) {
	run := p.in().Newest()
	switch words[0] {
	case "reply":
		outcome := message.ReplyOutcome("")
		said, upToDate := strings.CutSuffix(strings.Join(words[3:], " "), " (up to date)")
		result, unknown := strings.CutPrefix(said, "unknown: ")
		if unknown {
			outcome = message.Unknown
		}
		p.append(message.Record{
			Kind: message.ReplyRecord, Run: run.ID, Host: words[1], Action: message.Action(words[2]), Outcome: outcome, UpToDate: upToDate,
			Body: message.Reply{Action: message.Action(words[2]), Result: message.ResultOf(result)}.Encode(),
		})
	case "all":
		for _, h := range run.Hosts() {
			if s := run; s.members[s.indexOf(h.Name)].asked() == message.Action(words[1]) {
				p.reply(run.ID, h.Name, words[1], message.Reply{Action: message.Action(words[1]), Result: message.ResultOf(strings.Join(words[2:], " "))}.Encode())
			}
		}
	case "late":
		id, err := strconv.ParseUint(words[1], 10, 64)
		if err != nil {
			p.t.Fatalf("%s: %v", line, err)
		}
		p.reply(id, words[2], words[3], message.Reply{Action: message.Action(words[3]), Result: message.ResultOf(strings.Join(words[4:], " "))}.Encode())
	case "raw":
		_, body, _ := strings.Cut(line, words[2]+" ")
		p.reply(run.ID, words[1], words[2], []byte(body))
	default:
		p.t.Fatalf("unknown event %q", line)
	}
}

// ran has a task come out that is wanted, or says that of one that is not.
func (p *player) ran(words []string) { p.fact(message.Ran{Outcome: p.outcome(words)}) }

// outcome is how a task comes out: "ran h01 drain failed text".
func (p *player) outcome(words []string) message.Outcome {
	run := p.in().Newest()
	task := message.Task{Run: run.ID, Kind: message.TaskKind(words[1])}
	rest := words[2:]
	switch words[1] {
	case "fleet":
		task.Attempt = run.fleet.attempt
	case "start":
		task.Run, rest = run.OpenedSeq, words[3:]
		if words[2] != "site" {
			task.Host = words[2]
		}
	case "step":
		task.Stage = run.stages.current().Name
		if wanted, some := run.stepTask(); some {
			task = wanted
		}
	default:
		task.Kind, task.Host, rest = message.TaskKind(words[2]), words[1], words[3:]
		if wanted, _, some := run.Task(words[1]); some {
			task.Attempt = wanted.Attempt
		}
	}
	return task.Outcome(rest[0] == "ok", strings.Join(rest[1:], " "))
}

// ask asks of the run: "release h01 by ann: why".
func (p *player) ask(text string) {
	what, who, _ := strings.Cut(text, " by ")
	by, why, _ := strings.Cut(who, ": ")
	words := strings.Fields(what)
	q := Request{Ask: Ask(words[0]), By: by, Why: why}
	if len(words) > 1 {
		q.Stage, q.Host, q.Now = words[1], words[1], words[1] == "now"
		q.ResetFailures = words[1] == "reset"
	}
	seen := p.look(p.in())
	seen.Request = &q
	switch decision := p.in().Newest().Next(p.now, seen); decision.Act {
	case Refuse:
		var refused *Refused
		if !errors.As(decision.Refused, &refused) {
			p.t.Fatalf("%s: %v", text, decision.Refused)
		}
		fmt.Fprintf(&p.out, "! %v\n", refused)
	case Note:
		p.must(p.eventOf(p.in(), decision.Event))
	case Send, Wait:
		p.t.Fatalf("%s: the decision is %+v", text, decision)
	}
}

// lock has a host ask for a lock, by its cells now.
func (p *player) lock(host string) {
	event, err := p.ledger.Lock(LockRequest{
		Host: host, Environment: p.environment, By: "zincati", Cells: message.Only(p.cells, func(of string) bool { return of == host }),
	})
	p.answerLock(event, err)
}

// unlock has a host say that it has rebooted.
func (p *player) unlock(host string) { p.answerLock(p.ledger.Unlock(host, "zincati", ""), nil) }

func (p *player) answerLock(event message.Event, err error) {
	switch {
	case err != nil:
		fmt.Fprintf(&p.out, "! %v\n", err)
	case event == nil:
		p.out.WriteString("= nothing to do\n")
	default:
		r := p.eventOf(p.in(), event)
		fmt.Fprintf(&p.out, "> %s\n", r.Body)
		p.must(r)
	}
}

// look is what the controller knows besides the log now.
func (p *player) look(e *Environment) Seen {
	seen := p.seen
	if current := e.Current(); !p.looksAtHold && current != nil && current.Paused != nil && message.GoesOn(current.Paused.By) {
		seen.Hold = &message.Paused{By: current.Paused.By, Why: current.Paused.Why}
	}
	return seen
}

// see has the controller know something besides the log from now on.
func (p *player) see(words []string, line string) {
	_, rest, _ := strings.Cut(line, " ")
	switch words[0] {
	case "silent":
		p.seen.Silent, p.seen.Heard = union(p.seen.Silent, words[1:]), without(p.seen.Heard, words[1:])
	case "busy": // seen busy h01 +30m backup
		p.hear(words[1], &message.NotNow{Reason: strings.Join(words[3:], " "), Until: epoch.Add(p.span(words[2]))})
	case "idle":
		p.hear(words[1], nil)
	case "heard":
		p.seen.Heard, p.seen.Silent = union(p.seen.Heard, words[1:]), without(p.seen.Silent, words[1:])
	case "deleted":
		hosts, by, _ := strings.Cut(rest, " by ")
		p.seen.Deleted = maps.Clone(p.seen.Deleted)
		if p.seen.Deleted == nil {
			p.seen.Deleted = map[string]Deletion{}
		}
		for _, host := range strings.Fields(hosts) {
			p.seen.Deleted[host] = Deletion{By: by}
		}
	case "ran":
		o := p.outcome(words)
		p.seen.Outcomes = append(slices.Clone(p.seen.Outcomes), o)
	case "freeze":
		p.seen.Freeze = nil
		if len(words) > 1 {
			p.seen.Freeze = &message.Frozen{Freeze: words[1], NotAfter: epoch.Add(p.span(words[2])), Until: epoch.Add(p.span(words[3]))}
		}
	case "away":
		p.away = map[string]time.Time{words[1]: p.now}
	case "doing":
		host, doing := words[1], strings.Join(words[2:], " ")
		before := p.seen.doing
		p.seen.Doing = func(of string) string {
			if of == host {
				return doing
			}
			return before(of)
		}
	case "present":
		host := words[1]
		p.seen.HostOf = func(*rollout.Step) string { return host }
	case "hold":
		by, why, _ := strings.Cut(rest, ": ")
		p.looksAtHold = true
		if p.seen.Hold = nil; by != "" && by != "hold" {
			p.seen.Hold = &message.Paused{By: by, Why: why}
		}
	case "budgets":
		p.seen.Budgets = &message.Budgeted{Budgets: words[1], Cells: p.cells}
	case "neighbour":
		p.seen.Neighbours = map[string][]message.Cell{words[1]: message.Only(p.cells, func(host string) bool { return host == words[1] })}
	case "nothing":
		p.seen.JudgeAt = epoch.Add(p.span(words[2]))
	default:
		p.t.Fatalf("the controller cannot see %q", line)
	}
}

// hear has a heartbeat of a host say whether it is busy.
func (p *player) hear(host string, said *message.NotNow) {
	p.seen.Busy = maps.Clone(p.seen.Busy)
	if p.seen.Busy == nil {
		p.seen.Busy = map[string]*message.NotNow{}
	}
	p.seen.Busy[host] = said
}

func union(a, b []string) []string { return append(without(a, b), b...) }

func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

func (p *player) reply(run uint64, host, action string, body []byte) {
	p.append(message.Record{Kind: message.ReplyRecord, Run: run, Host: host, Action: message.Action(action), Body: body})
}

func (p *player) fact(e message.Event) { p.append(p.eventOf(p.in(), e)) }

// eventOf is an event of an environment. As long as there is only one, it need not say of which
// run it is.
func (p *player) eventOf(e *Environment, event message.Event) message.Record {
	r := message.Record{Kind: message.EventRecord, Body: message.EncodeEvent(event)}
	if _, opens := event.(message.Opened); p.sideBySide && !opens && !message.OfNoRun(event) {
		r.Run = e.Key()
	}
	return r
}

func (p *player) append(r message.Record) {
	if err := p.fold(r); err != nil {
		fmt.Fprintf(&p.out, "! %v\n", err)
	}
}

// must appends what Next or Decide asked for: they never ask for what changes
// nothing.
func (p *player) must(r message.Record) {
	p.t.Helper()
	if err := p.fold(r); err != nil {
		p.t.Fatalf("the controller appended %s, which changes nothing: %v", r.Body, err)
	}
}

func (p *player) fold(r message.Record) error {
	r.Seq, r.Time = uint64(len(p.log)+1), p.now
	p.log = append(p.log, r)
	err := p.ledger.Fold(r.Decode())
	if p.watch != nil {
		p.watch(r, err)
	}
	return err
}

// drive does what Next says until there is nothing left to do, and returns
// when to ask again.
func (p *player) drive() time.Time {
	p.t.Helper()
	if p.stopped {
		return time.Time{}
	}
	p.turns.Wake(p.ledger.Environments()...)
	for range 10 + 10*len(p.log) + 100*p.size() {
		if !p.advance() {
			return p.turns.Until()
		}
		p.turns.Wake(p.ledger.Touched()...)
	}
	p.t.Fatalf("the run never waits")
	return time.Time{}
}

// advance carries out the first decision of an environment, and reports whether there is one.
func (p *player) advance() bool {
	p.t.Helper()
	for e, decision := range p.turns.Next(p.now, p.look) {
		current := e.Current()
		switch {
		case decision.Act != Wait:
			p.take(e.Newest(), decision)
			return true
		case current == nil:
			p.waits = ""
		case p.now.Before(p.seen.JudgeAt):
			p.waits = "until " + p.seen.JudgeAt.Sub(epoch).String()
			p.says(e, []byte("waits "+p.waits))
		case p.seen.Comparing: // The controller, which compares the plans, says what the run waits for.
			p.waits = "for plans to be compared"
			p.says(e, []byte("waits "+p.waits))
		default:
			p.wants(current, decision)
			p.wait(e)
		}
	}
	return false
}

// says prints what the controller does or waits for.
func (p *player) says(e *Environment, text []byte) {
	whose := ""
	if p.sideBySide {
		whose = cmp.Or(e.Name, message.DefaultEnvironment) + ": "
	}
	p.out.WriteString("> " + whose + string(text) + "\n")
}

func (p *player) size() (size int) {
	for _, e := range p.ledger.Environments() {
		if newest := e.Newest(); newest != nil {
			size += newest.Size()
		}
	}
	return size
}

// take carries out one decision.
func (p *player) take(current *State, decision Decision) {
	p.t.Helper()
	_, e := p.ledger.Run(current.Key())
	var r message.Record
	if decision.Act == Note {
		r = p.eventOf(e, decision.Event)
	} else {
		r = message.Record{Kind: message.CommandHost, Host: decision.Command.Host, Run: current.ID, Body: decision.Command.Encode()}
		if decision.Command.Action == message.Prepare {
			r.Kind, r.Environment, r.Rollback = message.CommandAll, e.Name, current.RollsBack.String()
			if pinned := current.Release; pinned != nil {
				r.Release = pinned.Ref().String()
			}
		}
	}
	p.says(e, r.Body)
	p.must(r)
}

// wants prints the tasks that are wanted now and were not before.
func (p *player) wants(current *State, decision Decision) {
	if decision.Task != nil {
		p.want(*decision.Task, decision.TaskFrom)
	}
	for _, h := range current.Hosts() {
		if task, from, wanted := current.Task(h.Name); wanted {
			p.want(task, from)
		}
	}
}

func (p *player) want(task message.Task, from time.Time) {
	if p.wanted[task.Key()] {
		return
	}
	p.wanted[task.Key()] = true
	fmt.Fprintf(&p.out, "> wants %s\n", taskText(task, from))
}

// wait prints what a run waits for: a run that waits always says so. Of runs side by side it
// prints only what has changed.
func (p *player) wait(e *Environment) {
	p.t.Helper()
	w, waits := e.Current().Waiting(p.now)
	if !waits || w.What == "" || w.Detail == "" || w.Since.IsZero() || w.Since.After(p.now) && !p.back {
		p.t.Fatalf("the run waits at %s and says %+v, %t", p.now.Sub(epoch), w, waits)
	}
	p.waits = w.text()
	if !p.sideBySide || p.said[e] != p.waits {
		p.says(e, []byte("waits for "+p.waits))
	}
	p.said[e] = p.waits
}

// text leaves out what goes without saying: most waits are for a host.
func (w Waiting) text() string {
	if w.What == ForHost {
		return w.Detail
	}
	return w.What + ": " + w.Detail
}

// passTo lets time pass: the controller wakes whenever it wants to.
func (p *player) passTo(to time.Time) {
	for !p.stopped {
		var until time.Time
		for _, e := range p.ledger.UnderWay() {
			until = times.Sooner(until, e.Next(p.now, p.look(e)).Until)
		}
		if until.IsZero() || until.After(to) || !until.After(p.now) {
			break
		}
		p.now = until
		p.quietly()
	}
	p.now = to
	p.drive()
}

// quietly drives the runs, and prints that only if anything but time has
// changed.
func (p *player) quietly() {
	before, waits := p.out.String(), p.waits
	p.out.Reset()
	p.drive()
	said := p.out.String()
	p.out.Reset()
	p.out.WriteString(before)
	if said != "" && said != "> waits for "+waits+"\n" {
		fmt.Fprintf(&p.out, "@ %s\n%s", p.now.Sub(epoch), said)
	}
}

// poke asks everything that can be asked of the runs.
func (p *player) poke() {
	for _, e := range p.ledger.Environments() {
		if run := e.Newest(); run != nil {
			p.pokeRun(e, run)
		}
	}
}

func (p *player) pokeRun(e *Environment, run *State) {
	for range 2 {
		run.Next(p.now, p.look(e))
		run.Waiting(p.now)
		run.Forecast(p.now)
		run.Stages(p.now)
	}
	for _, h := range run.Hosts() {
		run.Task(h.Name)
		run.Outdated(h.Name, true)
		run.Next(p.now, Seen{Request: &Request{Ask: Release, Host: h.Name}})
	}
	for _, ask := range []Ask{Pause, Resume, Abort, Approve} {
		run.Next(p.now, Seen{Request: &Request{Ask: ask, Stage: run.stages.list[0].Name}})
	}
	run.Next(p.now, Seen{Request: &Request{Ask: Abort, Now: true}})
	_ = run.RefuseStart(p.now, "")
}

// refold is a controller that was killed here and starts again: it must come
// to the same state. What was asked of the state since must not have
// changed it either.
func (p *player) refold() {
	p.t.Helper()
	p.poke()
	var again Ledger
	for _, r := range p.log {
		_ = again.Fold(r.Decode())
	}
	if !reflect.DeepEqual(again, p.ledger) {
		p.t.Fatalf("a controller that starts after record %d knows something else", len(p.log))
	}
}
