package run

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// timed are runs whose hosts take equally long in each environment: they answer prepare at once, and
// their checks and hooks pass at once.
type timed struct {
	t      fataler
	ledger Ledger
	now    time.Time
	took   map[string]time.Duration
	// answers are when hosts will have been upgraded, in the order of their commands.
	answers []timedAnswer
	// seen is what the controller knows besides.
	seen Seen
	// tied tells that hosts of different environments were done at the same time: nothing says who
	// goes next then.
	tied bool
}

type timedAnswer struct {
	at   time.Time
	run  uint64
	host string
}

// fold appends a record, which takes a moment.
func (n *timed) fold(r message.Record, d message.Decoded) {
	n.t.Helper()
	n.now = n.now.Add(time.Nanosecond)
	r.Seq, r.Time = n.ledger.LastSeq+1, n.now
	d.Record = r
	if err := n.ledger.Fold(d); err != nil {
		n.t.Fatalf("record %d: %v", r.Seq, err)
	}
}

// open opens a run in one stage.
func (n *timed) open(environment string, slots int, cells []message.Cell, hosts ...string) {
	n.t.Helper()
	e := message.Opened{Environment: environment, Members: hosts, Rollout: rollout.Default(len(hosts)), NotAfter: n.now.Add(100 * time.Hour), Budgets: "v1"}
	e.Rollout.Stages[0].MaxUnavailable = slots
	n.openAs(e, cells)
}

func (n *timed) openAs(e message.Opened, cells []message.Cell) {
	n.t.Helper()
	e.Cells = n.ledger.CellsOf(e, cells)
	n.fold(message.Record{Kind: message.EventRecord}, message.Decoded{Event: e})
}

// next takes the next decision of a run whose turn it is, or lets time pass, but not beyond a limit.
// False means that nothing more happens until then.
func (n *timed) next(limit time.Time) bool {
	n.t.Helper()
	var until time.Time
	var first *Environment
	var what Decision
	for _, e := range n.ledger.UnderWay() {
		decision := e.Next(n.now, n.seen)
		if decision.Act == Wait {
			until = times.Sooner(until, decision.Until)
		} else if first == nil || e.Turn() < first.Turn() {
			first, what = e, decision
		}
	}
	if first != nil {
		n.take(first, what)
		return true
	}
	soonest := -1
	for i, a := range n.answers {
		if soonest < 0 || a.at.Before(n.answers[soonest].at) {
			soonest = i
		}
	}
	at := until
	if soonest >= 0 {
		at = times.Sooner(at, n.answers[soonest].at)
	}
	switch {
	case at.IsZero():
		return false
	case at.After(limit):
		n.now = limit
		return false
	}
	n.now = times.Later(n.now, at)
	for _, a := range n.answers {
		n.tied = n.tied || a.run != n.answers[max(0, soonest)].run && a.at.Sub(at) < time.Microsecond
	}
	if soonest >= 0 && n.answers[soonest].at.Equal(at) {
		a := n.answers[soonest]
		n.answers = slices.Delete(n.answers, soonest, soonest+1)
		n.reply(a.run, a.host, message.Upgrade)
		n.pass(a.run, a.host)
	}
	return true
}

func (n *timed) reply(run uint64, host string, action message.Action) {
	n.t.Helper()
	n.fold(message.Record{Kind: message.ReplyRecord, Run: run, Host: host, Action: action},
		message.Decoded{Reply: &message.Reply{Action: action, Result: message.Result{Outcome: message.Done}}})
}

// pass has the tasks of a host pass.
func (n *timed) pass(run uint64, host string) {
	n.t.Helper()
	r, _ := n.ledger.Run(run)
	for task, _, wanted := r.Task(host); wanted; task, _, wanted = r.Task(host) {
		n.fold(message.Record{Kind: message.EventRecord, Run: run}, message.Decoded{Event: message.Ran{Outcome: task.Outcome(true, "")}})
	}
}

// take appends what was decided, and has hosts do what it asks.
func (n *timed) take(e *Environment, d Decision) {
	n.t.Helper()
	if d.Act == Note {
		run := e.Key()
		n.fold(message.Record{Kind: message.EventRecord, Run: run}, message.Decoded{Event: d.Event})
		for _, host := range message.Hosts(d.Event) {
			n.pass(run, host)
		}
		return
	}
	c := d.Command
	if c.Action == message.Prepare {
		n.fold(message.Record{Kind: message.CommandAll, Environment: e.Name}, message.Decoded{Command: &c})
		for _, host := range c.Hosts {
			n.reply(e.Newest().ID, host, message.Prepare)
		}
		return
	}
	n.fold(message.Record{Kind: message.CommandHost, Run: e.Newest().ID, Host: c.Host}, message.Decoded{Command: &c})
	n.answers = append(n.answers, timedAnswer{n.now.Add(n.took[e.Name]), e.Newest().ID, c.Host})
}

// foreseen are the ends of the runs by environment, in minutes from the beginning, as they are
// expected now: asked of one environment.
func (n *timed) foreseen(environment string) string {
	var all []string
	for _, f := range n.ledger.Forecast(n.ledger.Of(environment), n.now) {
		text := f.Waits
		if !f.End.IsZero() {
			text = fmt.Sprint(f.End.Sub(epoch).Round(time.Minute).Minutes())
		}
		all = append(all, f.Name+": "+text)
	}
	return strings.Join(all, "; ")
}

func (n *timed) until(at time.Duration) {
	n.t.Helper()
	for n.next(epoch.Add(at)) {
	}
}

func newTimed(t fataler) *timed {
	return &timed{t: t, now: epoch, took: map[string]time.Duration{"basel": 10 * time.Minute, "bern": 10 * time.Minute, "chur": 10 * time.Minute}}
}

// TestForecastOfSharedBudget checks what is foreseen of runs that share the one place of a budget.
func TestForecastOfSharedBudget(t *testing.T) {
	t.Parallel()
	n := newTimed(t)
	all := fleetOf("a1", "a2", "a3", "b1", "b2", "b3")
	n.open("basel", 3, all, "a1", "a2", "a3")
	n.open("bern", 3, all, "b1", "b2", "b3")
	n.open("chur", 1, all, "c1", "c2") // In no cell.
	n.until(5 * time.Minute)
	if got := n.foreseen("basel"); got != "" {
		t.Errorf("no host is measured, and foreseen is %s", got)
	}
	n.until(10*time.Minute + time.Second) // a1 is upgraded, and b1 begins.
	for environment, want := range map[string]string{"basel": "basel: 50; bern: 60", "bern": "basel: 50; bern: 60", "chur": "chur: 20"} {
		if got := n.foreseen(environment); got != want {
			t.Errorf("asked of %s foreseen is %s, want %s", environment, got, want)
		}
	}
	n.fold(message.Record{Kind: message.EventRecord, Run: n.ledger.Of("basel").Key()}, message.Decoded{Event: message.Paused{By: "ann"}})
	if got, want := n.foreseen("bern"), "bern: 40"; got != want {
		t.Errorf("while basel is paused foreseen is %s, want %s", got, want)
	}
}

// TestForecastNamesHolder checks that a run which waits for the place that a host of an ended run
// holds says so, and not that the budget lets nobody leave service.
func TestForecastNamesHolder(t *testing.T) {
	t.Parallel()
	n := newTimed(t)
	all := fleetOf("a1", "b1", "b2", "b3", "b4")
	n.open("bern", 2, all, "b1", "b2", "b3", "b4", "c1", "c2", "c3", "c4", "c5") // Some are in no cell.
	n.until(10*time.Minute + time.Second)
	n.open("basel", 1, all, "a1")
	n.took["basel"] = 10 * time.Hour
	for range 100 {
		if n.ledger.Of("basel").Current().Count(HostUpgrading) == 1 {
			break
		}
		n.next(n.now.Add(1000 * time.Hour))
	}
	n.fold(message.Record{Kind: message.EventRecord, Run: n.ledger.Of("basel").Key()}, message.Decoded{Event: message.Silent{Hosts: []string{"a1"}}})
	n.fold(message.Record{Kind: message.EventRecord, Run: n.ledger.Of("basel").Key()}, message.Decoded{Event: message.Finished{Result: string(IsAborted)}})
	if got := n.foreseen("bern"); !strings.Contains(got, "a1 (") {
		t.Errorf("foreseen is %q: it does not name a1, which holds the place", got)
	}
}

// TestForecastWhilePreparing checks that the hosts of a run that is being prepared count: they soon
// want the places.
func TestForecastWhilePreparing(t *testing.T) {
	t.Parallel()
	n := newTimed(t)
	all := fleetOf("a1", "a2", "b1", "b2", "b3", "b4")
	n.open("bern", 2, all, "b1", "b2", "b3", "b4")
	n.until(10*time.Minute + time.Second)
	n.open("basel", 2, all, "a1", "a2")
	e := n.ledger.Of("basel")
	c := e.Next(n.now, Seen{}).Command
	n.fold(message.Record{Kind: message.CommandAll, Environment: "basel"}, message.Decoded{Command: &c})
	if got, want := n.foreseen("bern"), "bern: 50"; got != want {
		t.Errorf("foreseen is %s, want %s: one of basel goes before the last", got, want)
	}
	if got := n.foreseen("basel"); got != "" {
		t.Errorf("of basel, whose hosts have not prepared, is foreseen %s", got)
	}
}

// TestForecastComesTrue plays runs that share cells, whose hosts take as long as those before: each
// run ends when it was foreseen, whenever that was.
func TestForecastComesTrue(t *testing.T) {
	t.Parallel()
	checked := 0
	rapid.Check(t, func(rt *rapid.T) {
		n := newTimed(rt)
		names := []string{"", "basel", "bern", "chur"}[:rapid.IntRange(2, 4).Draw(rt, "environments")]
		var hosts []string
		for i, name := range names { // No two hosts of different environments are done in the same instant.
			n.took[name] = time.Duration(rapid.IntRange(1, 30).Draw(rt, "minutes"))*time.Minute + time.Duration(1)<<(10*i)*time.Microsecond
			hosts = append(hosts, hostsIn(name)...)
		}
		cells := drawCells(rt, hosts)
		for i := range cells {
			cells[i].MaxUnavailable = max(1, cells[i].MaxUnavailable)
		}
		for _, name := range names {
			n.openAs(drawTimed(rt, name, n.now), cells)
			for range rapid.IntRange(0, 10).Draw(rt, "decisions before the next") {
				n.next(n.now.Add(1000 * time.Hour))
			}
		}
		for range rapid.IntRange(10, 60).Draw(rt, "decisions") {
			n.next(n.now.Add(1000 * time.Hour))
		}
		for n.next(n.now) { // Nothing is left to do at once.
		}
		n.tied = false
		expected := map[string]time.Time{}
		for _, e := range n.ledger.UnderWay() {
			for _, f := range n.ledger.Forecast(e, n.now) {
				if before, some := expected[f.Name]; some && !before.Equal(f.End) {
					rt.Fatalf("the run of %q ends at %s, and asked of %q at %s", f.Name, before, e.Name, f.End)
				}
				expected[f.Name] = f.End
			}
			if e.newest.durations.usual == 0 {
				return
			}
		}
		for n.next(n.now.Add(1000 * time.Hour)) {
		}
		if n.tied {
			return
		}
		for name, want := range expected {
			if got := n.ledger.Of(name).Newest(); got.EndedAt.Sub(want).Abs() > time.Millisecond || got.Result != Completed {
				rt.Fatalf("the run of %q ended as %s at %s, and was expected to end at %s", name, got.Result, got.EndedAt, want)
			}
			checked++
		}
	})
	if checked == 0 {
		t.Error("no forecast was compared, so this test shows nothing")
	}
}

// drawTimed draws a run in two stages. Checks before a host would let it have two turns for each.
func drawTimed(rt *rapid.T, name string, now time.Time) message.Opened {
	e := message.Opened{Trigger: message.TriggerWindow, Environment: name, Members: hostsIn(name), NotAfter: now.Add(100 * time.Hour), Budgets: "v1"}
	e.Rollout = rollout.Default(len(e.Members))
	first := rapid.IntRange(1, 4).Draw(rt, "size")
	stage := func(name string, size int) rollout.ResolvedStage {
		g := e.Rollout.Stages[0]
		g.Name, g.Size, g.MaxUnavailable = name, size, rapid.IntRange(1, size).Draw(rt, "max-unavailable")
		g.Soak = rollout.SpanOf(time.Duration(rapid.IntRange(0, 2).Draw(rt, "soak")) * 7 * time.Minute)
		return g
	}
	e.Rollout.Stages = []rollout.ResolvedStage{stage("first", first), stage("rest", len(e.Members)-first)}
	if rapid.Bool().Draw(rt, "splay") {
		e.Rollout.Splay = rollout.SpanOf(15 * time.Minute)
	}
	if rapid.Bool().Draw(rt, "drains") {
		e.Rollout.Hooks.Drain = &rollout.Hook{Type: rollout.Exec, On: rollout.OnHost, Timeout: rollout.SpanOf(time.Minute)}
	}
	return e
}

// BenchmarkForecastTogether is the forecast of runs that share the places of a budget, for all of them
// at once: each time passes for all of them.
func BenchmarkForecastTogether(b *testing.B) {
	const hosts = 6000
	for _, environments := range []int{2, 60, 600} {
		b.Run(fmt.Sprintf("%d-environments", environments), func(b *testing.B) {
			n := newTimed(b)
			all := message.Cell{Budget: "fleet", MaxUnavailable: 60}
			for i := range hosts {
				all.Hosts = append(all.Hosts, fmt.Sprintf("h%04d", i))
			}
			for i := range environments {
				name, size := fmt.Sprintf("e%03d", i), hosts/environments
				n.took[name] = 10 * time.Minute
				n.open(name, size, []message.Cell{all}, all.Hosts[i*size:(i+1)*size]...)
			}
			n.until(15 * time.Minute)
			e := n.ledger.UnderWay()[0]
			for b.Loop() {
				if foreseen := n.ledger.Forecast(e, n.now); len(foreseen) != environments {
					b.Fatalf("%d runs are foreseen", len(foreseen))
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*hosts), "ns/host")
		})
	}
}
