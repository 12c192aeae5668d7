package check_test

import (
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/check"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/exec"
)

// example is a copy of examples/exec with an appliance of its own.
func example(t *testing.T, changed map[string]string) check.Options {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, "scripts")
	if err := os.CopyFS(dir, os.DirFS("../../../../examples/exec")); err != nil {
		t.Fatal(err)
	}
	appliance, repository := filepath.Join(root, "appliance"), filepath.Join(root, "repository")
	write(t, dir, "settings", fmt.Sprintf("root=%s\nrepository=%s\nbefore_switch=\nafter_switch=\n", appliance, repository))
	for name, content := range changed {
		if content == "" {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		write(t, dir, name, "#!/bin/sh\ncd \"$(dirname \"$0\")\" && . ./common.sh\n"+content+"\n")
	}
	return check.Options{
		Strategy: exec.Options{Dir: dir, StateDir: filepath.Join(root, "state")},
		Reset:    fmt.Sprintf("rm -rf %s %s && %s/setup", appliance, repository, dir), Limit: time.Minute,
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
func play(t *testing.T, o check.Options) (ok bool, said string) {
	t.Helper()
	var lines strings.Builder
	ok, err := check.Run(t.Context(), o, func(f check.Finding) { fmt.Fprintf(&lines, "%s %s: %s\n", f.Level, f.What, f.Text) })
	if err != nil {
		t.Fatal(err)
	}
	return ok, lines.String()
}

// TestExamplePasses checks that the scripts of examples/exec pass, with each action killed
// three times.
func TestExamplePasses(t *testing.T) {
	t.Parallel()
	ok, said := play(t, example(t, nil))
	if !ok || strings.Contains(said, "FAIL") {
		t.Errorf("the example does not pass:\n%s", said)
	}
	for _, want := range []string{
		"ok prepare: 3 changes planned", "ok resume before upgrade: not done", "ok rollback: the host has the versions that it had",
		"ok prepare was killed in its middle", "ok upgrade was killed at its start", "ok upgrade was killed at its end", "ok rollback was killed in its middle",
		"ok prepare-rollback: a run of its own rolls back the upgrade, prepared in ", "ok prepare-rollback: and another one rolls that back",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
}

// twoSystems are the scripts of a host that has two bootable systems.
func twoSystems(booted, confirm string) map[string]string {
	return map[string]string{"booted": booted, "confirm": confirm}
}

// runs prints the release that runs.
const runs = `printf '{"running": "%s"}\n' "$(basename "$(readlink "$root/current")" .image)"`

// TestTwoSystems checks that booted and confirm are played: before the upgrade, after it, and
// killed three times.
func TestTwoSystems(t *testing.T) {
	t.Parallel()
	ok, said := play(t, example(t, twoSystems(runs, `basename "$(readlink "$root/current")" >>"$root/confirmed"`)))
	if !ok || strings.Contains(said, "FAIL") || strings.Contains(said, "no scripts booted") {
		t.Errorf("it does not pass:\n%s", said)
	}
	for _, want := range []string{"ok confirm before upgrade: ", "ok confirm was killed at its start", "ok confirm was killed in its middle", "ok confirm was killed at its end"} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
}

// TestBadScripts checks that what is wrong with a set of scripts is found, and said with
// what to mend.
func TestBadScripts(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		changed map[string]string
		want    string
	}{
		"done by exit status": {
			map[string]string{"upgrade": `echo "nothing to do"`},
			"FAIL upgrade: it says that it is done, and 3 of 3 changes of the plan are missing, such as appliance 1.0 → 1.1; compare the host with the plan",
		},
		"resume believes": {
			map[string]string{"resume": `exit 0`},
			"FAIL resume before upgrade: it says done; nothing was upgraded, so it must end with exit status 11",
		},
		"resume never knows": {
			map[string]string{"resume": `exit 11`},
			"FAIL resume after upgrade: it says not done; the upgrade is complete, so it must end with exit status 0",
		},
		"prepare upgrades": {
			map[string]string{"prepare": `switch_to() { :; }; mkdir -p "$run"; cp "$repository/1.1/image" "$root/images/1.1.image"; cp "$repository/1.1/manifest" "$root/images/1.1.manifest"; cp "$repository/1.1/SHA256SUMS" "$root/images/1.1.sums"; save "$run/target" 1.1; ln -sfn images/1.1.image "$root/current"`},
			"FAIL prepare: it has changed what runs: appliance 1.0 → 1.1, base-os 1.0 → 1.1, kernel 6.1.0 → 6.1.1; only upgrade may do that",
		},
		"versions print garbage":  {map[string]string{"versions": `echo all is well`}, `FAIL versions: cannot parse the output of versions: line 1: "all is well" is not a package`},
		"a script is missing":     {map[string]string{"resume": ""}, "FAIL scripts: cannot upgrade by scripts: the script"},
		"verify fails":            {map[string]string{"verify": `die "the service does not answer"`}, "FAIL verify after upgrade: the service does not answer"},
		"rollback does nothing":   {map[string]string{"rollback": `exit 0`}, "FAIL rollback: the versions are not those from before: appliance 1.0 → 1.1"},
		"the plan cannot be read": {map[string]string{"plan": `echo '{"changes": 7}'`}, "FAIL plan: cannot parse the output of plan: cannot read plan"},
		"confirm fails the second time": {
			twoSystems(runs, `mkdir "$root/confirmed"`),
			"FAIL confirm before upgrade: ",
		},
		"confirm changes what runs": {
			twoSystems(runs, `ln -sfn images/1.1.image "$root/current"; cp "$repository/1.1/image" "$root/images/1.1.image"; cp "$repository/1.1/manifest" "$root/images/1.1.manifest"`),
			"FAIL confirm before upgrade: it has changed what runs: appliance 1.0 → 1.1",
		},
		"booted names a slot": {
			twoSystems(`echo '{"running": "slot-b"}'`, `exit 0`),
			"FAIL booted after upgrade: it says that slot-b runs, which no change of the plan leads to",
		},
		"booted remembers a failure": {
			twoSystems(`echo '{"running": "1.0", "failed": "1.1"}'`, `exit 0`),
			"FAIL booted before upgrade: it says that the machine gave up 1.1, which it did not",
		},
		"prepare-rollback changes what runs": {map[string]string{"prepare-rollback": `switch_to "$(before)"`}, "FAIL prepare-rollback: it has changed what runs: appliance 1.1 → 1.0"},
		"prepare-rollback tells another plan": {
			map[string]string{"prepare-rollback": `echo '{"plan": {"changes": [{"name": "appliance", "from": "1.1", "to": "0.9"}]}}'`},
			"FAIL prepare-rollback: it tells the plan [appliance 1.1 → 0.9]; to undo all of the upgrade it is [appliance 1.1 → 1.0",
		},
		"prepare-rollback fails": {map[string]string{"prepare-rollback": `die "the release before is gone"`}, "FAIL prepare-rollback: the release before is gone"},
		"rollback knows only its own run": {
			map[string]string{"rollback": `[ -f "$run/from" ] || exit 0; switch_to "$(cat "$run/from")"; finish`},
			"FAIL missing after prepare-rollback: [appliance 1.1 → 1.0",
		},
		"booted alone":              {map[string]string{"booted": runs}, "FAIL scripts: "},
		"upgrade cannot be resumed": {map[string]string{"upgrade": `rm "$root/current"; sleep 1; save "$run/from" 1.0; save "$run/boot-id" "$(boot_id)"; switch_to "$(cat "$run/target")"; finish; exit 10`}, "FAIL "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if ok, said := play(t, example(t, row.changed)); ok || !strings.Contains(said, row.want) {
				t.Errorf("it passes: %v; it does not say %q:\n%s", ok, row.want, said)
			}
		})
	}
}

// TestNoWayBack checks that scripts which cannot roll back a run pass, and that this is said.
func TestNoWayBack(t *testing.T) {
	t.Parallel()
	ok, said := play(t, example(t, map[string]string{"prepare-rollback": ""}))
	if want := "note prepare-rollback: no run that is over can be rolled back on this host: this strategy has no rollback: there is no script prepare-rollback"; !ok || !strings.Contains(said, want) {
		t.Errorf("it passes: %v; it does not say %q:\n%s", ok, want, said)
	}
}

// TestWithoutReset checks that nothing is killed on a machine that cannot be made what it
// was, and that this is said.
func TestWithoutReset(t *testing.T) {
	t.Parallel()
	o := example(t, nil)
	if out, err := osexec.CommandContext(t.Context(), "sh", "-c", o.Reset).CombinedOutput(); err != nil { //nolint:gosec // the test's own
		t.Fatal(err, string(out))
	}
	o.Reset = ""
	if ok, said := play(t, o); !ok || !strings.Contains(said, "note kills: nothing was killed: give --reset") {
		t.Errorf("it says, %v:\n%s", ok, said)
	}
}
