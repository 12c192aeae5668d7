package worker

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/decide"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// now is the time of the journals and commands below, and later the end of their run.
var (
	now   = time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC)
	later = now.Add(time.Hour)
)

// unknownPast is the reply of a host without a journal.
const unknownPast = "this host has no journal, so what it did before is unknown"

// prepared is the journal of a host that has answered prepare of run 10.
func prepared() decide.Journal {
	return decide.Journal{Run: 10, NotAfter: later, Seq: 10, Action: message.Prepare, Phase: decide.Answered, BootID: "boot-1", Result: message.ResultOf("done")}
}

// upgradedWith is the journal of a host that has answered the upgrade of run 10.
func upgradedWith[S ~string](result S) decide.Journal {
	return decide.Journal{Run: 10, NotAfter: later, Seq: 11, Action: message.Upgrade, Phase: decide.Answered, BootID: "boot-1", Result: message.ResultOf(string(result))}
}

func commandAt(seq, run uint64, action message.Action, host string) message.Record {
	return message.Record{Seq: seq, Time: now.Add(-time.Minute), Kind: message.CommandHost, Run: run, Body: message.Command{Action: action, Host: host}.Encode()}
}

func prepareAt(seq uint64, end time.Time, hosts ...string) message.Record {
	return message.Record{Seq: seq, Time: now.Add(-time.Minute), Kind: message.CommandAll, Body: message.Command{Action: message.Prepare, Hosts: hosts, NotAfter: end}.Encode()}
}

func ofLog(log string, r message.Record) message.Record {
	r.Log = log
	return r
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// sealOf returns the file of a journal that says so.
func sealOf(journal string) []byte {
	return fmt.Appendf(nil, `{"format":1,"journal":%s,"sum":"%x"}`, journal, sha256.Sum256([]byte(journal)))
}
