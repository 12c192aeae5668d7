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
