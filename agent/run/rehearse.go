package run

import (
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/roster"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Usual is how long the work of a run took before: of all hosts together for
// prepare, of one host for its upgrade, and of the steps. Zero is unknown.
type Usual struct {
	Prepare, Host time.Duration
	Steps         StepTimes
}

// Rehearse returns the run that an event would open at a time, and when it is
// expected to end. It folds the records that its prepare would leave on a log, in
// which each host succeeds that is heard of and does not owe an earlier run an answer,
// and plays the rest as Forecast does. The forecast is nil when it is unknown how long
// a host takes. futile is why no host would be upgraded; empty when some would.
func Rehearse(at time.Time, e message.Opened, usual Usual) (opened *State, f *Forecast, futile string) {
	opened = rehearsed(at, e, usual.Steps)
	if usual.Host <= 0 {
		return opened, nil, ""
	}
	s := rehearsed(at, e, usual.Steps)
	r := rehearsal{s}
	r.fold(message.Record{Time: at, Kind: message.CommandAll}, message.Decoded{
		Command: &message.Command{Action: message.Prepare, Hosts: slices.Clone(e.Members), NotAfter: e.NotAfter},
	})
	end := at.Add(usual.Prepare)
	for _, host := range s.members.awaited() {
		if i := s.indexOf(host); !s.members[i].IsSilent() {
			r.fold(message.Record{Time: end, Kind: message.ReplyRecord, Host: host, Run: s.ID, Action: message.Prepare}, message.Decoded{
				Reply: &message.Reply{Action: message.Prepare, Result: message.Result{Outcome: message.Done}},
			})
		}
	}
	limit := at.Add(s.rollout.Timeouts.Prepare.Duration())
	if late := s.members.awaited(); len(late) > 0 && !s.beginsWithoutLate().IsZero() && s.beginsWithoutLate().Before(limit) {
		end = s.beginsWithoutLate()
		r.fold(message.Record{Time: end, Kind: message.EventRecord, Run: s.ID}, message.Decoded{Event: message.Late{Hosts: late}})
	} else if len(late) > 0 {
		end = times.Later(end, limit)
		r.fold(message.Record{Time: end, Kind: message.EventRecord, Run: s.ID}, message.Decoded{
			Event: message.Overdue{Hosts: late, Awaited: message.Awaited{Action: message.Prepare}},
		})
	}
	s.durations.usual = usual.Host
	if result, ends := s.ending(end); ends {
		return opened, nil, s.why(result, end)
	}
	played, _ := s.Forecast(end)
	return opened, &played, ""
}

// rehearsed is the run as it would be opened.
func rehearsed(at time.Time, e message.Opened, took StepTimes) *State {
	var cells roster.Cells
	hosts := roster.Open(e, at)
	cells.Open(e, hosts)
	return open(message.Record{Seq: 1, Time: at}, e, hosts, took)
}

// rehearsal is a run whose records are made up.
type rehearsal struct{ *State }

// fold applies a record as if it were the next on the log. One that changes nothing,
// as an answer that a host may not give, is left out.
func (r rehearsal) fold(record message.Record, d message.Decoded) {
	record.Seq = r.LastSeq + 1
	d.Record = record
	_ = r.Fold(&d)
}
