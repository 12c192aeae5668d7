package reached_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/reached"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

func hosts(name string) rollout.Stage { return rollout.Stage{Name: name} }

func step(name string) rollout.Stage { return rollout.Stage{Name: name, Step: &rollout.Step{}} }

// TestBegin checks with what a run is opened: it goes on as long as the stages are the same, in their
// order.
func TestBegin(t *testing.T) {
	t.Parallel()
	declared := []rollout.Stage{step("backup"), hosts("standby"), hosts("workers")}
	before := &message.Reached{Since: 41, Stages: []message.ReachedStage{
		{Name: "backup", Step: true, Run: 41}, {Name: "standby", Run: 41, Done: []string{"c1"}}, {Name: "workers", Left: []string{"w1"}},
	}}
	fresh := &message.Reached{Stages: []message.ReachedStage{{Name: "backup", Step: true}, {Name: "standby"}, {Name: "workers"}}}
	to1 := &message.Reached{Since: 41, Release: "sha256:1", Stages: before.Stages}
	edited := []rollout.Stage{step("backup"), {Name: "standby", PointOfNoReturn: true, Soak: "1h"}, hosts("workers")}
	for name, c := range map[string]struct {
		course reached.Course
		stages []rollout.Stage
		want   *message.Reached
	}{
		"goes on":                          {reached.Course{Before: before}, declared, before},
		"goes on until a stage":            {reached.Course{Before: before, Until: "standby"}, declared, before},
		"goes on with chosen hosts":        {reached.Course{Before: before, Chosen: true}, declared, before},
		"goes on after an edit of a stage": {reached.Course{Before: before}, edited, before},
		"a stage more":                     {reached.Course{Before: before}, append(declared, hosts("rest")), &message.Reached{Stages: append(fresh.Stages, message.ReachedStage{Name: "rest"})}},
		"a stage moved, without steps":     {reached.Course{Before: before}, []rollout.Stage{hosts("workers"), hosts("standby")}, nil},
		"a step in place of hosts": {reached.Course{Before: before}, []rollout.Stage{step("backup"), step("standby"), hosts("workers")}, &message.Reached{Stages: []message.ReachedStage{
			{Name: "backup", Step: true}, {Name: "standby", Step: true}, {Name: "workers"},
		}}},
		"another release":                        {reached.Course{Before: before, Release: "sha256:2"}, declared, &message.Reached{Release: "sha256:2", Stages: fresh.Stages}},
		"the same release":                       {reached.Course{Before: to1, Release: "sha256:1"}, declared, to1},
		"the first run":                          {reached.Course{}, declared, fresh},
		"the first run, with chosen hosts":       {reached.Course{Chosen: true}, declared, &message.Reached{Ended: true, Stages: fresh.Stages}},
		"chosen hosts, without steps":            {reached.Course{Chosen: true}, declared[1:], nil},
		"the first run, without steps":           {reached.Course{}, declared[1:], nil},
		"the first run, without steps and until": {reached.Course{Until: "standby"}, declared[1:], &message.Reached{Stages: fresh.Stages[1:]}},
	} {
		if got := c.course.Begin(c.stages); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

// TestAfter checks what a run adds to what earlier ones have done, and when the next one begins anew.
func TestAfter(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 28, 2, 0, 0, 0, time.UTC)
	fresh := reached.Meet(&message.Reached{Release: "sha256:1", Stages: []message.ReachedStage{{Name: "backup", Step: true}, {Name: "standby"}, {Name: "workers"}}},
		map[string][]string{"standby": {"c2", "c1"}, "workers": {"w1", "w2"}})
	outputs := &message.Outputs{Names: []string{"JOIN"}, Sealed: "sealed"}
	first := message.Reached{Since: 41, Stages: []message.ReachedStage{
		{Name: "backup", Step: true, Run: 41, Outputs: outputs}, {Name: "standby", Run: 41, Done: []string{"c2"}, Closed: at},
	}}
	night1 := reached.After(fresh, first, false)
	want := &message.Reached{Since: 41, Release: "sha256:1", Stages: []message.ReachedStage{
		{Name: "backup", Step: true, Run: 41, Outputs: outputs}, {Name: "standby", Run: 41, Done: []string{"c2"}, Left: []string{"c1"}, Closed: at}, {Name: "workers", Left: []string{"w1", "w2"}},
	}}
	if !reflect.DeepEqual(night1, want) {
		t.Errorf("after the first run: %+v, want %+v", night1, want)
	}
	second := message.Reached{Since: 57, Stages: []message.ReachedStage{
		{Name: "standby", Run: 57, Done: []string{"c1"}, Closed: at.Add(time.Hour)}, {Name: "workers"},
	}}
	want = &message.Reached{Since: 41, Release: "sha256:1", Stages: []message.ReachedStage{
		{Name: "backup", Step: true, Run: 41, Outputs: outputs}, {Name: "standby", Run: 57, Done: []string{"c1", "c2"}, Closed: at}, {Name: "workers", Left: []string{"w1", "w2"}},
	}}
	if night2 := reached.After(night1, second, false); !equal(night2, want) {
		t.Errorf("after the second run: %+v, want %+v", night2, want)
	}
	want.Ended = true
	ended := reached.After(night1, second, true)
	if !equal(ended, want) {
		t.Errorf("after the last stage: %+v, want %+v", ended, want)
	}
	if retried := reached.After(ended, message.Reached{Since: 63}, false); !equal(retried, want) {
		t.Errorf("after a retry: %+v, want %+v", retried, want)
	}
	for name, got := range map[string]*message.Reached{
		"nothing is done":           reached.After(fresh, message.Reached{Since: 41, Stages: []message.ReachedStage{{Name: "standby"}}}, false),
		"no run goes on from there": reached.After(nil, first, false),
	} {
		if got != nil {
			t.Errorf("%s: the next run goes on after %+v", name, got)
		}
	}
}

// equal compares but for lists that are empty or absent.
func equal(a, b *message.Reached) bool {
	return string(message.EncodeEvent(message.Carried{Reached: a})) == string(message.EncodeEvent(message.Carried{Reached: b}))
}

// TestSoaks checks which soak a run waits for before it begins a stage, which are kept at the end of a run, and
// that none lasts longer than it is long after the clock was set back.
func TestSoaks(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 28, 2, 0, 0, 0, time.UTC)
	soak := func(hours int) *message.Soak {
		return &message.Soak{Since: at, Until: at.Add(time.Duration(hours) * time.Hour)}
	}
	r := &message.Reached{Since: 41, Stages: []message.ReachedStage{
		{Name: "backup", Step: true, Run: 41, Soaks: soak(4)},
		{Name: "standby", Run: 41, Done: []string{"c1"}, Soaks: soak(2)},
		{Name: "active", Left: []string{"c2"}},
		{Name: "workers", Run: 41, Done: []string{"w1"}, Soaks: soak(9)},
	}}
	check := func(what string, r *message.Reached, stage, wantOf string, want message.Soak) {
		t.Helper()
		if of, got := reached.SoakBefore(r, stage); of != wantOf || got != want {
			t.Errorf("%s: stage %s waits for the soak of %q: %+v; want %q, %+v", what, stage, of, got, wantOf, want)
		}
	}
	check("the first stage", r, "backup", "", message.Soak{})
	check("stages before", r, "active", "backup", *soak(4))
	check("no run before", nil, "active", "", message.Soak{})
	check("a shorter one is over", reached.Soaking(r, at.Add(3*time.Hour)), "active", "backup", *soak(4))
	check("all are over", reached.Soaking(r, at.Add(4*time.Hour)), "active", "", message.Soak{})
	if left := reached.Soaking(r, at).Stages; left[1].Soaks == nil || left[3].Soaks != nil || r.Stages[3].Soaks == nil {
		t.Errorf("the soaks that are left are %+v", left)
	}
	before := at.Add(-time.Hour)
	check("the clock was set back", reached.SetBack(r, before), "active", "backup", message.Soak{Since: before, Until: before.Add(4 * time.Hour)})
	check("not so far", reached.SetBack(r, at.Add(time.Hour)), "active", "backup", *soak(4))
}
