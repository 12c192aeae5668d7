package news

import (
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestMissed checks what is told of a missed window, and that its id follows from the record
// alone: each process tells the same, and another tenant, log or record is something else.
func TestMissed(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 5, 0, 0, 0, time.UTC)
	missed := message.Missed{Window: at.Add(-time.Hour), WindowEnd: at, Reason: "no host was online"}
	n := NewTeller("acme", "log").Missed(7, at, missed)
	const want = "Tenant acme missed a window, from 2026-11-22T04:00:00Z to 2026-11-22T05:00:00Z: no host was online."
	if n.Type != v1.NewsWindowMissed || n.Data.Text != want || n.Data.Run != 0 || !n.Timestamp.Equal(at) || !n.Data.Window.Equal(missed.Window) || !n.Data.WindowEnd.Equal(at) {
		t.Errorf("told is %+v", n)
	}
	later := NewTeller("acme", "log")
	later.run = 41 // It has followed a run meanwhile.
	if again := later.Missed(7, at, missed); again.ID != n.ID {
		t.Errorf("another process tells it as %s, not %s", again.ID, n.ID)
	}
	for what, other := range map[string]v1.News{
		"tenant": NewTeller("other", "log").Missed(7, at, missed), "log": NewTeller("acme", "restored").Missed(7, at, missed), "record": NewTeller("acme", "log").Missed(8, at, missed),
	} {
		if other.ID == n.ID {
			t.Errorf("news of another %s have the same id", what)
		}
	}
	missed.Reason = strings.Repeat("x", 10*maxText)
	if long := NewTeller("acme", "log").Missed(7, at, missed); len(long.Data.Text) > maxText+len("…") || len(long.Data.Reason) > maxText+len("…") {
		t.Errorf("a text has %d bytes, a reason %d", len(long.Data.Text), len(long.Data.Reason))
	}
}

// TestID checks that what is told of a run has an id that a header and a subject take.
func TestID(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, key := range []string{"opened", "finished", "stage a", "stage b", "host h.1 *>", "host h.1\n2"} {
		for _, run := range []uint64{0, 1, 12} {
			got := id("acme", "log", run, key)
			if len(got) != len("msg_")+32 || strings.Trim(got, "msg_0123456789abcdef") != "" || seen[got] {
				t.Errorf("the id of %q in run %d is %q", key, run, got)
			}
			seen[got] = true
		}
	}
}

// TestMissedOfEnvironment checks that news of a window name the environment that missed it, and that
// their id does not depend on it.
func TestMissedOfEnvironment(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 5, 0, 0, 0, time.UTC)
	missed := message.Missed{Environment: "basel", Window: at.Add(-4 * time.Hour), WindowEnd: at}
	teller := NewTeller("acme", "log")
	n := teller.Missed(7, at, missed)
	if n.Data.Environment != "basel" || !strings.HasPrefix(n.Data.Text, "Environment basel of tenant acme missed a window, from 2026-11-21T01:00:00Z") {
		t.Errorf("it tells %+v", n.Data)
	}
	missed.Environment = ""
	if d := teller.Missed(7, at, missed); d.Data.Environment != "" || !strings.HasPrefix(d.Data.Text, "Tenant acme missed a window") || d.ID != n.ID {
		t.Errorf("of the default one it tells %+v", d)
	}
}
