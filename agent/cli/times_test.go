package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestTimesOfOthers checks that each screen has one form of time, in the zone of whoever typed
// the command, and that what people, calendars and hosts have said stays as they said it: there
// a time may be part of a command to copy.
func TestTimesOfOthers(t *testing.T) {
	t.Parallel()
	const theirs = "2026-11-21T01:30:00Z"
	fail := func(action message.Action) answer {
		if action == message.Upgrade {
			return answer{time.Minute, message.NotDone(message.RolledBack, message.Space, "no snapshot of "+theirs)}
		}
		return usual(action)
	}
	want := intended{windows: saturdays, rollout: canary(v1.Stage{}), calendars: map[string]v1.Calendar{
		"shop": {Kind: "freeze", Events: []v1.Event{{Summary: "sale until " + theirs, Start: "2026-11-21T03:00", Duration: "1h"}}},
	}}
	play(t, want, threeHosts, func(s *scene) {
		s.host("h01", fail)
		follows := s.watches("watch")
		s.until(1, 1, 0)
		screens := s.types("pause", "--reason", "look at "+theirs) + s.types("pause", "--reason", "again")
		s.until(1, 2, 0)
		screens += s.types("status") + s.types("runs", "2") + s.types("start")
		s.types("resume", "--reason", "from "+theirs)
		s.until(1, 10, 0)
		screens += s.types("abort", "--yes", "--reason", "wrong since "+theirs) + s.types("runs", "2")
		s.until(2, 59, 0)
		screens += s.types("status") + s.types("hosts", "h01") + s.types("runs") + s.types("windows")
		s.until(3, 10, 0)
		screens += s.types("status") + s.types("start") + s.types("start", "--dry-run") + follows()
		for _, words := range []string{"look at ", "from ", "wrong since ", "sale until ", "no snapshot of "} {
			if !strings.Contains(screens, words+theirs) {
				t.Errorf("nothing shows %q", words+theirs)
			}
		}
		for line := range strings.Lines(screens) {
			if found := instants.FindString(strings.ReplaceAll(line, theirs, "")); found != "" || strings.Contains(line, "UTC") {
				t.Errorf("a time has another form in: %s", line)
			}
		}
		if t.Failed() {
			t.Log(screens)
		}
	})
}
