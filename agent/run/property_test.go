package run

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/oracle"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// TestInvariants plays runs of any policy: hosts answer in any order, twice, wrongly
// or never, fall silent and are deleted, people ask, clocks jump. After each record
// the oracle judges it by the invariants, and says of each record whether it counts and
// of each host whether it is out of service; package run must say the same. Each run
// must end by itself.
func TestInvariants(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) { newProperty(rt).playRuns() })
}

// TestInvariantsAfterAbort plays runs that somebody aborts, mostly while a host is under way.
// A run that goes on in spite of that shows itself in one of a thousand runs of TestInvariants.
func TestInvariantsAfterAbort(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p := newProperty(rt)
		p.openRun(drawOpening(rt, p.now))
		for range rapid.IntRange(1, 60).Draw(rt, "events before") {
			if p.in().Newest().counts.underWay > 0 && rapid.Bool().Draw(rt, "aborts") {
				break
			}
			p.random()
			p.drive()
		}
		p.ask(Request{Ask: Abort, By: "ann", Why: "because"})
		p.playRun()
	})
}

// TestInvariantsWithLateHosts plays runs of hosts of which some take long to prepare and the
// others come through: what remains in the end of a stage are those that are late.
func TestInvariantsWithLateHosts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p := newProperty(rt)
		e := drawOpening(rt, p.now)
		e.NotAfter, e.Rollout.MinPrepared, e.Rollout.OnFailure = p.now.Add(4*time.Hour), 1, rollout.Continue
		e.Rollout.PreparePatience = rollout.SpanOf(drawSpan(rt, "patience", 10*time.Minute))
		p.openRun(e)
		for range rapid.IntRange(1, 60).Draw(rt, "events") {
			happens := []func(){p.comesThrough, p.comesThrough, p.comesThrough, p.comesThrough, p.outcome1, p.outcome1, p.toDue, p.random}
			happens[rapid.IntRange(0, len(happens)-1).Draw(rt, "happens")]()
			p.drive()
			p.check()
		}
		p.playRun()
	})
}

// property is a player with an oracle that judges each record. Of the outcome of a task
// the oracle says only that it may count: it does not count attempts.
type property struct {
	*player
	rt     *rapid.T
	oracle *oracle.Oracle
	opened message.Opened
}

// judge is the oracle of the environment of which the test speaks.
func (p *property) judge() *oracle.Oracle { return p.oracle.In(p.environment) }

func newProperty(rt *rapid.T) *property {
	p := &property{player: newPlayer(rt), rt: rt}
	p.seen.HostOf = func(*rollout.Step) string { return "c1" }
	var last message.Record
	p.oracle = oracle.New(func(format string, args ...any) {
		rt.Fatalf("after %s at %s: %s", last.Body, last.Time.Sub(epoch), fmt.Sprintf(format, args...))
	}, func(string) {})
	p.watch = func(record message.Record, folded error) {
		last = record
		r := record.Decode()
		_, ran := r.Event.(message.Ran)
		switch counts := p.oracle.Counts(r); {
		case folded == nil && !counts:
			rt.Fatalf("%s %s %s counts at %s, and must not", r.Host, r.Action, r.Body, r.Time.Sub(epoch))
		case folded != nil && counts && !ran:
			rt.Fatalf("%s %s %s does not count at %s, and must: %v", r.Host, r.Action, r.Body, r.Time.Sub(epoch), folded)
		case folded == nil:
			p.oracle.Apply(r, r.Time)
		default:
			p.oracle.Pass(r)
		}
	}
	return p
}

// openRun opens a run, and has most hosts answer its prepare.
func (p *property) openRun(e message.Opened) {
	e.Promotion = p.in().Promotion()
	p.opened = e
	p.must(p.eventOf(p.in(), e))
	p.drive()
	for p.in().Newest().AsksFirst() && rapid.IntRange(0, 19).Draw(p.rt, "is asked") > 0 {
		p.startOutcome()
		p.drive()
	}
	for _, name := range p.judge().Members() {
		if p.judge().Run() != 0 && rapid.IntRange(0, 9).Draw(p.rt, "prepares") > 0 {
			p.reply(p.judge().Run(), name, "prepare", message.Reply{Action: message.Prepare, Result: message.Result{Outcome: message.Done}}.Encode())
		}
	}
	p.drive()
}

// drive drives the run, which must have ended by not-after plus overrun-limit
// (invariant 7).
func (p *property) drive() time.Time {
	p.rt.Helper()
	until := p.player.drive()
	for _, environment := range p.oracle.Environments() {
		p.inTime(environment)
	}
	return until
}

// inTime checks that the run of an environment has not waited for longer than it may.
func (p *property) inTime(environment string) {
	p.rt.Helper()
	o := p.oracle.In(environment)
	end, under := o.UnderWay()
	if under && !p.now.Before(end.Over.Add(end.Rest)) {
		p.rt.Fatalf("invariant 7: at %s the run is under way, and had to end by %s: %s", p.now.Sub(epoch), end.Over.Add(end.Rest).Sub(epoch), o.Summary())
	}
	if at, due := o.Due(); due && !p.now.Before(at) && p.now.Before(end.Over) { // After that it ends instead.
		p.rt.Fatalf("at %s the run waits for hosts that are late, and had to go on without them at %s: %s", p.now.Sub(epoch), at.Sub(epoch), o.Summary())
	}
}

// playRuns plays one run or two.
func (p *property) playRuns() {
	p.openRun(drawOpening(p.rt, p.now))
	p.playRun()
	if rapid.Bool().Draw(p.rt, "a second run") {
		e := drawOpening(p.rt, p.now)
		e.Roster = p.in().Roster().Opening(nil, slices.DeleteFunc(e.Roster, func(e message.Entry) bool { return !e.Since.IsZero() || e.Works != "" }))
		e.Cells = inRoster(e, e.Cells)
		p.openRun(e)
		p.playRun()
	}
}

// playRun has things happen, and then lets the run end by itself.
func (p *property) playRun() {
	for range rapid.IntRange(0, 60).Draw(p.rt, "events") {
		p.random()
		if rapid.IntRange(0, 3).Draw(p.rt, "the controller is away") > 0 {
			p.drive()
		}
		p.check()
	}
	p.toTheEnd(p.drive)
	p.check()
}

// drawOpening draws how a run is opened at a time.
func drawOpening(rt *rapid.T, opens time.Time) message.Opened {
	e := message.Opened{Trigger: message.TriggerWindow, NotAfter: opens.Add(drawSpan(rt, "lasts", 4*time.Hour)), Rollout: drawPolicy(rt)}
	p := &e.Rollout
	steps := rapid.Bool().Draw(rt, "has steps")
	for n := range rapid.IntRange(1, 3).Draw(rt, "stages") {
		if steps && rapid.Bool().Draw(rt, "a step before") {
			p.Stages = append(p.Stages, drawStep(rt, fmt.Sprintf("before%d", n)))
		}
		stage := rollout.ResolvedStage{
			Stage: rollout.Stage{Name: fmt.Sprintf("s%d", n)}, Size: rapid.IntRange(1, 4).Draw(rt, "size"), MaxUnavailable: rapid.IntRange(1, 3).Draw(rt, "max"),
		}
		stage.Approval = rapid.IntRange(0, 3).Draw(rt, "approval") == 0
		if rapid.Bool().Draw(rt, "soaks") {
			stage.Soak = rollout.SpanOf(drawSpan(rt, "soak", time.Hour))
		}
		if stage.Approval && rapid.Bool().Draw(rt, "expires") {
			stage.ApprovalTimeout = rollout.SpanOf(drawSpan(rt, "approval-timeout", time.Hour))
		}
		p.Stages = append(p.Stages, stage)
		for range stage.Size {
			e.Members = append(e.Members, fmt.Sprintf("h%02d", len(e.Members)+1))
		}
	}
	if steps {
		p.Stages = append(p.Stages, drawStep(rt, "last"))
	}
	aside, first := "", slices.IndexFunc(p.Stages, func(s rollout.ResolvedStage) bool { return s.Size > 0 })
	if rapid.IntRange(0, 2).Draw(rt, "aside") == 0 {
		aside = p.Stages[first].Name
	}
	for _, name := range append([]string{"beyond", "aside"}, e.Members...) {
		entry := message.Entry{Host: name}
		if name == "aside" {
			entry.Stage = aside
		}
		switch rapid.IntRange(0, 9).Draw(rt, "host") {
		case 0:
			entry.Silent = slices.Contains(e.Members, name) || entry.Stage != ""
		case 1:
			p.NoReboot = append(p.NoReboot, rollout.Exempt{Host: name, Reason: "a label"})
		}
		if rapid.IntRange(0, 9).Draw(rt, "owes") == 0 {
			entry.Owes = drawDebt(rt)
		}
		if entry.Owes.Any() || entry.Silent && rapid.Bool().Draw(rt, "fell silent in an earlier run") {
			entry.Since = opens.Add(-time.Hour)
		}
		if !entry.Owes.Any() && rapid.IntRange(0, 9).Draw(rt, "works") == 0 {
			entry.Works = rapid.SampledFrom([]message.Action{message.Upgrade, message.Reboot}).Draw(rt, "on")
		}
		if entry != (message.Entry{Host: name}) {
			e.Roster = append(e.Roster, entry)
		}
	}
	if rapid.IntRange(0, 2).Draw(rt, "release") == 0 {
		r := release.Release{Packages: &release.Packages{Same: rapid.IntRange(0, 3).Draw(rt, "same") > 0}}
		e.Release = new(r.Pin("spring"))
	}
	p.MinPrepared = rapid.IntRange(0, len(e.Members)).Draw(rt, "min-prepared")
	if rapid.IntRange(0, 2).Draw(rt, "asks first") == 0 {
		drawStart(rt, p, e.Members)
	}
	if rapid.Bool().Draw(rt, "has budgets") {
		e.Budgets, e.Cells = "v0", inRoster(e, drawCells(rt, append([]string{"stranger", "beyond", "aside"}, e.Members...)))
	}
	return e
}

// drawStart draws what is asked before the run prepares any host, at the site and on some members.
func drawStart(rt *rapid.T, p *rollout.Resolved, members []string) {
	for range rapid.IntRange(1, 2).Draw(rt, "start checks") {
		c := rollout.Check{Name: "c", Type: rollout.Exec, Script: "c", Timeout: rollout.SpanOf(drawSpan(rt, "start check", time.Hour))}
		p.Checks.Start = append(p.Checks.Start, rollout.StartCheck{Check: c})
	}
	if rapid.Bool().Draw(rt, "at the site") {
		p.Start = append(p.Start, rollout.StartGroup{Checks: []int{0}})
	}
	if asked := rapid.SliceOfNDistinct(rapid.SampledFrom(members), 0, len(members), rapid.ID).Draw(rt, "on hosts"); len(asked) > 0 {
		p.Start = append(p.Start, rollout.StartGroup{Hosts: asked, Checks: []int{len(p.Checks.Start) - 1}})
	}
}

// drawStep draws a stage with a step.
func drawStep(rt *rapid.T, name string) rollout.ResolvedStage {
	hook := &rollout.Hook{Type: rollout.Exec, On: rollout.OnSite, Timeout: rollout.SpanOf(drawSpan(rt, "step", time.Hour)), RetryInterval: "0s"}
	s := rollout.ResolvedStage{Stage: rollout.Stage{Name: name, Step: &rollout.Step{Do: hook}}}
	if rapid.Bool().Draw(rt, "on a host") {
		hook.On, s.Step.Match = rollout.OnHost, &rollout.Match{Roles: []string{"controller"}}
	}
	s.Approval = rapid.IntRange(0, 5).Draw(rt, "approval") == 0
	if rapid.IntRange(0, 2).Draw(rt, "soaks") == 0 {
		s.Soak = rollout.SpanOf(drawSpan(rt, "soak", time.Hour))
	}
	return s
}

// stepHost is the host of steps that comes and goes.
func (p *property) stepHost() {
	host := rapid.SampledFrom([]string{"c1", "c1", "c2", ""}).Draw(p.rt, "the host of steps")
	p.seen.HostOf = func(*rollout.Step) string { return host }
}

// inForce gives cells that are counted already the limits that they have: a controller tells others
// only when it opens a run or a budget is edited.
func (p *property) inForce(cells []message.Cell) []message.Cell {
	for i := range cells {
		for _, known := range p.ledger.Cells().All() {
			if known.Key() == cells[i].Key() {
				cells[i].MaxUnavailable = known.MaxUnavailable
			}
		}
	}
	return cells
}

// drawCells draws the cells of up to two budgets over hosts.
func drawCells(rt *rapid.T, hosts []string) []message.Cell {
	var all []message.Cell
	for _, budget := range []string{"racks", "fleet"}[:rapid.IntRange(1, 2).Draw(rt, "budgets")] {
		cells := map[int][]string{}
		for _, host := range hosts {
			n := rapid.IntRange(0, 3).Draw(rt, "rack")
			cells[n] = append(cells[n], host)
		}
		for n := range 3 { // Hosts of the last are in no cell.
			if len(cells[n]) > 0 {
				most := rapid.SampledFrom([]int{0, 1, 1, 1, 2, 2}).Draw(rt, "may be out of service")
				all = append(all, message.Cell{Budget: budget, Label: "rack", Value: fmt.Sprint(n), MaxUnavailable: most, Hosts: cells[n]})
			}
		}
	}
	return all
}

// inRoster returns cells with those hosts only that an opening names.
func inRoster(e message.Opened, cells []message.Cell) []message.Cell {
	return message.Only(cells, func(host string) bool {
		return slices.Contains(e.Members, host) || slices.ContainsFunc(e.Roster, func(e message.Entry) bool { return e.Host == host })
	})
}

// drawDebt is what a host owes. That somebody has to look stands in place of the
// answer.
func drawDebt(rt *rapid.T) message.Debt {
	d := message.Debt{
		Undrain: rapid.Bool().Draw(rt, "undrain"), Look: rapid.IntRange(0, 3).Draw(rt, "look") == 0,
		Checks: rapid.SampledFrom([]message.TaskKind{"", message.BeforeHost, message.AfterHost}).Draw(rt, "checks"),
	}
	if !d.Look {
		d.Answer = rapid.SampledFrom([]message.Action{"", message.Upgrade, message.Reboot}).Draw(rt, "answer")
	}
	return d
}

func drawPolicy(rt *rapid.T) rollout.Resolved {
	check := []rollout.Check{{Name: "c", Type: rollout.TCP, Passes: 1, Timeout: rollout.SpanOf(time.Minute)}}
	hook := &rollout.Hook{Type: rollout.Exec, On: rollout.OnHost, Timeout: rollout.SpanOf(time.Minute)}
	p := rollout.Default(0)
	p.Stages, p.MaxFailures = nil, rapid.IntRange(1, 4).Draw(rt, "max-failures")
	p.OnFailure = rapid.SampledFrom([]string{rollout.Stop, rollout.Pause, rollout.Continue, rollout.Continue}).Draw(rt, "on-failure")
	p.Overrun = rapid.SampledFrom([]string{rollout.FinishHost, rollout.StopHost}).Draw(rt, "overrun")
	p.OverrunLimit = rollout.SpanOf(rapid.SampledFrom([]time.Duration{0, time.Minute, 15 * time.Minute, 5 * time.Hour}).Draw(rt, "overrun-limit"))
	p.Absent = rapid.SampledFrom([]string{rollout.Skip, rollout.CountAbsent}).Draw(rt, "absent")
	if p.PreparePatience = ""; rapid.IntRange(0, 4).Draw(rt, "is patient") > 0 {
		p.PreparePatience = rollout.SpanOf(drawSpan(rt, "prepare-patience", 10*time.Minute))
	}
	p.Paused = rapid.IntRange(0, 9).Draw(rt, "paused") == 0
	p.Timeouts = &rollout.Timeouts{
		Prepare: rollout.SpanOf(drawSpan(rt, "prepare", time.Hour)), Upgrade: rollout.SpanOf(drawSpan(rt, "upgrade", time.Hour)),
		Reboot: rollout.SpanOf(drawSpan(rt, "reboot", time.Hour)),
	}
	if rapid.IntRange(0, 3).Draw(rt, "splays") == 0 {
		p.Splay = rollout.SpanOf(drawSpan(rt, "splay", time.Hour))
	}
	for _, list := range []*[]rollout.Check{&p.Checks.BeforeHost, &p.Checks.AfterHost, &p.Checks.Fleet} {
		if rapid.Bool().Draw(rt, "checks") {
			*list = check
		}
	}
	for _, h := range []**rollout.Hook{&p.Hooks.Drain, &p.Hooks.Undrain} {
		if rapid.Bool().Draw(rt, "hook") {
			*h = hook
		}
	}
	return p
}

func drawSpan(rt *rapid.T, label string, most time.Duration) time.Duration {
	return time.Duration(rapid.Int64Range(1, int64(most/time.Second)).Draw(rt, label)) * time.Second
}

// random is one thing that happens.
func (p *property) random() {
	happens := []func(){
		p.answer1, p.answer1, p.answer1, p.answer1, p.outcome1, p.outcome1, p.outcome1, p.outcome1,
		p.anyReply, p.anyEvent, p.plansDiffer, p.hostChanges, p.stepHost, p.budgetsChange, p.locksChange, p.someoneAsks, p.nobodyAsks, p.timePasses, p.timePasses, p.repeats,
	}
	happens[rapid.IntRange(0, len(happens)-1).Draw(p.rt, "happens")]()
}

// answer1 is a host that answers what it was asked.
func (p *property) answer1() {
	var asked []string
	for _, name := range p.judge().Members() {
		if p.judge().Asked(name) != "" {
			asked = append(asked, name)
		}
	}
	if len(asked) == 0 {
		return
	}
	host := rapid.SampledFrom(asked).Draw(p.rt, "answers")
	action := p.judge().Asked(host)
	body := message.Reply{Action: action, Result: message.ResultOf(drawResult(p.rt))}.Encode()
	if rapid.IntRange(0, 19).Draw(p.rt, "garbage") == 0 {
		body = []byte("garbage")
	}
	p.anyWorker(p.judge().Run(), host, action, body)
}

// comesThrough is a host that has been prepared and does what it is asked.
func (p *property) comesThrough() {
	for _, name := range p.judge().Members() {
		if action := p.judge().Asked(name); action != "" && action != message.Prepare && p.judge().Run() != 0 {
			p.reply(p.judge().Run(), name, string(action), message.Reply{Action: action, Result: message.Result{Outcome: message.Done}}.Encode())
			return
		}
	}
}

func drawResult(rt *rapid.T) string {
	return rapid.SampledFrom([]string{"done", "done", "done", "reboot-required", "reboot-required", "no space left"}).Draw(rt, "result")
}

// drawUnknown is what some hosts say beside their reply: that they do not know what they did.
func drawUnknown(rt *rapid.T) message.ReplyOutcome {
	if rapid.IntRange(0, 6).Draw(rt, "unknown") == 0 {
		return message.Unknown
	}
	return ""
}

// anyWorker is a reply of the worker that was prepared, or of another one that took
// its place, or of one that does not know what its host did.
func (p *property) anyWorker(run uint64, host string, action message.Action, body []byte) {
	if run == 0 { // It has no prepare yet, and the gate takes no reply to it.
		return
	}
	r := message.Record{Kind: message.ReplyRecord, Run: run, Host: host, Action: action, Body: body, Outcome: drawUnknown(p.rt)}
	if rapid.IntRange(0, 9).Draw(p.rt, "another worker") == 0 {
		r.Epoch = 1
	}
	p.append(r)
}

// startOutcome is an outcome of what is asked before the run prepares any host, nearly always a
// good one.
func (p *property) startOutcome() {
	run := p.in().Newest()
	var wanted []message.Task
	if decision := run.Next(p.now, p.look(p.in())); decision.Task != nil {
		wanted = append(wanted, *decision.Task)
	}
	for _, name := range p.judge().Members() {
		if task, _, wants := run.Task(name); wants && task.Kind == message.Start {
			wanted = append(wanted, task)
		}
	}
	if len(wanted) == 0 {
		p.rt.Fatalf("the run asks before it prepares, and wants nothing")
	}
	task := rapid.SampledFrom(wanted).Draw(p.rt, "answers")
	p.fact(message.Ran{Outcome: task.Outcome(rapid.IntRange(0, 29).Draw(p.rt, "well") > 0, "text")})
}

// outcome1 is a task that comes out, mostly well.
func (p *property) outcome1() {
	run := p.in().Newest()
	var wanted []message.Task
	if decision := run.Next(p.now, p.look(p.in())); decision.Task != nil {
		wanted = append(wanted, *decision.Task)
	}
	for _, name := range p.judge().Members() {
		if task, _, wants := run.Task(name); wants {
			wanted = append(wanted, task)
		}
	}
	if len(wanted) == 0 {
		return
	}
	task := rapid.SampledFrom(wanted).Draw(p.rt, "comes out")
	o := task.Outcome(rapid.IntRange(0, 3).Draw(p.rt, "ok") > 0, "text")
	p.fact(message.Ran{Outcome: o})
}

func (p *property) host() string {
	return rapid.SampledFrom(append([]string{"stranger", "beyond", "aside"}, p.judge().Members()...)).Draw(p.rt, "host")
}

// anyReply is a reply that may be out of place.
func (p *property) anyReply() {
	action := rapid.SampledFrom([]message.Action{message.Prepare, message.Upgrade, message.Reboot}).Draw(p.rt, "action")
	run := rapid.SampledFrom([]uint64{p.judge().Run(), p.judge().Run(), 1}).Draw(p.rt, "run")
	p.anyWorker(run, p.host(), action, message.Reply{Action: action, Result: message.ResultOf(drawResult(p.rt))}.Encode())
}

// anyEvent is an outcome that is out of place.
func (p *property) anyEvent() {
	kinds := []message.TaskKind{message.BeforeHost, message.Drain, message.AfterHost, message.Undrain, message.Fleet, message.Step, message.Start, ""}
	o := message.Outcome{
		Run: rapid.SampledFrom([]uint64{p.judge().Run(), 1, p.in().Newest().OpenedSeq}).Draw(p.rt, "run"), Kind: rapid.SampledFrom(kinds).Draw(p.rt, "kind"),
		Host: p.host(), Attempt: rapid.IntRange(-1, 3).Draw(p.rt, "attempt"), OK: rapid.Bool().Draw(p.rt, "ok"),
	}
	if o.Kind == message.Step {
		o.Host = rapid.SampledFrom([]string{"c1", ""}).Draw(p.rt, "the host of the step")
		o.Stage = rapid.SampledFrom(p.opened.Rollout.Stages).Draw(p.rt, "stage").Name
	}
	run := p.in().Newest()
	if task, _, wanted := run.Task(o.Host); wanted && task.Key() == o.Key() || o.Kind == message.Fleet || run.Awaits(o) {
		return
	}
	before := len(p.log)
	p.fact(message.Ran{Outcome: o})
	var again Ledger
	for _, r := range p.log[:before] {
		_ = again.Fold(r.Decode())
	}
	if err := again.Fold(p.log[before].Decode()); err == nil {
		p.rt.Fatalf("outcome %+v counts though nobody waits for it", o)
	}
}

// plansDiffer is a comparison of the plans of hosts: they differ on some of them, which the release of
// the run refuses or not. It may be told out of place.
func (p *property) plansDiffer() {
	e := message.Differing{Packages: []message.DifferingPackage{{Name: "lib", Versions: []message.PlannedVersion{{Version: "1", Count: 1}, {Version: "2", Count: 1}}}}}
	if members := p.judge().Members(); len(members) > 0 {
		if hosts := rapid.SliceOfNDistinct(rapid.SampledFrom(members), 0, len(members), rapid.ID).Draw(p.rt, "refused"); len(hosts) > 0 {
			e.Refused = []message.Refusal{{Hosts: hosts, Why: "another version"}}
		}
	}
	if p.opened.Release == nil || rapid.IntRange(0, 3).Draw(p.rt, "out of place") == 0 {
		p.fact(e)
		return
	}
	if rapid.IntRange(0, 9).Draw(p.rt, "compares") == 0 {
		p.seen.Comparing = true
		p.drive()
	}
	p.seen.Differing, p.seen.Comparing = &e, false
	p.drive()
	p.seen.Differing = nil
}

// hostChanges is a host that falls silent, is heard of or deleted.
func (p *property) hostChanges() {
	hosts := []string{p.host()}
	switch rapid.IntRange(0, 9).Draw(p.rt, "change") {
	case 0:
		p.fact(message.Deleted{Hosts: hosts})
	case 1, 2, 3:
		p.fact(message.Silent{Hosts: hosts})
	case 4:
		said := message.NewNotNow(rapid.SampledFrom([]string{"backup", "batch"}).Draw(p.rt, "reason"), p.now.Add(time.Hour))
		p.hear(hosts[0], &said)
	case 5:
		p.hear(hosts[0], nil)
	default:
		p.fact(message.Recovered{Hosts: hosts})
	}
}

// budgetsChange is an edit of the budgets, or a neighbour that falls silent.
func (p *property) budgetsChange() {
	if !p.sideBySide {
		p.budgetsOf(append([]string{"stranger", "beyond", "aside"}, p.judge().Members()...), func(string) bool { return true })
	}
}

// budgetsOf is an edit of the budgets of hosts, or one of them that falls silent as a neighbour, if
// it may be told as that.
func (p *property) budgetsOf(hosts []string, isNeighbour func(host string) bool) {
	if rapid.Bool().Draw(p.rt, "edits") {
		p.fact(message.Budgeted{Budgets: rapid.SampledFrom([]string{"v1", "v2"}).Draw(p.rt, "budgets"), Cells: message.Only(drawCells(p.rt, hosts), p.counted)})
		return
	}
	host := rapid.SampledFrom(hosts).Draw(p.rt, "neighbour")
	if !isNeighbour(host) {
		return
	}
	cells := p.inForce(message.Only(drawCells(p.rt, hosts), func(of string) bool { return of == host }))
	p.fact(message.Silent{Hosts: []string{host}, Cells: cells})
}

// counted reports whether a host counts in the cells of edited budgets: no controller tells those of
// others.
func (p *property) counted(host string) bool {
	_, locked := p.ledger.Locked(host)
	return locked || p.ledger.InRoster(host)
}

// locksChange is a host that wants to reboot by itself, or has done so, or a lock that is told anew.
func (p *property) locksChange() {
	host := p.host()
	switch rapid.IntRange(0, 4).Draw(p.rt, "lock") {
	case 0:
		if e := p.ledger.Relock(); e != nil {
			p.must(p.eventOf(p.in(), e))
		}
	case 1:
		if e := p.ledger.Unlock(host, "zincati", ""); e != nil {
			p.must(p.eventOf(p.in(), e))
		}
	default:
		q := LockRequest{Host: host, Environment: p.environment}
		if p.ledger.Cells().Budgets() != "" {
			q.Cells = message.Only(drawCells(p.rt, []string{host, "another"}), func(of string) bool { return of == host })
		}
		if e, err := p.ledger.Lock(q); e != nil {
			p.must(p.eventOf(p.in(), e))
		} else if _, locked := p.ledger.Locked(host); !locked && err == nil {
			p.rt.Fatalf("%s is neither locked nor refused", host)
		}
	}
}

func (p *property) someoneAsks() {
	asks := []Ask{Pause, Resume, Resume, Resume, Approve, Approve, Approve, Release, Release, Abort}
	q := Request{Ask: rapid.SampledFrom(asks).Draw(p.rt, "asks"), By: "ann", Why: "because", Host: p.host()}
	q.Now = rapid.Bool().Draw(p.rt, "now")
	q.Stage = rapid.SampledFrom(p.opened.Rollout.Stages).Draw(p.rt, "stage").Name
	p.ask(q)
}

// ask writes what a request comes to, if it is not refused.
func (p *property) ask(q Request) {
	if decision := p.in().Newest().Next(p.now, Seen{Request: &q}); decision.Act == Note {
		p.must(p.eventOf(p.in(), decision.Event))
	}
}

// nobodyAsks is a rollout that holds the run up or cannot be read, or lets it go
// on again.
func (p *property) nobodyAsks() {
	run := p.in().Current()
	switch {
	case run == nil:
	case run.Paused == nil:
		by := rapid.SampledFrom([]string{message.ByRollout, message.ByAgent}).Draw(p.rt, "holds it up")
		p.fact(message.Paused{By: by, Why: "because"})
	case message.GoesOn(run.Paused.By):
		p.fact(message.Resumed{By: run.Paused.By})
	}
}

func (p *property) timePasses() {
	switch rapid.IntRange(0, 9).Draw(p.rt, "clock") {
	case 0:
		p.now, p.back = p.now.Add(-drawSpan(p.rt, "back", time.Hour)), true
	case 1:
		p.now = p.now.Add(drawSpan(p.rt, "ahead", 5*time.Hour))
	case 2, 3, 4:
		if current := p.in().Current(); current != nil {
			if until := current.Next(p.now, p.look(p.in())).Until; until.After(p.now) {
				p.now = until
			}
		}
	case 5:
		p.toDue()
	default:
		p.now = p.now.Add(drawSpan(p.rt, "passes", 20*time.Minute))
	}
}

// toDue lets time pass until the run has to go on without hosts that are late.
func (p *property) toDue() {
	if at, due := p.judge().Due(); due && at.After(p.now) {
		p.now = at
	}
}

// repeats is a record that comes again, as another one.
func (p *property) repeats() {
	r := p.log[len(p.log)-1]
	if r.Kind == message.ReplyRecord || p.in().Current() == nil {
		return
	}
	p.append(r)
}

// toTheEnd lets nothing happen any more but time: the run has to end by itself
// (invariant 7).
func (p *player) toTheEnd(drive func() time.Time) {
	for range 1000 {
		until := drive()
		if len(p.ledger.UnderWay()) == 0 {
			return
		}
		if !until.After(p.now) {
			p.t.Fatalf("invariant 7: at %s the run waits until %s", p.now, until)
		}
		p.now = until
	}
	p.t.Fatalf("invariant 7: the run does not end")
}

func (p *property) check() {
	p.refold()
	p.checkRun()
}

func (p *property) checkRun() {
	s := p.in().Newest()
	p.sameRoster(s)
	if err := foreseen(s, p.now); err != nil {
		p.rt.Fatalf("the forecast at %s: %v", p.now.Sub(epoch), err)
	}
	counts := map[Status]int{}
	for _, h := range s.Hosts() {
		counts[h.Status]++
		if s.Over() && !h.Status.Final() {
			p.rt.Fatalf("%s is %s though the run is over", h.Name, h.Status)
		}
	}
	for status, n := range counts {
		if s.Count(status) != n {
			p.rt.Fatalf("%d hosts are counted as %s, and %d are", s.Count(status), status, n)
		}
	}
	if s.Result == Completed && counts[Upgraded] != s.Size() {
		p.rt.Fatalf("a run is completed with %v", counts)
	}
}

// sameRoster holds that the run says of each host whether it is out of service as
// the oracle does.
func (p *property) sameRoster(s *State) {
	for _, c := range p.ledger.Cells().All() {
		if out, admitted := p.oracle.OutOfCell(c.Key()); out != c.Out || admitted != c.Reserved {
			p.rt.Fatalf("%d hosts of %s are out of service, and %d admitted; the run says %d and %d: %s", out, c.Name(), admitted, c.Out, c.Reserved, p.oracle.Summary())
		}
	}
	if s.Over() {
		for _, e := range p.in().Roster().Opening(nil, nil) {
			if (e.Owes.Any() || e.Silent) && !p.oracle.Out(e.Host) {
				p.rt.Fatalf("%s is in service after the end, and the run says that it owes %+v", e.Host, e.Owes)
			}
		}
		return
	}
	for _, h := range s.Hosts() {
		if want := p.oracle.Out(h.Name); want == h.Slot.IsZero() {
			p.rt.Fatalf("%s is out of service: %t; the run says since %s, because %q: %s", h.Name, want, h.Slot, h.SlotReason, p.judge().Summary())
		}
	}
	for n, stage := range s.Stages(s.changed) {
		if out := p.judge().OutOfStage(n); out != stage.OutOfService {
			p.rt.Fatalf("%d of stage %s are out of service; the run says %d", out, stage.Name, stage.OutOfService)
		}
	}
}

// foreseen holds that a forecast is of the future, and that there is none of the
// end while the run waits for anything but hosts at work and time.
func foreseen(s *State, now time.Time) error {
	f, known := s.Forecast(now)
	if want, wanted := oneByOne(s, now); known != wanted || !reflect.DeepEqual(f, want) {
		return fmt.Errorf("the forecast is %+v, %t; one by one it is %+v, %t", f, known, want, wanted)
	}
	if !known {
		return nil
	}
	for i, at := range f.Hosts {
		if at.IsZero() {
			continue
		}
		m := &s.members[i]
		switch name, h := m.Name, s.view(i); {
		case at.Before(now) || !f.End.IsZero() && at.After(f.End):
			return fmt.Errorf("%s is done at %s, and the run at %s", name, at, f.End)
		case h.Status.Final() || !m.underWay() && (m.IsSilent() || m.Owes().Look || m.isBusy()):
			return fmt.Errorf("%s has one, and is %+v", name, h)
		}
	}
	w, _ := s.Waiting(now)
	_, ends := s.ending(now)
	stuck := !ends && (w.What == ForSlot || w.What == ForBudget || w.What == ForApproval || w.What == ForResume && s.counts.unstarted > 0)
	if stuck && (f.Waits == "" || !f.End.IsZero()) {
		return fmt.Errorf("the run ends at %s, and waits for %s", f.End, w.Detail)
	}
	if f.End.IsZero() == (f.Waits == "") {
		return fmt.Errorf("it ends at %s, and waits for %q", f.End, f.Waits)
	}
	return nil
}

// TestReleasedBeforePrepare has a host that owes an answer to an earlier run be released while a run
// asks its start checks, and so has no id yet. Its reply to the old command is none to this run.
func TestReleasedBeforePrepare(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p := newProperty(rt)
		action := rapid.SampledFrom([]message.Action{message.Upgrade, message.Reboot}).Draw(rt, "owes")
		e := drawOpening(rt, p.now)
		e.NotAfter, e.Rollout.MinPrepared = p.now.Add(4*time.Hour), 0
		e.Roster = []message.Entry{{Host: "h01", Since: p.now.Add(-time.Hour), Owes: message.Debt{Answer: action}}}
		e.Budgets, e.Cells = "", nil
		e.Rollout.Checks.Start = []rollout.StartCheck{{Check: rollout.Check{Name: "c", Type: rollout.Exec, Script: "c", Timeout: rollout.SpanOf(time.Hour)}}}
		e.Rollout.Start = []rollout.StartGroup{{Checks: []int{0}}}
		p.opened = e
		p.must(p.eventOf(p.in(), e))
		p.fact(message.Released{Host: "h01", By: "ann"})
		p.drive()
		p.fact(message.Ran{Outcome: message.Task{Run: p.in().Newest().OpenedSeq, Kind: message.Start}.Outcome(true, "")})
		p.drive()
		if run := p.judge().Run(); run != 0 { // Else no host is left to be prepared.
			p.reply(run, "h01", string(action), []byte("garbage"))
		}
		p.check()
	})
}
