package view

import (
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/policy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
)

// TestHostOfARun checks that a host is shown with when the run gives it up at its step,
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
	is := func(when, status string, givesUp time.Duration, rolledBack bool) {
		t.Helper()
		class := map[bool]string{true: "space"}[rolledBack]
		h := Run(l.Newest(), start, nil, nil).Hosts[0]
		if h.Status != status || h.RolledBack != rolledBack || h.Class != class || (h.GivesUpAt == nil) != (givesUp == 0) || givesUp != 0 && !h.GivesUpAt.Equal(start.Add(givesUp)) {
			t.Errorf("%s the host is %+v, given up at %v", when, h, h.GivesUpAt)
		}
		if last := HostRun(l.Newest(), l.Newest().Hosts()[0]); last.Status != status || last.RolledBack != rolledBack || last.Class != class {
			t.Errorf("%s the last run of the host is %+v", when, last)
		}
	}
	hosts, end := []string{"h01"}, start.Add(4*time.Hour)
	fold(0, message.Record{Kind: message.EventRecord, Body: message.EncodeEvent(message.Opened{Members: hosts, Policy: policy.Default(1), NotAfter: end})})
	is("before its prepare", "pending", 0, false)
	fold(0, message.Record{Kind: message.CommandAll, Body: message.Command{Action: message.Prepare, Hosts: hosts, NotAfter: end}.Encode()})
	is("as it prepares", "preparing", time.Hour, false)
	fold(time.Minute, message.Record{Kind: message.ReplyRecord, Run: 2, Host: "h01", Action: message.Prepare, Body: message.Reply{Action: message.Prepare, Result: message.Done}.Encode()})
	is("when it is prepared", "prepared", 0, false)
	fold(2*time.Minute, message.Record{Kind: message.CommandHost, Run: 2, Body: message.Command{Action: message.Upgrade, Host: "h01"}.Encode()})
	is("as it upgrades", "upgrading", 62*time.Minute, false)
	failed := message.Reply{Action: message.Upgrade, Result: message.RolledBack("no space left")}
	fold(3*time.Minute, message.Record{Kind: message.ReplyRecord, Run: 2, Host: "h01", Action: message.Upgrade, Class: message.Space, Body: failed.Encode()})
	is("when it has failed", "failed", 0, true)
}
