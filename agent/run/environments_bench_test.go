package run

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// BenchmarkEnvironments plays the runs of 6,000 hosts in one or in many environments, which take
// turns: what a record costs must not grow with the number of environments. The hosts do
// everything at once.
func BenchmarkEnvironments(b *testing.B) {
	const hosts = 6000
	for _, environments := range []int{1, 60, 600} {
		for _, atOnce := range []bool{false, true} {
			name := map[bool]string{false: "serial", true: "all-at-once"}[atOnce]
			b.Run(fmt.Sprintf("%s/%d-environments", name, environments), func(b *testing.B) {
				records, before := uint64(0), processor(b)
				for b.Loop() {
					n := night{now: epoch}
					for i := range environments {
						n.open(fmt.Sprintf("e%03d", i), hosts/environments, atOnce)
					}
					n.play(b)
					records += n.ledger.LastSeq
				}
				b.ReportMetric(float64((processor(b)-before).Nanoseconds())/float64(records), "cpu-ns/record")
			})
		}
	}
}

// processor is the processor time of this process.
func processor(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano())
}

// night is a fold whose runs take turns.
type night struct {
	ledger Ledger
	turns  Turns
	now    time.Time
}

func (n *night) open(environment string, hosts int, atOnce bool) {
	e := message.Opened{Environment: environment, Trigger: message.TriggerWindow, NotAfter: n.now.Add(4 * time.Hour), Rollout: rollout.Default(hosts)}
	if atOnce {
		e.Rollout.Stages[0].MaxUnavailable = hosts
	}
	for i := range hosts {
		e.Members = append(e.Members, fmt.Sprintf("%s-h%04d", environment, i))
	}
	n.fold(message.Record{Kind: message.EventRecord}, message.Decoded{Event: e})
}

func (n *night) fold(r message.Record, d message.Decoded) {
	r.Seq, r.Time = n.ledger.LastSeq+1, n.now
	d.Record = r
	_ = n.ledger.Fold(d)
	n.turns.Wake(n.ledger.Touched()...)
}

// play carries out the decisions of all runs until they have ended.
func (n *night) play(b *testing.B) {
	b.Helper()
	for len(n.ledger.UnderWay()) > 0 {
		e, decision := n.next()
		if e == nil {
			b.Fatalf("%d runs wait", len(n.ledger.UnderWay()))
		}
		if decision.Act == Note {
			n.fold(message.Record{Kind: message.EventRecord, Run: e.Key()}, message.Decoded{Event: decision.Event})
			continue
		}
		command := decision.Command
		r := message.Record{Kind: message.CommandHost, Run: e.Newest().ID, Host: command.Host}
		hosts := []string{command.Host}
		if command.Action == message.Prepare {
			r.Kind, r.Environment, hosts = message.CommandAll, e.Name, command.Hosts
		}
		n.fold(r, message.Decoded{Command: &command})
		for _, host := range hosts {
			n.fold(message.Record{Kind: message.ReplyRecord, Run: e.Newest().ID, Host: host, Action: command.Action},
				message.Decoded{Reply: &message.Reply{Action: command.Action, Result: message.Result{Outcome: message.Done}}})
		}
	}
}

// next is the first decision other than to wait.
func (n *night) next() (*Environment, Decision) {
	for e, decision := range n.turns.Next(n.now, func(*Environment) Seen { return Seen{} }) {
		if decision.Act != Wait {
			return e, decision
		}
	}
	return nil, Decision{}
}
