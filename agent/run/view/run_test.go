package view

import (
	"fmt"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// TestHostOfARun checks that a host is shown with when the run gives it up in its phase,
// and that a failed upgrade which was rolled back is shown as that, with its class.
func TestHostOfARun(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC)
	var l run.Ledger
	seq := uint64(0)
	fold := func(at time.Duration, r message.Record) {
		t.Helper()
		seq++
		r.Seq, r.Time = seq, start.Add(at)
		if err := l.Fold(r.Decode()); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(when, status string, givesUp time.Duration, rolledBack bool) {
		t.Helper()
		class := map[bool]string{true: "space"}[rolledBack]
		h := Run(l.Newest(), start, nil, nil, nil).Hosts[0]
		if h.Status != status || h.RolledBack != rolledBack || h.Class != class || (h.GivesUpAt == nil) != (givesUp == 0) || givesUp != 0 && !h.GivesUpAt.Equal(start.Add(givesUp)) {
			t.Errorf("%s the host is %+v, given up at %v", when, h, h.GivesUpAt)
		}
		if last := HostRun(l.Newest(), l.Newest().Hosts()[0]); last.Status != status || last.RolledBack != rolledBack || last.Class != class {
			t.Errorf("%s the last run of the host is %+v", when, last)
		}
	}
	hosts, end := []string{"h01"}, start.Add(4*time.Hour)
	fold(0, message.Record{Kind: message.EventRecord, Body: message.EncodeEvent(message.Opened{Members: hosts, Rollout: rollout.Default(1), NotAfter: end})})
	expect("before its prepare", "pending", 0, false)
	fold(0, message.Record{Kind: message.CommandAll, Body: message.Command{Action: message.Prepare, Hosts: hosts, NotAfter: end}.Encode()})
	expect("as it prepares", "preparing", time.Hour, false)
	fold(time.Minute, message.Record{Kind: message.ReplyRecord, Run: 2, Host: "h01", Action: message.Prepare, Body: message.Reply{Action: message.Prepare, Result: message.Result{Outcome: message.Done}}.Encode()})
	expect("when it is prepared", "prepared", 0, false)
	fold(2*time.Minute, message.Record{Kind: message.CommandHost, Run: 2, Body: message.Command{Action: message.Upgrade, Host: "h01"}.Encode()})
	expect("as it upgrades", "upgrading", 62*time.Minute, false)
	failed := message.Reply{Action: message.Upgrade, Result: message.NotDone(message.RolledBack, message.Space, "no space left")}
	fold(3*time.Minute, message.Record{Kind: message.ReplyRecord, Run: 2, Host: "h01", Action: message.Upgrade, Outcome: message.RolledBack, Class: message.Space, Body: failed.Encode()})
	expect("when it has failed", "failed", 0, true)
}

// TestPrintedRolledBack checks that a host whose script prints that the upgrade was rolled
// back is not shown as rolled back: only its worker can know, and says it beside the text.
func TestPrintedRolledBack(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC)
	hosts, end := []string{"h01"}, start.Add(4*time.Hour)
	reply := func(action message.Action, result string) message.Record {
		return message.Record{Kind: message.ReplyRecord, Run: 2, Host: "h01", Action: action, Body: fmt.Appendf(nil, `{"action":%q,"result":%q}`, action, result)}
	}
	var l run.Ledger
	for i, r := range []message.Record{
		{Kind: message.EventRecord, Body: message.EncodeEvent(message.Opened{Members: hosts, Rollout: rollout.Default(1), NotAfter: end})},
		{Kind: message.CommandAll, Body: message.Command{Action: message.Prepare, Hosts: hosts, NotAfter: end}.Encode()},
		reply(message.Prepare, "done"),
		{Kind: message.CommandHost, Run: 2, Body: message.Command{Action: message.Upgrade, Host: "h01"}.Encode()},
		reply(message.Upgrade, "upgrade.sh printed: half installed; rolled back"),
	} {
		r.Seq, r.Time = uint64(i+1), start.Add(time.Duration(i)*time.Minute)
		if err := l.Fold(r.Decode()); err != nil {
			t.Fatal(err)
		}
	}
	h := Run(l.Newest(), start, nil, nil, nil).Hosts[0]
	if h.Status != "failed" || h.RolledBack || h.Error != "upgrade.sh printed: half installed; rolled back" {
		t.Errorf("the host is %+v", h)
	}
}
