package message

import (
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// TestTasksOfAStep checks which tasks and outcomes of a step are read, and what is wrong with others.
func TestTasksOfAStep(t *testing.T) {
	t.Parallel()
	atSite := Task{Run: 1, Kind: Step, Stage: "backup", Hook: &rollout.Hook{On: rollout.OnSite}}
	onHost := Task{Run: 1, Kind: Step, Stage: "swact", Host: "c1", Hook: &rollout.Hook{On: rollout.OnHost}, Outputs: map[string]string{"A": "b"}}
	for name, row := range map[string]struct {
		change func(*Task)
		of     Task
		want   string
	}{
		"at the site":             {func(*Task) {}, atSite, ""},
		"on a host":               {func(*Task) {}, onHost, ""},
		"at the site with a host": {func(t *Task) { t.Host = "c1" }, atSite, `host "c1" is not a host name`},
		"on no host":              {func(t *Task) { t.Host = "" }, onHost, `host "" is not a host name`},
		"an undo":                 {func(t *Task) { t.Kind = Undo }, onHost, ""},
		"checks before a run":     {func(t *Task) { t.Kind, t.Stage, t.Hook = Start, "", nil }, onHost, ""},
		"... at the site":         {func(t *Task) { t.Kind, t.Stage, t.Hook = Start, "", nil }, atSite, ""},
		"the fleet on a host":     {func(t *Task) { t.Kind, t.Stage, t.Hook = Fleet, "", nil }, onHost, `host "c1" is not a host name`},
		"a drain of no host":      {func(t *Task) { t.Kind, t.Stage = Drain, "" }, atSite, `host "" is not a host name`},
		"of no stage":             {func(t *Task) { t.Stage = "" }, onHost, `stage "" is not that of a step`},
		"a drain of a stage":      {func(t *Task) { t.Kind = Drain }, onHost, `stage "swact" is not that of a step`},
	} {
		row.change(&row.of)
		_, err := DecodeTask(row.of.Encode())
		wrong(t, name, err, row.want)
	}
	for name, row := range map[string]struct {
		outputs Outputs
		want    string
	}{
		"values":       {Outputs{Values: map[string]string{"JOIN": "secret"}}, ""},
		"no name":      {Outputs{Values: map[string]string{"a-b": ""}}, `"a-b" is not the name of an output`},
		"too long":     {Outputs{Values: map[string]string{"A": strings.Repeat("x", rollout.MaxOutputs)}}, "the outputs have 65537 bytes; they may have 65536"},
		"sealed":       {Outputs{Sealed: "x"}, "its outputs are sealed, which only the site does"},
		"only a name":  {Outputs{Names: []string{"A"}}, "its outputs are sealed, which only the site does"},
		"none of them": {Outputs{}, ""},
	} {
		o := onHost.Outcome(true, "")
		o.Outputs = &row.outputs
		_, err := DecodeOutcome(o.Encode())
		wrong(t, name, err, row.want)
	}
}

func wrong(t *testing.T, name string, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("%s: got error %v, want %q", name, err, want)
	}
}
