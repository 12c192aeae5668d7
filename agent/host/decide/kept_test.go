package decide

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/formattest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// past plays runs on a host of some packages, without any file.
type past struct {
	s    State
	has  map[string]string
	runs uint64
	log  string
	// before is what the host had before each run.
	before map[uint64]map[string]string
}

func newPast() *past {
	return &past{has: map[string]string{"a": "1", "b": "1", "c": "1"}, before: map[uint64]map[string]string{}}
}

// begins has a run prepared with a plan, and its upgrade begin.
func (p *past) begins(changes []message.Change, pinned *release.Pin, rollsBack string) {
	p.runs++
	p.before[p.runs] = maps.Clone(p.has)
	at := now.Add(time.Duration(p.runs) * time.Minute)
	p.s.Journal = Journal{Run: p.runs, RunAt: at, Log: p.log, NotAfter: at.Add(time.Hour), Seq: p.runs, Action: message.Upgrade, Phase: Upgrading, Release: pinned, RollsBack: rollsBack, BootID: "boot-1"}
	p.s.Fresh = true
	p.s = p.s.Next(at, Seen{BootID: "boot-1", Lease: Held, Prepared: KeptPlan{Run: p.runs, RunAt: at, Plan: message.ChangeSet{Changes: changes}.Sorted()}}).State
}

// ends has the upgrade install the first changes of a plan, and the run end well if that is all of them.
func (p *past) ends(changes []message.Change, first int) {
	for _, c := range changes[:first] {
		if p.has[c.Name] = c.To; c.To == "" {
			delete(p.has, c.Name)
		}
	}
	ended := Ended{Do: DoVerify}
	p.s.Phase = Verifying
	if first < len(changes) {
		ended.Do, ended.Err = DoRollback, strategy.ErrNoRollback
		p.s.Phase, p.s.Result = RollingBack, message.NotDone(message.Failed, "", "broken")
	}
	p.s, _ = p.s.After(ended, "boot-1", now)
}

// undo returns the changes that roll back runs, as a host has them.
func (p *past) undo(t interface{ Fatal(...any) }, runs message.Interval) []message.Change {
	u, err := p.s.Kept.Undo(runs)
	if err != nil {
		t.Fatal(err)
	}
	differs := strategy.Lacks(message.ChangeSet{Changes: strategy.Reversed(u.Changes)}, p.has)
	return strategy.ToUndo(u.From(differs), differs).Back
}

// TestUndoAnyRuns checks for any history of upgrades, whole and half, and rollbacks that rolling back
// the newest runs leaves the host what it had before the oldest of them.
func TestUndoAnyRuns(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c", "d"}
	rapid.Check(t, func(rt *rapid.T) {
		p := newPast()
		upgrade := func() {
			var changes []message.Change
			for _, name := range names {
				if to := rapid.SampledFrom([]string{p.has[name], fmt.Sprint(p.runs + 2), ""}).Draw(rt, name); to != p.has[name] {
					changes = append(changes, message.Change{Name: name, From: p.has[name], To: to})
				}
			}
			p.begins(changes, nil, "")
			p.ends(changes, rapid.IntRange(0, len(changes)).Draw(rt, "installed"))
		}
		for range rapid.IntRange(0, 4).Draw(rt, "runs before") {
			upgrade()
		}
		oldest := p.runs + 1
		for range rapid.IntRange(1, maxKept-1).Draw(rt, "runs") {
			upgrade()
		}
		runs := message.Interval{Since: oldest, Of: p.runs}
		if p.s.Kept == nil || p.s.Kept.Runs[0].Run < oldest {
			return // None of them has changed anything.
		}
		after, want := maps.Clone(p.has), p.before[oldest]
		// It may break off, and goes on.
		for range rapid.IntRange(0, 2).Draw(rt, "broken off") {
			back := p.undo(rt, runs)
			p.begins(back, nil, runs.String())
			p.ends(back, rapid.IntRange(0, len(back)).Draw(rt, "undone"))
		}
		back := p.undo(rt, runs)
		p.begins(back, nil, runs.String())
		p.ends(back, len(back))
		if !maps.Equal(p.has, want) {
			rt.Fatalf("%s rolled back leave %v; before them it was %v", runs.Runs(), p.has, want)
		}
		if len(back) == 0 || p.s.Kept.Runs[1].RollbackOf != 0 {
			return
		}
		forward := p.undo(rt, message.Interval{Since: p.runs, Of: p.runs})
		p.begins(forward, nil, fmt.Sprintf("%d-%d", p.runs, p.runs))
		p.ends(forward, len(forward))
		if !maps.Equal(p.has, after) {
			rt.Fatalf("that rolled back leaves %v; before it was %v", p.has, after)
		}
	})
}

// TestUndoNeedsAllRuns checks that a host refuses a rollback of runs of which it has not kept each: it would
// go only part of the way back, and answer that it is done.
func TestUndoNeedsAllRuns(t *testing.T) {
	t.Parallel()
	p := newPast()
	for range maxKept + 1 {
		changes := []message.Change{{Name: fmt.Sprint("package ", p.runs), To: "1"}}
		p.begins(changes, nil, "")
		p.ends(changes, len(changes))
	}
	newest := p.runs
	if _, err := p.s.Kept.Undo(message.Interval{Since: 2, Of: newest}); err != nil {
		t.Errorf("all of them are kept, and it says %v", err)
	}
	want := "runs 1 to 11 cannot be rolled back: this host keeps its last 10 runs, and no longer knows what run 1 changed"
	if u, err := p.s.Kept.Undo(message.Interval{Since: 1, Of: newest}); err == nil || err.Error() != want {
		t.Errorf("it is %+v, %v", u, err)
	}
	body, err := p.s.Kept.Encode()
	if err != nil {
		t.Fatal(err)
	}
	read, err := DecodeKept(body)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := read.Undo(message.Interval{Since: 1, Of: newest}); err == nil {
		t.Error("after a restart of the worker it goes back a part of the way")
	}
}

// TestUndoOfOneLog checks that the runs of two logs are not undone together: their numbers say nothing of
// each other, and a run of the other log may be older than what is to be rolled back.
func TestUndoOfOneLog(t *testing.T) {
	t.Parallel()
	p := newPast()
	for _, p.log = range []string{"of the site before", "", ""} {
		changes := []message.Change{{Name: fmt.Sprint("package ", p.runs), To: "1"}}
		p.begins(changes, nil, "")
		p.ends(changes, len(changes))
	}
	if _, err := p.s.Kept.Undo(message.Interval{Since: 2, Of: 3}); err != nil {
		t.Errorf("both are of one log, and it says %v", err)
	}
	want := "runs 1 to 3 cannot be rolled back: run 1, which changed this host, is on another log"
	if u, err := p.s.Kept.Undo(message.Interval{Since: 1, Of: 3}); err == nil || err.Error() != want {
		t.Errorf("it is %+v, %v", u, err)
	}
}

// TestUndoLeavesOthers checks that what somebody else has changed between two runs is not undone.
func TestUndoLeavesOthers(t *testing.T) {
	t.Parallel()
	p := newPast()
	for _, changes := range [][]message.Change{{{Name: "a", From: "1", To: "2"}, {Name: "b", From: "1", To: "2"}}, {{Name: "a", From: "3", To: "4"}, {Name: "c", From: "1", To: "2"}}} {
		p.begins(changes, nil, "")
		p.ends(changes, len(changes))
	}
	u, err := p.s.Kept.Undo(message.Interval{Since: 1, Of: 2})
	want := []message.Change{{Name: "a", From: "3", To: "4"}, {Name: "b", From: "1", To: "2"}, {Name: "c", From: "1", To: "2"}}
	if err != nil || !slices.Equal(u.Changes, want) || u.Run != 2 {
		t.Errorf("it is %+v, %v", u, err)
	}
}

// TestKeptReleases checks which release a host is known to have after runs that went well and badly.
func TestKeptReleases(t *testing.T) {
	t.Parallel()
	pins := map[string]*release.Pin{}
	for _, name := range []string{"spring", "summer"} {
		pins[name] = new(release.Release{Version: "1.0", Scheme: release.Semver, Data: []byte(`{"name":"` + name + `"}`)}.Pin(name))
	}
	nameOf := func(p *release.Pin) string {
		if p == nil {
			return "none"
		}
		return p.Name
	}
	p := newPast()
	for _, step := range []struct {
		release, rollsBack string
		done               bool
		has                string
	}{
		{"", "", true, "none, was none"},
		{"spring", "", true, "spring, was none"},
		{"summer", "", false, "summer, was spring"},
		{"summer", "", true, "summer, was spring"},
		{"", "3-4", true, "spring, was summer"},
		{"", "5-5", true, "summer, was spring"},
		{"", "", true, "none, was summer"},
	} {
		change := []message.Change{{Name: "a", From: p.has["a"], To: fmt.Sprint(p.runs + 2)}}
		p.begins(change, pins[step.release], step.rollsBack)
		p.ends(change, map[bool]int{true: 1}[step.done])
		newest := p.s.Kept.Runs[0]
		if got := nameOf(newest.Release) + ", was " + nameOf(newest.Was); got != step.has || newest.Done != step.done {
			t.Errorf("after run %d it is %s and not %s", p.runs, got, step.has)
		}
	}
}

// TestRolledBackVersions checks what the next plan without a release holds back: what was rolled back,
// until there is another version of it.
func TestRolledBackVersions(t *testing.T) {
	t.Parallel()
	p := newPast()
	changes := []message.Change{{Name: "a", From: "1", To: "2"}, {Name: "b", From: "1", To: "2"}, {Name: "d", To: "2"}, {Name: "c", From: "1"}}
	p.begins(changes, nil, "")
	p.ends(changes, len(changes))
	back := p.undo(t, message.Interval{Since: 1, Of: 1})
	p.begins(back, nil, "1-1")
	if held := p.s.Kept.RolledBack(); len(held) != 0 {
		t.Errorf("before it is done it holds %v back", held)
	}
	p.ends(back, len(back))
	if held, want := p.s.Kept.RolledBack(), (message.Rejected{"a": {"2"}, "b": {"2"}, "d": {"2"}}); !reflect.DeepEqual(held, want) {
		t.Errorf("it holds %v back, not %v", held, want)
	}
	changes = []message.Change{{Name: "a", From: "1", To: "3"}}
	p.begins(changes, nil, "")
	p.ends(changes, len(changes))
	if held, want := p.s.Kept.RolledBack(), (message.Rejected{"b": {"2"}, "d": {"2"}}); !reflect.DeepEqual(held, want) {
		t.Errorf("then it holds %v back, not %v", held, want)
	}
	forward := p.undo(t, message.Interval{Since: 3, Of: 3})
	p.begins(forward, nil, "3-3")
	p.ends(forward, len(forward))
	again := p.undo(t, message.Interval{Since: 4, Of: 4})
	p.begins(again, nil, "4-4")
	p.ends(again, len(again))
	if held := p.s.Kept.RolledBack(); len(held["a"]) != 0 {
		t.Errorf("after the rollback of a rollback it holds %v back", held)
	}
}

// TestUnreadableRollback checks that a command which does not say what it rolls back in the right form is
// ignored: the host must not upgrade in its place.
func TestUnreadableRollback(t *testing.T) {
	t.Parallel()
	for text, refused := range map[string]bool{"": false, "41-57": false, "41": true, "57-41": true, "x": true} {
		r := prepareAt(60, later, "h01")
		r.Rollback = text
		next, err := Journal{}.receive(r, "h01", "boot-1", now)
		if (err != nil) != refused || err == nil && (next.RollsBack != text || next.check() != nil) {
			t.Errorf("%q: %+v, %v", text, next, err)
		}
	}
	j := prepared()
	if j.RollsBack = "x"; j.check() == nil {
		t.Error("a journal that rolls back x is read")
	}
}

// TestKeptFormat compares what is written with the fixture of format 1, and reads it.
func TestKeptFormat(t *testing.T) {
	t.Parallel()
	spring := release.Release{Version: "1.0", Scheme: release.Semver, Data: []byte(`{"a":1}`)}.Pin("spring")
	want := Kept{
		Runs: []KeptRun{
			{Run: 57, RunAt: later, Changes: []message.Change{{Name: "kernel", From: "6.1.1", To: "6.1.0"}}, Was: &spring, RollbackOf: 41, Back: true, Done: true},
			{Run: 41, RunAt: now, Changes: []message.Change{{Name: "kernel", From: "6.1.0", To: "6.1.1"}, {Name: "nginx", To: "1.24"}}, Release: &spring},
		},
		Rejected: message.Rejected{"kernel": {"6.1.1"}},
	}
	body, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	kept := formattest.Golden(t, "testdata/format1/kept.json", body)
	if got, err := DecodeKept(kept); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("it reads as %+v, %v", got, err)
	}
	for name, broken := range map[string]Kept{
		"a run without a number":  {Runs: []KeptRun{{}}},
		"changes out of order":    {Runs: []KeptRun{{Run: 1, Changes: []message.Change{{Name: "b", To: "1"}, {Name: "a", To: "1"}}}}},
		"a release without a sum": {Runs: []KeptRun{{Run: 1, Release: &release.Pin{Name: "spring"}}}},
	} {
		body, err := broken.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeKept(body); err == nil {
			t.Errorf("%s is read", name)
		}
	}
}
