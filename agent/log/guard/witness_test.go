package guard

import (
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// witnessed returns the witness of a log: prepare 3 to all, its reply of h01 at 4, an
// upgrade of h01 at 6 and of h02 at 8, which h02 answers at 9, and 10 records in all.
func witnessed() *Witness {
	command := func(seq uint64, host string) message.Record {
		return message.Record{Seq: seq, Kind: message.CommandHost, Host: host, Run: 3, Body: message.Command{Action: message.Upgrade, Host: host}.Encode()}
	}
	all := []message.Record{
		{Seq: 1, Kind: message.EventRecord},
		{Seq: 2, Kind: message.EventRecord},
		{Seq: 3, Kind: message.CommandAll},
		{Seq: 4, Kind: message.ReplyRecord, Run: 3, Host: "h01", Action: message.Prepare},
		{Seq: 5, Kind: message.EventRecord},
		command(6, "h01"),
		{Seq: 7, Kind: message.ReplyRecord, Run: 2, Host: "h01", Action: message.Upgrade},
		command(8, "h02"),
		{Seq: 9, Kind: message.ReplyRecord, Run: 3, Host: "h02", Action: message.Upgrade},
		{Seq: 10, Kind: message.EventRecord},
	}
	w := NewWitness()
	for _, r := range all {
		r.Time = noon.Add(time.Duration(r.Seq) * time.Second)
		w.Fold(r.Decode())
	}
	return &w
}

// TestWitness checks what a host may know of a log, and that whatever else it knows is
// told, with the host's name.
func TestWitness(t *testing.T) {
	t.Parallel()
	at := func(seq uint64) time.Time { return noon.Add(time.Duration(seq) * time.Second) }
	for name, c := range map[string]struct {
		host string
		seen message.Position
		want string
	}{
		"its newest command":          {"h01", message.Position{Seq: 6, At: at(6), Action: message.Upgrade}, ""},
		"and its reply":               {"h02", message.Position{Seq: 8, At: at(8), Action: message.Upgrade, Answered: true}, ""},
		"a command before":            {"h01", message.Position{Seq: 3, At: at(3), Action: message.Prepare, Answered: true}, ""},
		"an older run":                {"h01", message.Position{Seq: 1, At: noon, Action: message.Reboot, Answered: true}, ""},
		"the prepare of others":       {"h09", message.Position{Seq: 3, At: at(3)}, ""},
		"no time":                     {"h01", message.Position{Seq: 6, Action: message.Upgrade}, ""},
		"past the end":                {"h01", message.Position{Seq: 11, At: at(11)}, "host h01 knows record 11, and the log ends at record 10"},
		"a command that is not there": {"h01", message.Position{Seq: 8, At: at(8)}, "host h01 knows command 8, and the newest one to it on the log is 6"},
		"another record":              {"h01", message.Position{Seq: 6, At: noon}, "host h01 knows record 6 of 2026-11-21T12:00:00Z, and the one on the log is of 2026-11-21T12:00:06Z"},
		"a reply that is not there":   {"h01", message.Position{Seq: 6, At: at(6), Action: message.Upgrade, Answered: true}, "host h01 has replied to command 6 (upgrade of run 3), and its reply is not on the log"},
		"a prepare without its reply": {"h03", message.Position{Seq: 3, At: at(3), Action: message.Prepare, Answered: true}, "host h03 has replied to command 3 (prepare of run 3), and its reply is not on the log"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			switch err := witnessed().Compare(c.host, c.seen); {
			case c.want == "" && err != nil:
				t.Errorf("the log is not taken for the host's: %v", err)
			case c.want != "" && (err == nil || err.Error() != c.want):
				t.Errorf("the error is %v, not %q", err, c.want)
			}
		})
	}
}

// TestWitnessOfEnvironments checks that the prepare of one environment takes nothing back that
// is known of the hosts of another, and that a host which a gate has told of the prepare of the
// default environment is believed.
func TestWitnessOfEnvironments(t *testing.T) {
	t.Parallel()
	prepare := func(seq uint64, environment string, hosts ...string) message.Record {
		return message.Record{Seq: seq, Kind: message.CommandAll, Environment: environment, Body: message.Command{Action: message.Prepare, Hosts: hosts, NotAfter: noon}.Encode()}
	}
	reply := func(seq, run uint64, host string, action message.Action) message.Record {
		return message.Record{Seq: seq, Kind: message.ReplyRecord, Run: run, Host: host, Action: action}
	}
	w := NewWitness()
	for _, r := range []message.Record{
		{Seq: 21, Kind: message.EventRecord},
		prepare(22, "basel", "b1", "b2"),
		reply(23, 22, "b1", message.Prepare),
		{Seq: 24, Kind: message.CommandHost, Host: "b1", Run: 22, Body: message.Command{Action: message.Upgrade, Host: "b1"}.Encode()},
		prepare(25, "", "h1"),
		prepare(26, "bern", "c1"),
		{Seq: 27, Kind: message.EventRecord},
	} {
		w.Fold(r.Decode())
	}
	for name, c := range map[string]struct {
		host string
		seen message.Position
		want string
	}{
		"its newest command":                       {"b1", message.Position{Seq: 24, Action: message.Upgrade}, ""},
		"a reply that is not there":                {"b1", message.Position{Seq: 24, Action: message.Upgrade, Answered: true}, "host b1 has replied to command 24 (upgrade of run 22), and its reply is not on the log"},
		"a prepare without its reply":              {"b2", message.Position{Seq: 22, Action: message.Prepare, Answered: true}, "host b2 has replied to command 22 (prepare of run 22), and its reply is not on the log"},
		"the default prepare":                      {"b2", message.Position{Seq: 25}, ""},
		"the prepare of another environment":       {"b2", message.Position{Seq: 26}, "host b2 knows command 26, and the newest one to it on the log is 22"},
		"a prepare, by a host that none has named": {"x9", message.Position{Seq: 26}, ""},
		"a command, by a host that none has named": {"x9", message.Position{Seq: 27}, "host x9 knows command 27, and the newest one to it on the log is 25"},
		"a command that was trimmed with its run":  {"x9", message.Position{Seq: 20, Action: message.Reboot, Answered: true}, ""},
		"past the end":                             {"c1", message.Position{Seq: 28}, "host c1 knows record 28, and the log ends at record 27"},
	} {
		switch err := w.Compare(c.host, c.seen); {
		case c.want == "" && err != nil:
			t.Errorf("%s: the log is not taken for the host's: %v", name, err)
		case c.want != "" && (err == nil || err.Error() != c.want):
			t.Errorf("%s: the error is %v, not %q", name, err, c.want)
		}
	}
	w.Fold(prepare(28, "bern", "b1").Decode())
	if err := w.Compare("b1", message.Position{Seq: 28}); err != nil {
		t.Errorf("a host that has moved is not believed: %v", err)
	}
}

// TestWitnessOfAnEmptyLog checks that a log that lost all is found out as well.
func TestWitnessOfAnEmptyLog(t *testing.T) {
	t.Parallel()
	w := NewWitness()
	w.Fold(message.Record{Seq: 1, Kind: message.ReplyRecord, Run: 1, Action: message.Prepare, Host: "h01"}.Decode())
	w.Fold(message.Record{Seq: 2, Kind: message.CommandHost, Host: "h01", Run: 1, Body: []byte("{")}.Decode())
	if err := w.Compare("h01", message.Position{Seq: 3}); err == nil || !strings.Contains(err.Error(), "h01 knows record 3") {
		t.Errorf("it is %v", err)
	}
}

// TestTold checks that how far hosts know the log outlives the process, whether anything
// else is kept or not, and until the log is accepted.
func TestTold(t *testing.T) {
	t.Parallel()
	f := openSlow(t)
	close(f.let)
	if err := f.Guard("acme").Told(70); err != nil {
		t.Fatal(err)
	}
	again, err := OpenFile(f.path)
	if err != nil {
		t.Fatal(err)
	}
	if err := keep(again, "acme", 3); err != nil {
		t.Fatal(err)
	}
	if s := again.State("acme"); s.Told != 70 || s.Seq != 3 {
		t.Errorf("it has %+v", s)
	}
	if err := again.Forget("acme"); err != nil || again.State("acme") != (State{}) {
		t.Errorf("it is forgotten with %v, and is %+v", err, again.State("acme"))
	}
	if again, err = OpenFile(f.path); err != nil || again.State("acme") != (State{}) {
		t.Errorf("it is read as %+v, %v", again.State("acme"), err)
	}
}
