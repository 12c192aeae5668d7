package run

import (
	"fmt"
	"reflect"
	"regexp"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// deed is something that happens in an environment, and how much time passes then. Which host
// it happens to follows from the state.
type deed struct {
	in          string
	what, which int
	passes      time.Duration
}

// TestEnvironmentsAreIndependent plays random histories of two environments, and the one of the
// first alone. The records of the first are the same, at the same times, but for their numbers:
// whatever happens in an environment changes nothing in another.
func TestEnvironmentsAreIndependent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		openings := map[string][]message.Opened{}
		for _, name := range []string{"basel", "bern"} {
			for range 3 {
				e := drawOpening(rt, epoch)
				// With a splay, the order of the hosts goes by the number of the run.
				e.Environment, e.Rollout.Splay, e.Roster, e.Rollout.NoReboot = name, "", nil, nil
				for i := range e.Members {
					e.Members[i] = name + "-" + e.Members[i]
				}
				for _, g := range e.Rollout.Start {
					for i := range g.Hosts {
						g.Hosts[i] = name + "-" + g.Hosts[i]
					}
				}
				openings[name] = append(openings[name], e)
			}
		}
		var deeds []deed
		for range rapid.IntRange(1, 80).Draw(rt, "deeds") {
			d := deed{in: rapid.SampledFrom([]string{"basel", "bern"}).Draw(rt, "in"), what: rapid.IntRange(0, 9).Draw(rt, "what"), which: rapid.IntRange(0, 59).Draw(rt, "which")}
			if rapid.Bool().Draw(rt, "time passes") {
				d.passes = drawSpan(rt, "passes", 20*time.Minute)
			}
			deeds = append(deeds, d)
		}
		both, alone := recordsOf(rt, openings, deeds, true), recordsOf(rt, openings, deeds, false)
		for i := range min(len(both), len(alone)) {
			if both[i] != alone[i] {
				rt.Fatalf("beside another environment record %d of this one is\n%s\nand alone\n%s", i+1, both[i], alone[i])
			}
		}
		if !reflect.DeepEqual(both, alone) {
			rt.Fatalf("beside another environment this one has %d records, and alone %d", len(both), len(alone))
		}
	})
}

// recordsOf plays what happens, in the first environment only or in both, and returns the
// records of the first without their numbers.
func recordsOf(rt *rapid.T, openings map[string][]message.Opened, deeds []deed, both bool) (records []string) {
	p := newPlayer(rt)
	p.sideBySide = true
	p.watch = func(r message.Record, _ error) {
		if e := p.ledger.Last(); e != nil && e.Name == "basel" {
			records = append(records, fmt.Sprintf("%s: %d %s %s %s", r.Time.Sub(epoch), r.Kind, r.Host, r.Action, withoutNumbers(r.Body)))
		}
	}
	opened := map[string]int{}
	for _, d := range deeds {
		if both || d.in == "basel" {
			p.environment = d.in
			p.does(d, openings[d.in], opened)
			p.drive()
		}
		p.passTo(p.now.Add(d.passes))
	}
	return records
}

// numbers are the sequences in a record; the first record of a log has no roster-as-of.
var numbers = regexp.MustCompile(`("run":|run )[0-9]+|"roster-as-of":[0-9]+,`)

func withoutNumbers(body []byte) []byte { return numbers.ReplaceAll(body, []byte("$1")) }

// does has something happen: between runs the next one is opened.
func (p *player) does(d deed, openings []message.Opened, opened map[string]int) {
	run := p.in().Current()
	if run == nil {
		if n := opened[d.in]; n < len(openings) {
			e := openings[n]
			opened[d.in]++
			e.NotAfter, e.Roster, e.RosterAsOf = p.now.Add(e.NotAfter.Sub(epoch)), p.ledger.Opening(d.in, e.Members, nil, nil), p.ledger.RosterAsOf(d.in)
			p.fact(e)
		}
		return
	}
	m := &run.members[d.which%len(run.members)]
	outcome := []message.Result{{Outcome: message.Done}, {Outcome: message.Done}, {Outcome: message.RebootRequired}, message.NotDone(message.Failed, "", "no space left")}[d.which%4]
	switch task, _, wanted := run.Task(m.Name); d.what {
	case 0:
		p.fact(message.Silent{Hosts: []string{m.Name}})
	case 1:
		p.fact(message.Recovered{Hosts: []string{m.Name}})
	case 2:
		p.fact([]message.Event{message.Paused{By: "ann"}, message.Resumed{By: "ann"}, message.Aborted{By: "ann"}, message.Approved{Stage: "s0", By: "ann"}}[d.which%4])
	default:
		if wanted {
			p.fact(message.Ran{Outcome: task.Outcome(d.which%4 > 0, "text")})
		} else if asked := m.asked(); asked != "" {
			p.reply(run.ID, m.Name, string(asked), message.Reply{Action: asked, Result: outcome}.Encode())
		}
	}
}
