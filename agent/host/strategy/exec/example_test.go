package exec

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
)

const exampleFolder = "../../../../examples/exec"

// newExample returns a host with the scripts of examples/exec and their setup: 1.0
// runs and 1.1 is the latest release. env is the environment of the scripts.
func newExample(t *testing.T, env map[string]string) *host {
	t.Helper()
	h := newHost(t, map[string]string{})
	entries, err := os.ReadDir(exampleFolder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(exampleFolder, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		h.script(entry.Name(), string(content))
	}
	h.export("OSUPGRADE_EXAMPLE_ROOT", h.path("appliance"))
	h.export("OSUPGRADE_EXAMPLE_REPOSITORY", h.path("repository"))
	h.runSetup()
	for name, value := range env {
		h.export(name, value)
	}
	return h
}

// runSetup runs the script setup, which is not an action, under the name of an
// action.
func (h *host) runSetup() {
	h.t.Helper()
	versions := h.read("scripts/versions")
	h.script("versions", h.read("scripts/setup")+"\necho done 1\n")
	if _, err := h.open().Versions(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	h.script("versions", versions)
}

func wantRelease(t *testing.T, s *Strategy, release, kernel string) {
	t.Helper()
	got, err := s.Versions(t.Context())
	if err != nil || got["appliance"] != release || got["base-os"] != release || got["kernel"] != kernel || len(got) != 3 {
		t.Fatalf("versions are %v, %v; want release %s with kernel %s", got, err, release, kernel)
	}
}

func wantOutcome(t *testing.T, want, got strategy.Outcome, err error) {
	t.Helper()
	if got != want || err != nil {
		t.Fatalf("got %d, %v; want %d", got, err, want)
	}
}

// booted is the job after a boot.
func booted() strategy.Job {
	j := job()
	j.BootID = "b2"
	return j
}

func TestExampleFromPrepareToRollback(t *testing.T) {
	t.Parallel()
	h := newExample(t, nil)
	s, ctx := h.open(), t.Context()
	if err := s.Detect(ctx); err != nil {
		t.Fatal(err)
	}
	outcome, err := s.Resume(ctx, job())
	wantOutcome(t, strategy.NotDone, outcome, err)
	for range 2 {
		if _, err := s.Prepare(ctx, job()); err != nil {
			t.Fatal(err)
		}
	}
	wantRelease(t, s, "1.0", "6.1.0")
	outcome, err = s.Resume(ctx, job())
	wantOutcome(t, strategy.NotDone, outcome, err)
	outcome, err = s.Upgrade(ctx, job())
	wantOutcome(t, strategy.RebootRequired, outcome, err)
	wantError(t, s.Verify(ctx, job()), "needs a reboot to run: exit status 1")
	outcome, err = s.Resume(ctx, booted())
	wantOutcome(t, strategy.Done, outcome, err)
	if err := s.Verify(ctx, booted()); err != nil {
		t.Fatal(err)
	}
	wantRelease(t, s, "1.1", "6.1.1")
	if _, err := s.Rollback(ctx, booted()); err != nil {
		t.Fatal(err)
	}
	wantRelease(t, s, "1.0", "6.1.0")
	wantError(t, s.Verify(ctx, booted()), "release 1.0 runs, not 1.1")
}

func TestExampleKilledInTheMiddleOfUpgrade(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		hook string
		job  strategy.Job
		want strategy.Outcome
		then string
	}{
		"before the switch":            {"OSUPGRADE_EXAMPLE_BEFORE_SWITCH", job(), strategy.NotDone, "1.0"},
		"before the switch and booted": {"OSUPGRADE_EXAMPLE_BEFORE_SWITCH", booted(), strategy.NotDone, "1.0"},
		"after the switch":             {"OSUPGRADE_EXAMPLE_AFTER_SWITCH", job(), strategy.RebootRequired, "1.1"},
		"after the switch and booted":  {"OSUPGRADE_EXAMPLE_AFTER_SWITCH", booted(), strategy.Done, "1.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newExample(t, map[string]string{row.hook: `echo $PPID >"$WORK/here"; read x <"$WORK/never"`})
			h.pipe("here")
			h.pipe("never")
			s := h.open()
			if _, err := s.Prepare(t.Context(), job()); err != nil {
				t.Fatal(err)
			}
			ended := begin(t.Context(), s.Upgrade, job())
			pid, err := strconv.Atoi(h.hear("here"))
			if err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(-pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			wantError(t, (<-ended).err, "upgrade was ended by signal 9 (killed)")

			h.export(row.hook, `echo "$OSUPGRADE_ACTION" >>"$WORK/hooks"`)
			s = h.open()
			outcome, err := s.Resume(t.Context(), row.job)
			wantOutcome(t, row.want, outcome, err)
			if got, err := os.Readlink(h.path("appliance/current")); err != nil || got != "images/"+row.then+".image" {
				t.Fatalf("the link is %s, %v", got, err)
			}
			if row.want == strategy.NotDone {
				outcome, err = s.Upgrade(t.Context(), row.job)
				wantOutcome(t, strategy.RebootRequired, outcome, err)
				return
			}
			if got := h.read("hooks"); got != "resume\n" {
				t.Fatalf("what comes after the switch was run by %q", got)
			}
		})
	}
}

func TestExampleWithoutAnotherKernelNeedsNoReboot(t *testing.T) {
	t.Parallel()
	h := newExample(t, nil)
	s := h.open()
	if _, err := s.Prepare(t.Context(), job()); err != nil {
		t.Fatal(err)
	}
	// What is damaged after it was checked is refused, so both go together.
	h.replace("appliance/images/1.0.manifest", "6.1.0", "6.1.1")
	outcome, err := s.Upgrade(t.Context(), job())
	wantOutcome(t, strategy.Done, outcome, err)
	outcome, err = s.Resume(t.Context(), job())
	wantOutcome(t, strategy.Done, outcome, err)
	if err := s.Verify(t.Context(), job()); err != nil {
		t.Fatal(err)
	}
	_, err = s.Rollback(t.Context(), job())
	wantError(t, err, "release 1.0 is damaged")
}

// replace changes text in a file.
func (h *host) replace(name, from, to string) {
	h.t.Helper()
	content := h.read(name)
	if !strings.Contains(content, from) {
		h.t.Fatalf("%s has no %q", name, from)
	}
	if err := os.WriteFile(h.path(name), []byte(strings.ReplaceAll(content, from, to)), 0o644); err != nil {
		h.t.Fatal(err)
	}
}

func TestExampleRefuses(t *testing.T) {
	t.Parallel()
	remove := func(name string) func(*host) {
		return func(h *host) {
			if err := os.Remove(h.path(name)); err != nil {
				h.t.Fatal(err)
			}
		}
	}
	for name, row := range map[string]struct {
		change func(*host)
		action action
		want   string
	}{
		"a damaged image":     {func(h *host) { h.replace("repository/1.1/image", "image", "imago") }, "prepare", "image of release 1.1 does not have the SHA-256 sum"},
		"a damaged manifest":  {func(h *host) { h.replace("repository/1.1/manifest", "6.1.1", "6.6.6") }, "prepare", "manifest of release 1.1 does not have"},
		"an empty list":       {func(h *host) { h.replace("repository/1.1/SHA256SUMS", "image", "x") }, "prepare", "image of release 1.1 does not have"},
		"a missing image":     {remove("repository/1.1/image"), "prepare", "cannot fetch image of release 1.1"},
		"no latest":           {remove("repository/latest"), "prepare", "has no latest release"},
		"a release elsewhere": {func(h *host) { h.replace("repository/latest", "1.1", "../1.1") }, "prepare", `"../1.1" in`},
		"nothing prepared":    {func(*host) {}, "upgrade", "run 41 has prepared nothing"},
		"no appliance":        {remove("appliance/current"), "versions", "current is missing"},
		"another's status":    {prepared("before_switch", "exit 10"), "upgrade", "before_switch failed with status 10: exit status 1"},
		"another's status 2":  {prepared("after_switch", "exit 11"), "upgrade", "after_switch failed with status 11: exit status 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newExample(t, nil)
			row.change(h)
			_, err := run(t.Context(), h.open(), row.action, job())
			wantError(t, err, row.want)
			if row.action != actionPrepare {
				return
			}
			wantRelease(t, h.open(), "1.0", "6.1.0")
			if _, err := os.Stat(h.path("appliance/runs/41/target")); !errors.Is(err, os.ErrNotExist) {
				t.Fatalf("the run has a target: %v", err)
			}
		})
	}
}

// prepared has prepared run 41 and then sets a hook.
func prepared(hook, command string) func(*host) {
	return func(h *host) {
		if _, err := h.open().Prepare(h.t.Context(), job()); err != nil {
			h.t.Fatal(err)
		}
		h.export("OSUPGRADE_EXAMPLE_"+strings.ToUpper(hook), command)
	}
}

func TestExampleIsExecutableAsItStands(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"versions", "prepare", "upgrade", "resume", "verify", "rollback", "setup"} {
		info, err := os.Stat(filepath.Join(exampleFolder, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode()&0o100 == 0 {
			t.Errorf("%s has mode %#o", name, info.Mode().Perm())
		}
	}
}
