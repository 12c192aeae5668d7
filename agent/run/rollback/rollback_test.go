package rollback_test

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/plan"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/rollback"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestTogether checks which runs are rolled back with one of them.
func TestTogether(t *testing.T) {
	t.Parallel()
	to := func(id uint64, digest string) v1.Run {
		r := v1.Run{ID: id}
		if digest != "" {
			r.Release = &v1.RunRelease{Digest: digest}
		}
		return r
	}
	since := func(id, since uint64) v1.Run { return v1.Run{ID: id, GoesOnSince: since} }
	back := func(id, of uint64) v1.Run { return v1.Run{ID: id, RollbackOf: of} }
	for name, c := range map[string]struct {
		of      v1.Run
		earlier []v1.Run
		want    message.Interval
	}{
		"a run alone":                       {to(9, ""), []v1.Run{to(5, ""), to(3, "a")}, message.Interval{Since: 9, Of: 9}},
		"runs to the same release":          {to(9, "a"), []v1.Run{to(7, "a"), to(5, "a"), to(3, "b")}, message.Interval{Since: 5, Of: 9}},
		"another release in between":        {to(9, "a"), []v1.Run{to(7, "b"), to(5, "a")}, message.Interval{Since: 9, Of: 9}},
		"a run without one in between":      {to(9, "a"), []v1.Run{to(7, ""), to(5, "a")}, message.Interval{Since: 9, Of: 9}},
		"a rollback in between":             {to(9, "a"), []v1.Run{back(7, 5), to(5, "a")}, message.Interval{Since: 9, Of: 9}},
		"a run that goes on":                {since(9, 5), []v1.Run{since(7, 5), to(6, ""), since(5, 0), to(3, "")}, message.Interval{Since: 5, Of: 9}},
		"a run that goes on, and a release": {v1.Run{ID: 9, GoesOnSince: 7, Release: &v1.RunRelease{Digest: "a"}}, []v1.Run{to(7, "a"), to(5, "a"), to(3, "b")}, message.Interval{Since: 5, Of: 9}},
		"a rollback":                        {back(9, 5), []v1.Run{to(5, ""), to(3, "")}, message.Interval{Since: 9, Of: 9}},
		"rollbacks of the same runs":        {back(9, 5), []v1.Run{back(7, 5), to(5, "")}, message.Interval{Since: 7, Of: 9}},
		"a rollback of another run":         {back(9, 5), []v1.Run{back(7, 3), to(5, "")}, message.Interval{Since: 9, Of: 9}},
	} {
		if got := rollback.Together(c.of, c.earlier); got != c.want {
			t.Errorf("%s: %s are rolled back, want %s", name, got, c.want)
		}
	}
}

func stage(name string, size int) rollout.ResolvedStage {
	return rollout.ResolvedStage{Stage: rollout.Stage{Name: name}, Size: size, MaxUnavailable: 2}
}

func step(name string, undo bool) rollout.ResolvedStage {
	s := rollout.ResolvedStage{Stage: rollout.Stage{Name: name, Step: &rollout.Step{Do: &rollout.Hook{Script: name, Timeout: "1m", On: rollout.OnSite}}}}
	if undo {
		s.Step.Undo = &rollout.Hook{Script: "un" + name, Timeout: "1m", On: rollout.OnSite}
	}
	return s
}

// ran is a run that ended with these stages; the hosts of a stage with hosts have its name and a number.
func ran(id uint64, stages ...rollout.ResolvedStage) v1.Run {
	r := v1.Run{ID: id, Phase: "finished", Pinned: &v1.PinnedRun{}}
	for _, s := range stages {
		shown := v1.RunStage{Name: s.Name, Phase: v1.StageDone}
		if s.Step != nil {
			shown.Step = &v1.RunStep{Undo: s.Undo}
		}
		r.Stages = append(r.Stages, shown)
		for n := range s.Size {
			r.Hosts = append(r.Hosts, v1.RunHost{Hostname: host(s.Name, n), Stage: s.Name, Status: string(run.Upgraded)})
		}
	}
	hosts := len(r.Hosts)
	r.Pinned.Rollout = rollout.Default(hosts)
	r.Pinned.Rollout.Stages = stages
	return r
}

func host(stage string, n int) string { return stage + string(rune('0'+n)) }

func scopeOf(t *testing.T, runs, newer []v1.Run) rollback.Scope {
	t.Helper()
	scope, err := rollback.ScopeOf(runs, newer)
	if err != nil {
		t.Fatal(err)
	}
	return scope
}

// names are the stages of a plan in their order, with "un" before a step that is undone.
func names(p plan.Plan) (all []string) {
	for _, s := range p.Rollout.Stages {
		name := s.Name
		if s.Undo {
			name = "un" + name
		}
		all = append(all, name)
	}
	return all
}

func members(hosts ...string) (all []plan.Host) {
	for _, name := range hosts {
		all = append(all, plan.Host{Name: name})
	}
	return all
}

// TestReversed checks that a rollback goes through the stages of all its runs backwards, rolls back what
// steps have done that have an undo, and has no point of no return.
func TestReversed(t *testing.T) {
	t.Parallel()
	last := stage("last", 1)
	last.PointOfNoReturn = true
	runs := []v1.Run{
		ran(5, step("backup", false), step("migrate", true), stage("canary", 1)),
		ran(7, stage("canary", 1), step("swact", true), stage("rest", 2), last),
	}
	runs[0].Pinned.Outputs = []v1.StepOutputs{{Stage: "backup", Names: []string{"B"}, Sealed: "y"}, {Stage: "migrate", Names: []string{"A"}, Sealed: "x"}}
	scope := scopeOf(t, runs, nil)
	p := scope.Plan(members("rest1", "rest0", "canary0", "last0"))
	if want := []string{"last", "rest", "unswact", "canary", "unmigrate"}; !slices.Equal(names(p), want) {
		t.Errorf("the stages are %v, want %v", names(p), want)
	}
	if want := []string{"last0", "rest0", "rest1", "canary0"}; !slices.Equal(p.Hosts, want) {
		t.Errorf("the members are %v, want %v", p.Hosts, want)
	}
	if slices.ContainsFunc(p.Rollout.Stages, func(s rollout.ResolvedStage) bool { return s.PointOfNoReturn }) {
		t.Error("a rollback has a point of no return")
	}
	if want := "backup y, migrate x"; given(scope) != want {
		t.Errorf("the undo of migrate has the outputs %s, want %s", given(scope), want)
	}
	opened := message.Opened{Trigger: message.TriggerManual, Members: p.Hosts, Rollout: p.Rollout, RollbackOf: 7, RollbackSince: 5, Outputs: scope.Outputs, NotAfter: time.Now()}
	if _, err := message.DecodeEvent(message.EncodeEvent(opened)); err != nil {
		t.Errorf("no run can be opened with it: %v", err)
	}
}

// TestEditedRollout rolls back runs to one release between which somebody has edited the stages: the order of
// the newest run counts, and what was a step and has hosts by then has no undo.
func TestEditedRollout(t *testing.T) {
	t.Parallel()
	runs := []v1.Run{
		ran(5, stage("first", 1), step("migrate", true), stage("old", 1), stage("rest", 1)),
		ran(7, stage("rest", 1), stage("migrate", 1), stage("first", 1)),
	}
	p := scopeOf(t, runs, nil).Plan(members("first0", "old0", "rest0", "migrate0"))
	if want := []string{"old", "first", "migrate", "rest"}; !slices.Equal(names(p), want) {
		t.Errorf("the stages are %v, want %v", names(p), want)
	}
}

// TestRollbackOfRollback checks that the rollback of a rollback goes forwards again, and does again only the
// steps that were undone.
func TestRollbackOfRollback(t *testing.T) {
	t.Parallel()
	first := scopeOf(t, []v1.Run{ran(5, step("backup", false), step("migrate", true), stage("all", 2))}, nil)
	back := first.Plan(members("all0", "all1"))
	again := scopeOf(t, []v1.Run{ran(7, back.Rollout.Stages...)}, nil).Plan(members("all0", "all1"))
	if want := []string{"migrate", "all"}; !slices.Equal(names(again), want) {
		t.Errorf("the stages are %v, want %v", names(again), want)
	}
}

// given are the outputs that a rollback begins with.
func given(scope rollback.Scope) string {
	all := make([]string, len(scope.Outputs))
	for i, o := range scope.Outputs {
		all[i] = o.Stage + " " + o.Sealed
	}
	return strings.Join(all, ", ")
}

// TestOutputs checks which outputs a rollback begins with: those of the steps that its runs have done, each as
// it was given last, and none of a step that was undone.
func TestOutputs(t *testing.T) {
	t.Parallel()
	gave := func(r v1.Run, outputs ...v1.StepOutputs) v1.Run {
		r.Pinned.Outputs = outputs
		return r
	}
	of := func(stage, sealed string) v1.StepOutputs {
		return v1.StepOutputs{Stage: stage, Names: []string{"A"}, Sealed: sealed}
	}
	undone := step("migrate", true)
	undone.Undo = true
	backup, migrate := step("backup", false), step("migrate", true)
	first := gave(ran(5, backup, migrate, stage("all", 1)), of("backup", "x"), of("migrate", "y"))
	for name, c := range map[string]struct {
		runs, newer []v1.Run
		want        string
	}{
		"one run":                {[]v1.Run{first}, nil, "backup x, migrate y"},
		"a run that goes on":     {[]v1.Run{first, gave(ran(7, stage("all", 1)), of("backup", "x"), of("migrate", "y"))}, nil, "backup x, migrate y"},
		"given again":            {[]v1.Run{first, gave(ran(7, backup), of("backup", "z"))}, nil, "migrate y, backup z"},
		"undone by a newer run":  {[]v1.Run{first}, []v1.Run{ran(9, undone), ran(7, stage("all", 1))}, "backup x"},
		"a rollback":             {[]v1.Run{gave(ran(7, undone), of("backup", "x"))}, nil, "backup x"},
		"a rollback in two runs": {[]v1.Run{gave(ran(7, stage("all", 1)), of("backup", "x"), of("migrate", "y")), gave(ran(9, undone), of("backup", "x"))}, nil, "backup x"},
	} {
		if got := given(scopeOf(t, c.runs, c.newer)); got != c.want {
			t.Errorf("%s: the rollback begins with the outputs %s, want %s", name, got, c.want)
		}
	}
}

// TestStepsOfNewerRuns checks that a step is left alone which a newer run has done or undone since.
func TestStepsOfNewerRuns(t *testing.T) {
	t.Parallel()
	undone := step("migrate", true)
	undone.Undo = true
	for name, newer := range map[string]v1.Run{"done again": ran(7, step("migrate", true)), "undone": ran(7, undone)} {
		scope := scopeOf(t, []v1.Run{ran(5, step("migrate", true), stage("all", 1))}, []v1.Run{newer})
		if got := names(scope.Plan(members("all0"))); !slices.Equal(got, []string{"all"}) {
			t.Errorf("%s: the stages are %v", name, got)
		}
	}
}

// TestNoWayBack checks that runs cannot be rolled back whose point of no return has begun, also in a run that
// goes on from them, and runs of which the site has not kept how they went about their hosts.
func TestNoWayBack(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 28, 2, 0, 0, 0, time.UTC)
	closed := func(r v1.Run) v1.Run {
		r.WayBack = &v1.WayBack{Until: "complete", Closed: &at}
		return r
	}
	later, other := closed(ran(9, stage("rest", 1))), closed(ran(9, stage("rest", 1)))
	later.GoesOnSince = 5
	unknown := ran(5, stage("all", 1))
	unknown.Pinned = nil
	for name, c := range map[string]struct {
		runs, newer []v1.Run
		want        string
	}{
		"closed":                       {[]v1.Run{closed(ran(5, stage("all", 1)))}, nil, "run 5 cannot be rolled back any more since stage complete, the point of no return, began at 2026-11-28T02:00:00Z"},
		"closed by a run that goes on": {[]v1.Run{ran(5, stage("all", 1))}, []v1.Run{later}, "stage complete, the point of no return, began at"},
		"closed by another run":        {[]v1.Run{ran(5, stage("all", 1))}, []v1.Run{other}, ""},
		"kept by an older version":     {[]v1.Run{unknown}, nil, "run 5 cannot be rolled back: a version of the site that knew no rollbacks"},
	} {
		_, err := rollback.ScopeOf(c.runs, c.newer)
		switch refused, is := errors.AsType[*run.Refused](err); {
		case c.want == "" && err != nil, c.want != "" && (!is || !strings.Contains(refused.Message, c.want)):
			t.Errorf("%s: the error is %v, want %q", name, err, c.want)
		}
	}
}

// TestMembers checks which hosts are members, who is left out, and that so many have to prepare as in the
// largest of the runs.
func TestMembers(t *testing.T) {
	t.Parallel()
	all, one := ran(5, stage("all", 4)), ran(7, stage("all", 1))
	all.Pinned.Rollout.MinPrepared, all.Pinned.Rollout.MaxFailures = 3, 2
	all.Pinned.Rollout.NoReboot = []rollout.Exempt{{Host: "all0", Reason: "why"}, {Host: "all3", Reason: "why"}}
	all.Pinned.Rollout.Absent = rollout.Skip
	scope := scopeOf(t, []v1.Run{all, one}, nil)
	hosts := members("all0", "all1", "all2", "all3", "x")
	hosts[1].Unfit, hosts[2].Silent, hosts[3].NonMember = rollback.CannotRollBack, true, true
	p := scope.Plan(hosts)
	if want := []string{"all0", "all2"}; !slices.Equal(p.Hosts, want) || !slices.Equal(p.Silent, []string{"all2"}) {
		t.Errorf("the members are %v, silent %v", p.Hosts, p.Silent)
	}
	if want := []rollout.Exempt{{Host: "all1", Reason: rollback.CannotRollBack}}; !reflect.DeepEqual(p.Exempt, want) {
		t.Errorf("left out are %v", p.Exempt)
	}
	if want := []message.Entry{{Host: "all3", Stage: "all"}}; !reflect.DeepEqual(p.Others, want) {
		t.Errorf("the others are %v", p.Others)
	}
	if p.Rollout.MinPrepared != 1 || p.Rollout.MaxFailures != 2 {
		t.Errorf("min-prepared is %d, max-failures %d", p.Rollout.MinPrepared, p.Rollout.MaxFailures)
	}
	if want := "all0, all1, all2, all3"; strings.Join(slices.Sorted(maps.Keys(scope.Changed)), ", ") != want {
		t.Errorf("changed are %v", scope.Changed)
	}
}

// TestAllMustPrepare checks that all hosts have to be able to go back if all had to prepare for the run.
func TestAllMustPrepare(t *testing.T) {
	t.Parallel()
	all := ran(5, stage("all", 2))
	all.Pinned.Rollout.MinPrepared = 2
	longer := ran(7, stage("all", 3))
	longer.Pinned.Rollout.MinPrepared = 3
	if p := scopeOf(t, []v1.Run{all, longer}, nil).Plan(members("all0", "all1")); p.Rollout.MinPrepared != 2 {
		t.Errorf("min-prepared is %d of 2 hosts", p.Rollout.MinPrepared)
	}
}

// TestStartChecks checks that checks before the run are asked of its members, and at the site.
func TestStartChecks(t *testing.T) {
	t.Parallel()
	all := ran(5, stage("all", 2))
	all.Pinned.Rollout.Start = []rollout.StartGroup{{Checks: []int{0}}, {Checks: []int{1}, Hosts: []string{"all0", "all1"}}, {Checks: []int{2}, Hosts: []string{"all1"}}}
	p := scopeOf(t, []v1.Run{all}, nil).Plan(members("all0"))
	if want := []rollout.StartGroup{{Checks: []int{0}}, {Checks: []int{1}, Hosts: []string{"all0"}}}; !reflect.DeepEqual(p.Rollout.Start, want) {
		t.Errorf("the checks are asked at %+v", p.Rollout.Start)
	}
}
