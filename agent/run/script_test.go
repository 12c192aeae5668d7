package run

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the transcripts anew")

// TestScripts plays each scenario of testdata/scripts: a line is an event, the
// lines below it that begin with ">" are what the controller does then, those
// with "@" when it does so by itself while time passes, those with "=" answers
// to a question, those with "!" records that changed nothing and asks that are
// refused.
//
// Before a run is opened, what it is to be opened with:
//
//	rollout {"max-failures":2}   members of rollout.Resolved, but for its stages
//	stage canary 1 max 1 soak 30m approval 2h
//	                             the next stage: its name, how many hosts, and
//	                             what differs from max 1; aside h07,h08 names
//	                             hosts of the stage that are no members; stage
//	                             none forgets those before
//	stage swact 0 step match true timeout 5m gives JOIN no-return
//	                             ... that has a step: at the site or, with match, on a host; with undo
//	                             at its end the run rolls it back
//	absent count                 whether silent hosts count, skip if not said
//	cell racks rack r1 max 1 h01,h02
//	                             a cell of a disruption budget: its name, its label and the
//	                             value, and its hosts; cell none forgets those before
//	lasts 2h                     how long it lasts, 4h if this is not said
//
// What happens:
//
//	open h01 silent h03 heard h04
//	                             opens a run; back 41 at the end opens one that rolls back run 41
//	silent h03                   hosts are not heard of
//	recovered h03                silent hosts were heard of again
//	deleted h03                  hosts were deleted
//	reply h01 prepare done       a host's reply to the run under way; its result
//	                             begins with "unknown: " when it does not know
//	all prepare done             ... of each host that was asked
//	late 41 h01 upgrade done     a host's reply to run 41
//	raw h01 prepare {"a":1}      a reply with any body
//	ran h01 drain failed text    how a task came out that is wanted
//	ran fleet ok                 ... of the fleet, or ran step ok
//	lock h01                     a host that reboots by itself asks for a lock, and is refused or
//	                             not; unlock h01 gives it back
//	again                        the last record comes once more
//	command {"action":...}       a command that somebody else appended
//	event {"event":...}          an event that somebody else appended
//	ask release h01 by ann: why  somebody asks; pause, resume, abort, approve STAGE
//	seen silent h03              the controller knows something besides the log from
//	                             now on: hosts are not heard of
//	seen heard h03               ... or are
//	seen deleted h03 by ann      ... or were deleted
//	seen freeze name 45m 3h      ... the freeze that is on or comes next; none
//	seen present c1              ... which host a step is done on
//	seen hold rollout            ... what holds up each run; nothing
//	seen hold the agent itself: why
//	seen ran h01 drain ok        ... how a task came out
//	seen doing h03 40% fetching  ... what a host tells of its phase
//	seen budgets v2              ... that the budgets were edited: the cells are those said last
//	seen neighbour x1            ... that a host is silent which is not in the roster
//	seen nothing until 15s       ... and that it cannot judge before that
//	in basel                     the lines that follow are of this environment, of default at
//	                             first; what the controller does then says whose it is
//	stop, start                  the controller does nothing, goes on again
//	at 2h                        so much time has passed since the start
//
// Questions: hosts, stages, tasks, forecast.
func TestScripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/scripts/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(want))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(want) {
				t.Errorf("the transcript differs; got:\n%s", got)
			}
		})
	}
}
