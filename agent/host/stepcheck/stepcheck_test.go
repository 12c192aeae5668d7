package stepcheck_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	runner "github.com/osupgrade/terraform-provider-osupgrade/agent/host/check"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/stepcheck"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/check"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// example is a copy of examples/steps with folders of its own. Scripts that are given replace its own.
func example(t *testing.T, do, undo string) stepcheck.Options {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, "scripts")
	if err := os.CopyFS(dir, os.DirFS("../../../examples/steps")); err != nil {
		t.Fatal(err)
	}
	data, backups := filepath.Join(root, "data"), filepath.Join(root, "backups")
	for _, folder := range []string{data, backups} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, data, "one", "1\n")
	write(t, dir, "settings", fmt.Sprintf("data=%s\nbackups=%s\ncopy=$backups/copy\n", data, backups))
	for name, script := range map[string]string{"backup": do, "drop-backup": undo} {
		if script != "" {
			write(t, dir, name, "#!/bin/sh\nset -eu\n. ./settings\n"+script+"\n")
		}
	}
	return stepcheck.Options{
		Runner: &runner.Runner{Scripts: dir},
		Step: rollout.Step{
			Do: &rollout.Hook{Type: rollout.Exec, Script: "backup"}, Undo: &rollout.Hook{Type: rollout.Exec, Script: "drop-backup"}, Gives: []string{"BACKUP"},
		},
		State: "ls -R " + backups, Limit: time.Minute,
	}
}

// write writes a script. It holds syscall.ForkLock: a process forked meanwhile would
// inherit the file open for writing, and execve(2) would fail.
func write(t *testing.T, dir, name, content string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o755); err != nil { //nolint:gosec // a script
		t.Fatal(err)
	}
}

// play returns what the check says, a line for each finding.
func play(t *testing.T, o stepcheck.Options) (ok bool, said string) {
	t.Helper()
	var lines strings.Builder
	ok, err := stepcheck.Run(t.Context(), o, func(f check.Finding) { fmt.Fprintf(&lines, "%s %s: %s\n", f.Level, f.What, f.Text) })
	if err != nil {
		t.Fatal(err)
	}
	return ok, lines.String()
}

// TestExamplePasses checks that the scripts of examples/steps pass, at the site and on a host, with all
// that is played.
func TestExamplePasses(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"", "c1"} {
		o := example(t, "", "")
		o.Host = host
		ok, said := play(t, o)
		for _, want := range []string{
			"ok do: done in", "; it gave BACKUP\nok do again: nothing was done twice; it gave BACKUP\n", "ok undo: as it must be", "ok undo again: ", "ok do after undo: ",
			" do after do was killed in its middle: ", " undo after do was killed at its start: ", " undo after undo was killed at its end: ",
		} {
			if !ok || !strings.Contains(said, want) {
				t.Errorf("on host %q: it passes %t, and %q is not in\n%s", host, ok, want, said)
			}
		}
	}
}

// TestExampleWaits checks that a script of examples/steps waits for an earlier one that still runs,
// because its worker or site was killed.
func TestExampleWaits(t *testing.T) {
	t.Parallel()
	for script, gives := range map[string][]string{"backup": {"BACKUP"}, "drop-backup": nil} {
		o := example(t, "", "")
		folder, err := os.Open(strings.TrimPrefix(o.State, "ls -R "))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Flock(int(folder.Fd()), syscall.LOCK_EX); err != nil {
			t.Fatal(err)
		}
		ended := make(chan message.Outcome, 1)
		go func() {
			ended <- o.Runner.Run(t.Context(), message.Task{Run: 1, Kind: message.Step, Stage: "backup", Gives: gives, Hook: &rollout.Hook{Type: rollout.Exec, Script: script, Timeout: rollout.SpanOf(time.Minute)}})
		}()
		select {
		case came := <-ended:
			t.Errorf("%s does not wait: %+v", script, came)
		case <-time.After(300 * time.Millisecond):
		}
		if err := folder.Close(); err != nil {
			t.Fatal(err)
		}
		if came := <-ended; !came.OK {
			t.Errorf("%s: %s", script, came.Text)
		}
	}
}

// TestFaultsAreFound checks that scripts which break a rule of steps do not pass, and what is said of
// them.
func TestFaultsAreFound(t *testing.T) {
	t.Parallel()
	const (
		gives = `; echo BACKUP=x >&3`
		made  = `[ -e "$copy" ] || echo whole >"$copy"` + gives
		gone  = `rm -f "$copy"`
	)
	for name, row := range map[string]struct{ do, undo, want string }{
		"it fails":                {`echo no room; exit 3`, "", "FAIL do: it failed: 1 try failed; the last try: no room: exit status 3; a run would stop here"},
		"no output":               {`true`, "", "its output BACKUP is missing"},
		"another output":          {`echo BACKUPS=1 >&3`, "", "has a name that gives does not list"},
		"no line":                 {`echo BACKUP >&3`, "", "is not NAME=VALUE"},
		"too long an output":      {`printf BACKUP= >&3; head -c 66000 /dev/zero | tr '\0' x >&3`, "", "its outputs have more than 65536 bytes"},
		"it fails the second":     {`mkdir "$copy"` + gives, "", "FAIL do again: it failed: "},
		"it does all again":       {`touch "$copy$$"` + gives, "", "FAIL do again: the state differs: line "},
		"the undo does nothing":   {made, "true", "FAIL undo: the state differs: line 2 is \"copy\" and must be \"\"; undo all that the step has done"},
		"the undo fails again":    {made, `rm "$copy"`, "FAIL undo again: it failed: "},
		"the undo leaves a trace": {`[ ! -e "$copy.gone" ]; ` + made, gone + `; touch "$copy.gone"`, "FAIL undo: the state differs"},
		"a step in two parts": {
			`[ ! -e "$copy" ] || [ "$(cat "$copy")" = whole ] || exit 9; [ -e "$copy" ] || { echo half >"$copy"; sleep 0.3; echo whole >"$copy"; }` + gives, gone,
			": it failed: 1 try failed; the last try: exit status 9; the machine may go down in the middle of a step",
		},
		"an undo of what is whole": {
			`[ -e "$copy" ] || { touch "$copy.half"; sleep 0.3; mv "$copy.half" "$copy"; }` + gives, gone,
			"FAIL undo after do was killed ",
		},
		"an undo in two parts": {
			made + `; touch "$copy.log"`, `[ ! -e "$copy" ] || { ` + gone + `; sleep 0.3; rm -f "$copy.log"; }`,
			"FAIL undo after undo was killed ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if ok, said := play(t, example(t, row.do, row.undo)); ok || !strings.Contains(said, row.want) {
				t.Errorf("it passes: %t; want %q in\n%s", ok, row.want, said)
			}
		})
	}
}

// TestWithout checks what is said of a step that has no undo, of one that is never killed, and of one
// whose state nobody prints.
func TestWithout(t *testing.T) {
	t.Parallel()
	o := example(t, "", "")
	o.Step.Undo, o.State = nil, ""
	ok, said := play(t, o)
	for _, want := range []string{"note undo: there is none", "note kills: nothing was killed: give --reset", "note state: the scripts were believed: give --state"} {
		if !ok || !strings.Contains(said, want) {
			t.Errorf("it passes %t, and %q is not in\n%s", ok, want, said)
		}
	}
	o = example(t, "", "")
	o.Step.Undo, o.Reset = nil, o.Runner.Scripts+"/drop-backup"
	o.Reset = "cd " + o.Runner.Scripts + " && ./drop-backup"
	if ok, said := play(t, o); !ok || !strings.Contains(said, "do after do was killed at its end: ") || strings.Contains(said, "undo after") {
		t.Errorf("with a reset it passes %t:\n%s", ok, said)
	}
	o.State = "echo"
	if ok, said := play(t, o); !ok || !strings.Contains(said, "note state: it is the same before the step and after it") {
		t.Errorf("with a state that says nothing it passes %t:\n%s", ok, said)
	}
}

// TestOutputsOfEarlierSteps checks that scripts find them where a run puts them.
func TestOutputsOfEarlierSteps(t *testing.T) {
	t.Parallel()
	o := example(t, `[ "$(cat "$OSUPGRADE_OUTPUTS/JOIN")" = "a b" ] && [ "$OSUPGRADE_STAGE" = check ]; echo BACKUP=1 >&3`, "true")
	o.Outputs = map[string]string{"JOIN": "a b"}
	if ok, said := play(t, o); !ok {
		t.Error(said)
	}
}
