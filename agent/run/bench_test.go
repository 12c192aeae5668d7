package run

import (
	"fmt"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// BenchmarkRun is the pure part of a run over many hosts: its time per host
// must stay the same however many there are.
func BenchmarkRun(b *testing.B) {
	check := []rollout.Check{{Name: "c", Type: rollout.TCP, Passes: 1, Timeout: rollout.SpanOf(time.Minute)}}
	hook := &rollout.Hook{Type: rollout.Exec, On: rollout.OnHost, Timeout: rollout.SpanOf(time.Minute)}
	shapes := []struct {
		name   string
		change func(p *rollout.Resolved)
		silent bool
		owing  bool
		// budget has all hosts in one cell of a disruption budget.
		budget bool
	}{
		{name: "serial", change: func(*rollout.Resolved) {}},
		{name: "budget", budget: true, change: func(p *rollout.Resolved) { p.Stages[0].MaxUnavailable = p.Stages[0].Size }},
		{name: "all-at-once", change: func(p *rollout.Resolved) { p.Stages[0].MaxUnavailable = p.Stages[0].Size }},
		{name: "half-silent", silent: true, change: func(p *rollout.Resolved) { p.Stages[0].MaxUnavailable = p.Stages[0].Size/2 + 1 }},
		{name: "checks-and-hooks", change: func(p *rollout.Resolved) {
			p.Checks = &rollout.Checks{BeforeHost: check, AfterHost: check, Fleet: check}
			p.Hooks = &rollout.Hooks{Drain: hook, Undrain: hook}
		}},
		{name: "owing", owing: true, change: func(p *rollout.Resolved) {
			p.Checks, p.Stages[0].MaxUnavailable = &rollout.Checks{BeforeHost: check, AfterHost: check}, p.Stages[0].Size
		}},
		{name: "start-checks", change: func(p *rollout.Resolved) {
			p.Checks, p.Stages[0].MaxUnavailable = &rollout.Checks{Start: []rollout.StartCheck{{Check: check[0]}}}, p.Stages[0].Size
			p.Start = []rollout.StartGroup{{Hosts: benchHosts(p.Stages[0].Size), Checks: []int{0}}}
		}},
		{name: "splay", change: func(p *rollout.Resolved) {
			p.Splay, p.Stages[0].MaxUnavailable = rollout.SpanOf(time.Minute), p.Stages[0].Size
		}},
	}
	for _, shape := range shapes {
		for _, hosts := range []int{1000, 10_000} {
			b.Run(fmt.Sprintf("%s/%d-hosts", shape.name, hosts), func(b *testing.B) {
				var log []message.Record
				for b.Loop() {
					policy := rollout.Default(hosts)
					shape.change(&policy)
					log = wholeRun(b, log[:0], policy, shape.silent, shape.owing, shape.budget)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*hosts), "ns/host")
			})
		}
	}
}

// benchHosts are the names of so many hosts.
func benchHosts(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("h%05d", i+1)
	}
	return names
}

// wholeRun plays a run whose hosts do everything at once. When half of them
// are silent, these are deleted at the end; owing has each of them owe checks at first, budget
// lets one of all leave service at once. log is room for its records, which it returns to be used
// again: to grow that is no cost of a run.
func wholeRun(b *testing.B, log []message.Record, policy rollout.Resolved, silent, owing, budget bool) []message.Record {
	b.Helper()
	p := newPlayer(b)
	p.log = log
	e := message.Opened{Trigger: message.TriggerWindow, NotAfter: epoch.Add(4 * time.Hour), Rollout: policy}
	var gone []string
	e.Members = benchHosts(policy.Stages[0].Size)
	for i, host := range e.Members {
		if silent && i%2 == 0 {
			gone = append(gone, host)
			e.Roster = append(e.Roster, message.Entry{Host: host, Silent: true})
		}
		if owing {
			e.Roster = append(e.Roster, message.Entry{Host: host, Since: epoch, Owes: message.Debt{Checks: message.AfterHost}})
		}
	}
	if budget {
		e.Budgets, e.Cells = "v1", []message.Cell{{Budget: "fleet", MaxUnavailable: 1, Hosts: e.Members}}
	}
	p.fact(e)
	for _, host := range e.Members {
		if run := p.in().Current(); run.AsksFirst() { // A decision follows each outcome.
			run.Next(p.now, p.look(p.in()))
			task, _, _ := run.Task(host)
			p.fact(message.Ran{Outcome: task.Outcome(true, "")})
		}
	}
	for p.in().Current() != nil {
		run := p.in().Current()
		decision := run.Next(p.now, p.look(p.in()))
		switch {
		case decision.Act != Wait:
			p.out.Reset()
			p.take(run, decision)
			p.follow(decision)
		case decision.Task != nil:
			o := decision.Task.Outcome(true, "")
			p.fact(message.Ran{Outcome: o})
		case silent:
			p.fact(message.Deleted{Hosts: gone})
		default:
			p.now = decision.Until
		}
	}
	if p.in().Newest().Count(Upgraded)+len(gone) != len(e.Members) {
		b.Fatal(p.in().Newest().Reason)
	}
	return p.log
}

// follow is what the hosts do then: they answer, and their tasks come out
// well.
func (p *player) follow(decision Decision) {
	run := p.in().Newest()
	hosts := decision.Command.Hosts
	switch {
	case decision.Act == Note:
		hosts = message.Hosts(decision.Event)
	case decision.Command.Host != "":
		hosts = []string{decision.Command.Host}
	}
	for _, host := range hosts {
		if decision.Act == Send {
			p.reply(run.ID, host, string(decision.Command.Action), message.Reply{Action: decision.Command.Action, Result: message.Result{Outcome: message.Done}}.Encode())
		}
		for task, _, wanted := run.Task(host); wanted; task, _, wanted = run.Task(host) {
			o := task.Outcome(true, "")
			p.fact(message.Ran{Outcome: o})
		}
	}
}

// BenchmarkForecast is the forecast of a run over many hosts, half of which are
// under way: its time per host must stay the same however many there are.
func BenchmarkForecast(b *testing.B) {
	for _, hosts := range []int{1000, 10_000} {
		b.Run(fmt.Sprintf("%d-hosts", hosts), func(b *testing.B) {
			p := newPlayer(b)
			policy := rollout.Default(hosts)
			policy.Stages[0].MaxUnavailable = hosts / 2
			e := message.Opened{Trigger: message.TriggerWindow, NotAfter: epoch.Add(4 * time.Hour), Rollout: policy}
			for i := range hosts {
				e.Members = append(e.Members, fmt.Sprintf("h%06d", i+1))
			}
			p.fact(e)
			p.take(p.in().Current(), p.in().Current().Next(p.now, p.look(p.in())))
			p.follow(Decision{Act: Send, Command: message.Command{Action: message.Prepare, Hosts: e.Members}})
			for range hosts / 2 {
				p.take(p.in().Current(), p.in().Current().Next(p.now, p.look(p.in())))
			}
			p.now = p.now.Add(time.Minute)
			p.reply(p.in().Newest().ID, "h000001", "upgrade", message.Reply{Action: message.Upgrade, Result: message.Result{Outcome: message.Done}}.Encode())
			for b.Loop() {
				if _, known := p.in().Newest().Forecast(p.now); !known {
					b.Fatal("there is no forecast")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*hosts), "ns/host")
		})
	}
}

// BenchmarkOverdue is the look for overdue hosts while all hosts of a run are at work and silent:
// its time per host must stay the same however many there are.
func BenchmarkOverdue(b *testing.B) {
	for _, hosts := range []int{1000, 10_000} {
		b.Run(fmt.Sprintf("%d-hosts", hosts), func(b *testing.B) {
			p := newPlayer(b)
			policy := rollout.Default(hosts)
			policy.Stages[0].MaxUnavailable = hosts
			e := message.Opened{Trigger: message.TriggerWindow, NotAfter: epoch.Add(4 * time.Hour), Rollout: policy}
			silent := map[string]time.Time{}
			for i := range hosts {
				e.Members = append(e.Members, fmt.Sprintf("h%05d", i+1))
				silent[e.Members[i]] = epoch.Add(time.Minute)
			}
			p.fact(e)
			run := p.in().Current()
			p.take(run, run.Next(p.now, p.look(p.in())))
			if overdue := run.Overdue(p.now.Add(2*time.Minute), silent); len(overdue) != hosts {
				b.Fatalf("%d hosts are overdue; want %d", len(overdue), hosts)
			}
			for b.Loop() {
				run.Overdue(p.now.Add(2*time.Minute), silent)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*hosts), "ns/host")
		})
	}
}
