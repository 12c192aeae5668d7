package run

import (
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// TestStagesSoak goes through three stages, of which no host of the second was
// admitted: the third waits for the soak of the first.
func TestStagesSoak(t *testing.T) {
	t.Parallel()
	hour := func(name string) rollout.ResolvedStage {
		return rollout.ResolvedStage{Stage: rollout.Stage{Name: name, Soak: rollout.SpanOf(time.Hour)}, Size: 1, MaxUnavailable: 1}
	}
	s := stages{list: []stage{{ResolvedStage: hour("a"), begun: true}, {ResolvedStage: hour("b")}, {ResolvedStage: hour("c"), left: 1}}}
	s.advance(epoch)
	if s.index != 2 || s.soak.stage != "a" || !s.reached().Equal(epoch.Add(time.Hour)) {
		t.Fatalf("stage %d is current and may begin at %s, after the soak of stage %s", s.index, s.reached(), s.soak.stage)
	}
	if !s.soaking(epoch.Add(time.Hour-1)) || s.soaking(epoch.Add(time.Hour)) {
		t.Error("the soak does not last an hour")
	}
	s.setBack(epoch.Add(-time.Hour))
	if !s.reached().Equal(epoch) {
		t.Errorf("after the clock was set back an hour, the soak ends at %s, want %s", s.reached(), epoch)
	}
	if _, done := s.doneAt(); done {
		t.Error("the stages are done, and the last has a host left")
	}
	s.current().left--
	s.advance(epoch)
	if at, done := s.doneAt(); !done || !at.Equal(epoch) {
		t.Errorf("the last stage has no host left: done is %v, at %s", done, at)
	}
}

// TestFirstCandidate has a host that is out of service go first, unless there is no
// room for it and another host can go.
func TestFirstCandidate(t *testing.T) {
	t.Parallel()
	g := stage{ResolvedStage: rollout.ResolvedStage{Size: 2, MaxUnavailable: 2}, candidates: candidates{order: []int{7, 8}, unheld: make([]positions, 1)}}
	check := func(what string, want int, wantSome bool) {
		t.Helper()
		if i, some := g.firstCandidate(1, nil); some != wantSome || some && i != want {
			t.Errorf("%s: host %d, %v; want host %d, %v", what, i, some, want, wantSome)
		}
	}
	check("no candidate", 0, false)
	g.candidates.held = positions{0}
	g.candidates.unheld[0] = positions{1}
	check("both", 7, true)
	g.admitted = 2
	check("no room for the host that has a slot", 8, true)
	g.candidates.unheld[0] = nil
	check("nobody but the host that has a slot", 7, true)
}
