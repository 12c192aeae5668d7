package view_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/view"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// TestStagesOverRuns checks that a run which goes on after others, and ends after a stage, shows the stages
// of all of them in the order of the rollout. One that no run has hosts for is not shown.
func TestStagesOverRuns(t *testing.T) {
	t.Parallel()
	opens := time.Date(2026, 11, 28, 2, 0, 0, 0, time.UTC)
	policy := rollout.Default(1)
	policy.Stages[0].Name = "workers"
	opened, _, _ := run.Rehearse(opens, message.Opened{
		Trigger: message.TriggerManual, Members: []string{"w2"}, Rollout: policy, NotAfter: opens.Add(time.Hour), Until: "workers",
		Reached: &message.Reached{Since: 41, Stages: []message.ReachedStage{
			{Name: "backup", Step: true, Run: 41, Outputs: &message.Outputs{Names: []string{"COPY"}, Sealed: "x"}},
			{Name: "standby", Run: 43, Done: []string{"c1", "c2"}, Closed: opens.Add(-time.Hour)},
			{Name: "spare"},
			{Name: "workers", Left: []string{"w2"}},
			{Name: "storage", Left: []string{"s1", "s2"}},
			{Name: "arbiter"},
			{Name: "complete", Step: true},
		}},
	}, run.Usual{})
	shown := view.Run(opened, opens, nil, nil, nil)
	var all []string
	for _, s := range shown.Stages {
		text := fmt.Sprintf("%s %s %d/%d", s.Name, s.Phase, s.Upgraded, s.Hosts)
		if s.DoneIn != 0 {
			text += fmt.Sprintf(" in %d", s.DoneIn)
		}
		if s.Step != nil {
			text += " step" + strings.Join(s.Step.Gives, " ")
		}
		all = append(all, text)
	}
	if got, want := strings.Join(all, "; "), "backup done 0/0 in 41 stepCOPY; standby done 2/2 in 43; workers pending 0/1; storage later 0/2; complete later 0/0 step"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if shown.Until != "workers" || shown.GoesOnSince != 41 || shown.WayBack == nil || shown.WayBack.Until != "standby" || shown.WayBack.Closed == nil {
		t.Errorf("got %+v", shown)
	}
}
