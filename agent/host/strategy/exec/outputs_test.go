package exec

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
)

// TestOutputs checks that upgrade finds the outputs of steps in a folder that only it can read, that
// nothing of them is left afterwards, also not of a script that outlived its worker, that no other
// action and no program asks for them, and that an upgrade fails which cannot have them.
func TestOutputs(t *testing.T) {
	t.Parallel()
	h := newHost(t, map[string]string{
		"upgrade": `cat "$OSUPGRADE_OUTPUTS/JOIN" >"$WORK/join"; stat -c %a "$OSUPGRADE_OUTPUTS" "$OSUPGRADE_OUTPUTS/JOIN" >"$WORK/modes"; echo "$OSUPGRADE_OUTPUTS" >"$WORK/folder"`,
		"resume":  `echo "none ${OSUPGRADE_OUTPUTS-}" >"$WORK/resumed"`,
	})
	s := h.open()
	with := job()
	asked, fails := 0, error(nil)
	with.Outputs = func(context.Context) (map[string]string, error) {
		asked++
		return map[string]string{"JOIN": "two\nlines"}, fails
	}
	if _, err := s.Upgrade(t.Context(), with); err != nil {
		t.Fatal(err)
	}
	if got := h.read("join"); got != "two\nlines" || h.read("modes") != "700\n600\n" {
		t.Errorf("the script has read %q; the modes are %q", got, h.read("modes"))
	}
	folder := strings.TrimSpace(h.read("folder"))
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after the upgrade there is %s: %v", folder, err)
	}
	if err := os.MkdirAll(folder+"/OLD", 0o700); err != nil { // As a script leaves it that ended without a worker.
		t.Fatal(err)
	}
	if _, err := s.Resume(t.Context(), job()); err != nil || h.read("resumed") != "none \n" {
		t.Errorf("resume, of a run without outputs, comes to %v and finds %q", err, h.read("resumed"))
	}
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an earlier folder is left: %v", err)
	}
	fails = errors.New("the site keeps no secrets")
	if _, err := s.Upgrade(t.Context(), with); err == nil || err.Error() != "cannot run upgrade: cannot get the outputs of the steps before it: the site keeps no secrets" {
		t.Errorf("without them it comes to %v", err)
	}
	if asked != 2 {
		t.Errorf("the site was asked %d times", asked)
	}
}
