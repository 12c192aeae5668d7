package run

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// TestForgedRecords plays runs on whose log anybody writes commands, replies
// and events that are well-formed and make no sense: a controller that goes by
// it repeats no command, appends nothing that changes nothing, and comes to an
// end.
func TestForgedRecords(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p := newPlayer(rt)
		p.watch = (&tally{t: rt, p: p, sent: map[string]bool{}}).see
		e := drawOpening(rt, epoch)
		p.fact(e)
		for range rapid.IntRange(0, 60).Draw(rt, "records") {
			p.stopped = rapid.Bool().Draw(rt, "the controller is away")
			p.forged(rt, e)
			p.drive()
			p.refold()
		}
		p.stopped = false
		p.toTheEnd(p.drive)
		p.refold()
	})
}

// forged appends a record that anybody may have written.
func (p *player) forged(rt *rapid.T, opened message.Opened) {
	host := rapid.SampledFrom(opened.Members).Draw(rt, "host")
	action := rapid.SampledFrom([]message.Action{message.Prepare, message.Prepare, message.Upgrade, message.Reboot}).Draw(rt, "action")
	run := uint64(rapid.IntRange(0, 1).Draw(rt, "another run"))
	if newest := p.in().Newest(); run == 0 {
		run = newest.ID
	}
	r := message.Record{Kind: message.ReplyRecord, Run: run, Host: host, Action: action, Body: message.Reply{Action: action, Result: message.ResultOf(drawResult(rt))}.Encode(), Outcome: drawUnknown(rt)}
	switch rapid.IntRange(0, 5).Draw(rt, "kind") {
	case 0:
		r.Kind, r.Body = message.CommandHost, message.Command{Action: message.Upgrade, Host: host}.Encode()
	case 1:
		r.Kind, r.Body = message.CommandHost, message.Command{Action: message.Reboot, Host: host}.Encode()
	case 2:
		r.Kind, r.Body = message.CommandAll, message.Command{Action: message.Prepare, Hosts: []string{host}, NotAfter: opened.NotAfter}.Encode()
	case 3:
		p.now = p.now.Add(drawSpan(rt, "passes", 30*time.Minute))
		return
	case 4:
		r.Kind, r.Body = message.EventRecord, message.EncodeEvent(p.forgedEvent(rt, opened, run))
	}
	_ = p.fold(r)
}

func (p *player) forgedEvent(rt *rapid.T, opened message.Opened, run uint64) message.Event {
	kinds := []message.TaskKind{"", message.BeforeHost, message.Drain, message.AfterHost, message.Undrain, message.Fleet}
	hosts := rapid.SliceOfNDistinct(rapid.SampledFrom(opened.Members), 1, min(3, len(opened.Members)), rapid.ID).Draw(rt, "hosts")
	awaited := message.Awaited{
		Action: rapid.SampledFrom([]message.Action{"", message.Prepare, message.Upgrade, message.Reboot}).Draw(rt, "awaited"),
		Task:   rapid.SampledFrom(kinds).Draw(rt, "task"),
	}
	outcome := message.Outcome{
		Run: run, Kind: rapid.SampledFrom(kinds).Draw(rt, "outcome"), Host: hosts[0], Attempt: rapid.IntRange(0, 3).Draw(rt, "attempt"),
		OK: rapid.Bool().Draw(rt, "ok"),
	}
	return rapid.SampledFrom([]message.Event{
		message.Silent{Hosts: hosts},
		message.Recovered{Hosts: hosts},
		message.Busy{Host: hosts[0], NotNow: message.NewNotNow("eve", opened.NotAfter)},
		message.Idle{Host: hosts[0]},
		message.Deleted{Hosts: hosts},
		message.Released{Host: hosts[0], By: "eve"},
		message.Admitted{Host: hosts[0]},
		message.Slot{Host: hosts[0]},
		message.Ran{Outcome: outcome},
		message.Overdue{Hosts: hosts, Awaited: awaited},
		message.Cancelled{Hosts: hosts, Awaited: awaited},
		message.Approved{Stage: "s0", By: "eve"},
		message.Paused{By: "eve"},
		message.Resumed{By: "eve"},
	}).Draw(rt, "event")
}
