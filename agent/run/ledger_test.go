package run

import (
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// TestConsidered checks which window was considered last: of a run by hand that
// of the run before it, also when what stood there was trimmed.
func TestConsidered(t *testing.T) {
	t.Parallel()
	end, window := epoch.Add(time.Hour), epoch.Add(-24*time.Hour)
	opened := func(e message.Opened) message.Record {
		e.Members, e.Rollout, e.NotAfter = []string{"h01"}, rollout.Default(1), end
		return message.Record{Seq: 7, Time: epoch, Kind: message.EventRecord, Body: message.EncodeEvent(e)}
	}
	for name, c := range map[string]struct {
		event message.Opened
		want  time.Time
	}{
		"a run of a window":          {message.Opened{Window: window}, window},
		"a run by hand":              {message.Opened{Considered: window}, window},
		"a run of a window, trimmed": {message.Opened{Window: end, Considered: window}, end},
		"the first run, by hand":     {message.Opened{}, time.Time{}},
	} {
		var l Ledger
		if err := l.Fold(opened(c.event).Decode()); err != nil || !l.Considered().Equal(c.want) {
			t.Errorf("%s: considered is %s, %v", name, l.Considered(), err)
		}
	}
}

// TestLastSeq checks that a run knows the last record that changed it, also
// after its end, and passes over those that change nothing.
func TestLastSeq(t *testing.T) {
	t.Parallel()
	p := newPlayer(t)
	for n, c := range []struct {
		line    string
		changes bool
	}{
		{"open h01", true},
		{"reply h01 prepare done", true},
		{"reply h01 prepare done", false},
		{"silent h02", false},
		{"at 2h", true}, // It times out, and the run ends.
		{"silent h01", false},
		{"reply h01 upgrade done", true},
		{"reply h01 upgrade done", false},
	} {
		p.line(strings.Fields(c.line), c.line)
		if last := uint64(len(p.log)); (p.in().Newest().LastSeq == last) != c.changes {
			t.Errorf("after line %d, %q, the last record that changes the run is %d of %d", n+1, c.line, p.in().Newest().LastSeq, last)
		}
	}
}

// TestRequestsBeforeTheFirstRun checks what is said to who asks before there was a run.
func TestRequestsBeforeTheFirstRun(t *testing.T) {
	t.Parallel()
	const none = "no run is in progress; to start one: osupgrade-agent start --override-window --reason …"
	for ask, want := range map[Ask]string{
		Pause: none, Resume: none, Abort: none, Approve: none, Release: "host h01 holds no slot: there was no run yet; there is nothing to release",
	} {
		decision := new(Ledger).Next(epoch, Seen{Request: &Request{Ask: ask, Host: "h01"}})
		if decision.Act != Refuse || decision.Refused.Error() != want {
			t.Errorf("%s is answered with %+v", ask, decision)
		}
	}
}
