package check

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// stepOf is a step that runs the script "it".
func stepOf(gives ...string) message.Task {
	hook := &rollout.Hook{Type: rollout.Exec, Script: "it", On: rollout.OnSite, Timeout: span(time.Minute), Retries: new(1), RetryInterval: "0s"}
	return message.Task{Run: 41, Kind: message.Step, Stage: "join", Hook: hook, Gives: gives}
}

// TestOutputs checks what a step may write as its outputs, and what is said of anything else.
func TestOutputs(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		body  string
		gives []string
		want  map[string]string
		text  string
	}{
		"two":                   {"echo A=1 >&3; echo; echo B=x=y >&3; echo said", []string{"A", "B"}, map[string]string{"A": "1", "B": "x=y"}, ""},
		"an empty one":          {"echo A= >&3", []string{"A"}, map[string]string{"A": ""}, ""},
		"none":                  {"exit 0", nil, nil, ""},
		"one is missing":        {"echo A=1 >&3", []string{"A", "B"}, nil, "2 tries failed; the last try: its output B is missing; write a line B=VALUE to descriptor 3"},
		"one too many":          {"echo A=1 >&3; echo B=2 >&3", []string{"A"}, nil, "2 tries failed; the last try: line 2 of its outputs has a name that gives does not list; list it, or write no such line"},
		"twice":                 {"echo A=1 >&3; echo A=2 >&3", []string{"A"}, nil, "2 tries failed; the last try: line 2 of its outputs has output A for the second time"},
		"no NAME=VALUE":         {"echo secret >&3", []string{"A"}, nil, "2 tries failed; the last try: line 1 of its outputs is not NAME=VALUE"},
		"too long":              {"printf A= >&3; head -c 65536 /dev/zero | tr '\\0' x >&3; echo >&3", []string{"A"}, nil, "2 tries failed; the last try: its outputs have more than 65536 bytes"},
		"much too long":         {"head -c 3000000 /dev/zero | tr '\\0' x >&3", []string{"A"}, nil, "2 tries failed; the last try: its outputs have more than 65536 bytes"},
		"it fails":              {"echo A=1 >&3; echo no >&2; exit 3", []string{"A"}, nil, "2 tries failed; the last try: no: exit status 3"},
		"the second try counts": {"test -e once || { touch once; echo B=1 >&3; exit 0; }; echo A=2 >&3", []string{"A"}, map[string]string{"A": "2"}, ""},
		"it leaves a process":   {"setsid sleep 20 & sleep 0.2; echo A=1 >&3", []string{"A"}, map[string]string{"A": "1"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task := stepOf(row.gives...)
			got := (&Runner{Scripts: install(t, row.body)}).Run(t.Context(), task)
			if got.OK != (row.text == "") || got.Text != row.text || got.Key() != task.Key() {
				t.Errorf("the outcome is %+v", got)
			}
			var values map[string]string
			if got.Outputs != nil {
				values = got.Outputs.Values
			}
			if !maps.Equal(values, row.want) {
				t.Errorf("it gives %v, want %v", values, row.want)
			}
		})
	}
}

// TestOutputsOfEarlierSteps checks that a step finds the outputs of those before it in files that only
// its user can read, and that nothing of them is left, also after a process that was killed.
func TestOutputsOfEarlierSteps(t *testing.T) {
	t.Parallel()
	outputs := filepath.Join(t.TempDir(), "outputs")
	r := &Runner{Outputs: outputs, Scripts: install(t, `printf 'A=' >&3; cat "$OSUPGRADE_OUTPUTS/JOIN" >&3; echo >&3; echo "B=$(stat -c '%a' "$OSUPGRADE_OUTPUTS" "$OSUPGRADE_OUTPUTS/JOIN" | tr '\n' ' ')$OSUPGRADE_STAGE" >&3`)}
	task := stepOf("A", "B")
	task.Outputs = map[string]string{"JOIN": "token 1"}
	got := r.Run(t.Context(), task)
	if want := map[string]string{"A": "token 1", "B": "700 600 join"}; got.Outputs == nil || !maps.Equal(got.Outputs.Values, want) {
		t.Errorf("the outcome is %+v", got)
	}
	if left, err := os.ReadDir(outputs); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	if err := os.WriteFile(filepath.Join(outputs, "JOIN"), []byte("of a process that was killed"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.Clean(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(outputs); !os.IsNotExist(err) {
		t.Errorf("after Clean: %v", err)
	}
	task.Outputs = map[string]string{"../x": ""}
	if got := r.Run(t.Context(), task); got.OK || !strings.Contains(got.Text, `"../x" is not the name of an output`) {
		t.Errorf("the outcome is %+v", got)
	}
}
