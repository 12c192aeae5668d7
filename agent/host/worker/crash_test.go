package worker

import (
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// TestCrashAnywhere kills the worker at each visit of each label of a whole
// run, with every command delivered twice, and checks that the host is
// upgraded exactly once, rebooted exactly once, and answers what is true
// (invariants 2 and 5 of package oracle). One kill loses no reboot: a worker that finds
// in its journal that the machine is asked for one asks once more in the same boot.
//
// TestReboot has the losses that remain. A machine that has accepted a reboot and
// does not go down is not asked again, because that reboot may yet come; nor is a
// machine whose worker was killed twice while it asked, because its reboot command
// may be what kills the worker; nor is a machine after not-after or after another
// worker had the lease, because it may be back in service.
func TestCrashAnywhere(t *testing.T) {
	t.Parallel()
	var calm *rig
	inBubble(t, func(r *rig) {
		calm = r
		if !wholeRun(r) {
			t.Error("the reboot is lost without a crash")
		}
	})
	if calm.starts != 7 { // One for the journal, each command, each task, and the reboot.
		t.Fatalf("a run without a crash takes %d workers, not 7", calm.starts)
	}
	cells := 0
	for label, visits := range calm.visits {
		for visit := range visits {
			cells++
			t.Run(label, func(t *testing.T) {
				t.Parallel()
				inBubble(t, func(r *rig) {
					r.dieAt, r.visit = label, visit+1
					if !wholeRun(r) {
						t.Error("the reboot is lost")
					}
					if r.visits[label] <= visit {
						t.Fatalf("the label was visited %d times, so nothing was killed", r.visits[label])
					}
				})
			})
		}
	}
	if cells < 60 {
		t.Fatalf("only %d places to be killed at; the labels are gone", cells)
	}
}

// wholeRun plays prepare, drain, upgrade, reboot and undrain as a controller would, and tells
// whether the host was rebooted.
func wholeRun(r *rig) (rebooted bool) {
	r.t.Helper()
	before, err := r.host.BootID()
	if err != nil {
		r.t.Fatal(err)
	}
	r.bear()
	r.prepare()
	expect(r, message.Prepare, message.Done)
	r.task(message.Drain)
	r.command(11, message.Upgrade)
	expect(r, message.Upgrade, message.RebootRequired)
	r.command(12, message.Reboot)
	answer := r.until(message.Reboot)
	after, err := r.host.BootID()
	if err != nil {
		r.t.Fatal(err)
	}
	r.task(message.Undrain)
	rebooted = after != before
	if rebooted != (answer == string(message.Done)) || !rebooted && !strings.HasSuffix(answer, "yet the host was still up 1m0s later") {
		r.t.Errorf("the worker answered reboot: %s, and the boot id is %s after %s", answer, after, before)
	}
	if n := r.effects("upgrade"); n != 1 {
		r.t.Errorf("the host was upgraded %d times", n)
	}
	if asked, boots := r.effects("reboot"), r.effects("boot"); asked > 2 || boots > 1 {
		r.t.Errorf("the host was asked to reboot %d times and booted %d times", asked, boots)
	}
	if n := len(r.hostLog.replies); n != 3 {
		r.t.Errorf("the host replied %d times: %v", n, r.hostLog.replies)
	}
	reports := r.hostLog.reports()
	for i, body := range reports {
		if i > 0 && string(body) == string(reports[i-1]) {
			r.t.Errorf("the same versions were reported twice: %s", body)
		}
	}
	return rebooted
}

func expect[S ~string](r *rig, action message.Action, want S) {
	r.t.Helper()
	if got := r.until(action); got != string(want) {
		r.t.Fatalf("%s was answered %q, not %q", action, got, want)
	}
}

// TestFaults checks what a host answers when its own part goes wrong.
func TestFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		faults map[string]string
		action message.Action
		want   string
	}{
		"prepare fails":                    {map[string]string{"prepare": "fail: no mirror"}, message.Prepare, "no mirror"},
		"upgrade fails":                    {map[string]string{"upgrade": "fail: no space left"}, message.Upgrade, "no space left; nothing was changed"},
		"upgrade crashes before an effect": {map[string]string{"upgrade": "crash-before"}, message.Upgrade, "reboot-required"},
		"upgrade crashes after its effect": {map[string]string{"upgrade": "crash-after"}, message.Upgrade, "reboot-required"},
		"no reboot is needed":              {map[string]string{"upgrade": "no-reboot"}, message.Upgrade, "done"},
		"verify fails":                     {map[string]string{"upgrade": "no-reboot", "verify": "fail: no network"}, message.Upgrade, "verify: no network; rolled back"},
		"the reboot cannot be started":     {map[string]string{"reboot": "fail: a user is logged in"}, message.Reboot, "cannot reboot: a user is logged in"},
		"rollback fails":                   {map[string]string{"upgrade": "fail: A", "rollback": "fail: B"}, message.Upgrade, "A; rollback failed: B"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *rig) {
				r.bear()
				if err := r.host.SetFaults(c.faults); err != nil {
					t.Fatal(err)
				}
				r.prepare()
				got := r.until(message.Prepare)
				for seq, action := range map[uint64]message.Action{11: message.Upgrade} {
					if c.action != message.Prepare {
						r.command(seq, action)
						got = r.until(action)
					}
				}
				if c.action == message.Reboot {
					r.command(12, message.Reboot)
					got = r.until(message.Reboot)
				}
				if got != c.want {
					t.Errorf("%s was answered %q, not %q", c.action, got, c.want)
				}
			})
		})
	}
}
