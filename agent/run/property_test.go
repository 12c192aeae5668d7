package run

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// TestInvariants plays runs whose hosts answer in any order, twice, wrongly or
// never, and checks the invariants of design.md 5 after each record.
func TestInvariants(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p := newProperty(t, rapid.IntRange(1, 6).Draw(rt, "hosts"), rapid.IntRange(0, 3).Draw(rt, "silent hosts"))
		for range rapid.IntRange(0, 40).Draw(rt, "events") {
			p.random(rt)
			p.step()
			p.check(rt)
		}
		p.now = p.now.Add(5 * time.Hour)
		p.step()
		if p.ledger.Current() != nil {
			rt.Fatalf("invariant 7: the run goes on after not-after")
		}
		p.refold()
	})
}

type property struct {
	player
	names []string
	// upgrades and reboots count the commands sent per host.
	upgrades, reboots map[string]int
	sentAfterEnd      bool
	// silent are the hosts that have not recovered, and crowded tells that an
	// upgrade was sent while there was one.
	silent  map[string]bool
	crowded bool
}

func newProperty(t *testing.T, hosts, silent int) *property {
	p := &property{player: player{t: t, now: epoch}, upgrades: map[string]int{}, reboots: map[string]int{}, silent: map[string]bool{}}
	for i := range hosts {
		p.names = append(p.names, fmt.Sprintf("h%02d", i+1))
	}
	words := append(slices.Clone(p.names), "silent")
	for i := range silent {
		name := fmt.Sprintf("s%02d", i+1)
		words = append(words, name)
		p.silent[name] = true
	}
	p.append(message.Record{Kind: message.EventRecord, Body: opening(words).Encode()})
	p.step()
	return p
}

func (p *property) random(rt *rapid.T) {
	if rapid.IntRange(0, 9).Draw(rt, "time passes") == 0 {
		p.now = p.now.Add(time.Hour)
		return
	}
	if rapid.IntRange(0, 4).Draw(rt, "a host recovers") == 0 {
		p.recovers(rt)
		return
	}
	host := rapid.SampledFrom(append(p.names, "stranger", "s01")).Draw(rt, "host")
	action := rapid.SampledFrom([]message.Action{message.Prepare, message.Upgrade, message.Reboot}).Draw(rt, "action")
	result := rapid.SampledFrom([]string{message.Done, message.Done, message.RebootRequired, "no space left"}).Draw(rt, "result")
	run := rapid.SampledFrom([]uint64{p.ledger.Newest().ID, p.ledger.Newest().ID, 1}).Draw(rt, "run")
	p.reply(run, host, string(action), message.Reply{Action: action, Result: result}.Encode())
}

// recovers tells of a host that has recovered, or is said to have.
func (p *property) recovers(rt *rapid.T) {
	e := message.Event{
		Event: message.Recovered, Hosts: []string{rapid.SampledFrom([]string{"s01", "s02", "s03", "h01"}).Draw(rt, "recovers")},
		Reason: rapid.SampledFrom([]string{message.Heard, message.Deleted}).Draw(rt, "reason"),
	}
	p.append(message.Record{Kind: message.EventRecord, Body: e.Encode()})
	delete(p.silent, e.Hosts[0])
}

// step drives the run and counts what is sent.
func (p *property) step() {
	before := len(p.log)
	p.drive()
	for _, r := range p.log[before:] {
		command, err := message.DecodeCommand(r.Body)
		if r.Kind == message.EventRecord || err != nil {
			continue
		}
		p.sentAfterEnd = p.sentAfterEnd || !p.now.Before(p.ledger.Newest().NotAfter)
		switch command.Action {
		case message.Upgrade:
			p.upgrades[command.Host]++
			p.crowded = p.crowded || len(p.silent) > 0
		case message.Reboot:
			p.reboots[command.Host]++
		case message.Prepare:
		}
	}
}

func (p *property) check(rt *rapid.T) {
	s := p.ledger.Newest()
	down, counts := 0, map[Status]int{}
	for _, h := range s.Hosts() {
		counts[h.Status]++
		if h.Status.OutOfService() {
			down++
		}
		if p.upgrades[h.Name] > 1 || p.reboots[h.Name] > 1 {
			rt.Fatalf("invariant 2: %s was sent upgrade %d times and reboot %d times", h.Name, p.upgrades[h.Name], p.reboots[h.Name])
		}
		if s.Over() && !h.Status.Final() {
			rt.Fatalf("%s is %s though the run is over", h.Name, h.Status)
		}
	}
	if down > 1 {
		rt.Fatalf("invariant 1: %d hosts are out of service at once", down)
	}
	if p.crowded {
		rt.Fatalf("invariant 1: a host was upgraded while a silent one held the slot")
	}
	if p.sentAfterEnd {
		rt.Fatalf("invariant 3: a command was sent after not-after")
	}
	for status, n := range counts {
		if s.Count(status) != n {
			rt.Fatalf("%d hosts are counted as %s, and %d are", s.Count(status), status, n)
		}
	}
}

// TestTransitionsLeadToAnEnd walks the table of transitions: from each status
// a final one can be reached, and every status that follows is one we know
// (invariant 7).
func TestTransitionsLeadToAnEnd(t *testing.T) {
	t.Parallel()
	final := map[Status]bool{Upgraded: true, HostFailed: true, Skipped: true, Unreachable: true}
	for from := range transitions {
		seen := map[Status]bool{}
		queue := []Status{from}
		ends := false
		for len(queue) > 0 {
			at := queue[0]
			queue = queue[1:]
			if seen[at] {
				continue
			}
			seen[at] = true
			ends = ends || final[at]
			if at.Final() && !final[at] {
				t.Errorf("%s leads to %s, which is no status", from, at)
			}
			queue = append(queue, transitions[at]...)
		}
		if !ends {
			t.Errorf("%s leads to no end", from)
		}
	}
}

// BenchmarkSerialRun is the pure part of a run over many hosts; its time must
// grow with their number, not its square.
func BenchmarkSerialRun(b *testing.B) {
	for _, hosts := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprintf("%d-hosts", hosts), func(b *testing.B) {
			for b.Loop() {
				serial(b, hosts)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*hosts), "ns/host")
		})
	}
}

func serial(b *testing.B, hosts int) {
	p := &player{now: epoch}
	var names []string
	for i := range hosts {
		names = append(names, fmt.Sprintf("h%05d", i+1))
	}
	p.append(message.Record{Kind: message.EventRecord, Body: opening(names).Encode()})
	done := func(action message.Action, host string) {
		p.reply(p.ledger.Newest().ID, host, string(action), message.Reply{Action: action, Result: message.Done}.Encode())
	}
	for p.ledger.Current() != nil {
		step := p.ledger.Current().Next(p.now)
		switch {
		case step.Act == Finish:
			p.append(message.Record{Kind: message.EventRecord, Body: step.Event.Encode()})
		case step.Command.Action == message.Prepare:
			p.append(message.Record{Kind: message.CommandAll, Body: step.Command.Encode()})
			for _, name := range names {
				done(message.Prepare, name)
			}
		default:
			p.append(message.Record{Kind: message.CommandHost, Run: p.ledger.Current().ID, Host: step.Command.Host, Body: step.Command.Encode()})
			done(message.Upgrade, step.Command.Host)
		}
	}
	if p.ledger.Newest().Result != Completed {
		b.Fatal(p.ledger.Newest().Reason)
	}
}
