package news

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
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

// TestNewsOfRun checks that the news of a run name its release, or the run that it rolls back, and that
// those of a run without either have neither member.
func TestNewsOfRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		run  run.State
		want string
	}{
		"neither":    {run.State{ID: 61}, `{"tenant":"acme","text":"","run":61}`},
		"a release":  {run.State{ID: 61, Origin: run.Origin{Release: &release.Pin{Name: "spring"}}}, `{"tenant":"acme","text":"","run":61,"release":"spring"}`},
		"a rollback": {run.State{ID: 61, Origin: run.Origin{RollsBack: message.Interval{Since: 41, Of: 57}}}, `{"tenant":"acme","text":"","run":61,"rollback-of":57}`},
	} {
		told := NewTeller("acme", "log").ofRun(&c.run, v1.NewsRunFinished, "finished", time.Time{}, v1.NewsData{})
		if got, err := json.Marshal(told.Data); err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, c.want)
		}
	}
}

// TestSkipped checks what is told of skipped windows: of each once, and not of one that was skipped
// long ago.
func TestSkipped(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 5, 0, 0, 0, time.UTC)
	old := v1.SkippedWindow{Start: at.Add(time.Hour), End: at.Add(2 * time.Hour), By: "ann", At: at.Add(-recent), Reason: "stocktaking"}
	skipped := v1.SkippedWindow{Start: at.Add(48 * time.Hour), End: at.Add(50 * time.Hour), By: "ann", At: at.Add(-time.Minute), Reason: "Black Friday."}
	teller, skips := NewTeller("acme", "log"), v1.Skips{Windows: []v1.SkippedWindow{old, skipped}}
	all := teller.Skipped("basel", skips, at)
	if len(all) != 1 {
		t.Fatalf("told are %+v", all)
	}
	const want = "The window of environment basel of tenant acme from 2026-11-24T05:00:00Z to 2026-11-24T07:00:00Z was skipped by ann: Black Friday."
	n := all[0]
	if n.Type != v1.NewsWindowSkipped || n.Data.Text != want || n.Data.Environment != "basel" || n.Data.RequestedBy != "ann" || n.Data.Reason != "Black Friday." || !n.Timestamp.Equal(skipped.At) || !n.Data.Window.Equal(skipped.Start) {
		t.Errorf("told is %+v", n)
	}
	if again := NewTeller("acme", "log").Skipped("basel", skips, at.Add(time.Hour)); len(again) != 1 || again[0].ID != n.ID {
		t.Errorf("it is told twice: %+v", again)
	}
	again := skipped
	again.At = at
	for what, other := range map[string][]v1.News{
		"environment": teller.Skipped("bern", skips, at), "skip of the same window": teller.Skipped("basel", v1.Skips{Windows: []v1.SkippedWindow{again}}, at),
	} {
		if len(other) != 1 || other[0].ID == n.ID {
			t.Errorf("of another %s is told %+v", what, other)
		}
	}
	if got := teller.Skipped("", v1.Skips{Windows: []v1.SkippedWindow{skipped}}, at)[0]; got.Data.Environment != "" || !strings.HasPrefix(got.Data.Text, "The window of tenant acme from") {
		t.Errorf("of the default environment is told %+v", got)
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
	upToDate := missed
	upToDate.Release, upToDate.Reason = "nov sha256:abc", "all 3 hosts have release nov"
	const want = "Environment basel of tenant acme needed no run in a window, from 2026-11-21T01:00:00Z to 2026-11-21T05:00:00Z: all 3 hosts have release nov."
	if u := teller.Missed(7, at, upToDate); u.Type != v1.NewsWindowUpToDate || u.Data.Text != want {
		t.Errorf("of a window that needed no run it tells %+v", u)
	}
	missed.Environment = ""
	if d := teller.Missed(7, at, missed); d.Data.Environment != "" || !strings.HasPrefix(d.Data.Text, "Tenant acme missed a window") || d.ID != n.ID {
		t.Errorf("of the default one it tells %+v", d)
	}
}
