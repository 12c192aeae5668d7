package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestConfirm checks that what costs a run, or a host of one, is not done in a pipe
// without --yes, and that nothing else needs it.
func TestConfirm(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	s.SetHosts("acme", v1.Host{Hostname: "h01"}, v1.Host{Hostname: "h02"}, v1.Host{Hostname: "h03"})
	do := func(code int, want string, args ...string) {
		t.Helper()
		got, stdout, stderr := call(t, as(t, s.URL, s.Token, "acme", args...)...)
		if got != code || !strings.Contains(stdout+stderr, want) {
			t.Errorf("%q: exit code %d, or no %q:\n%s%s", args, got, want, stdout, stderr)
		}
	}
	do(exitOK, "Host h03 of tenant acme is deleted", "forget", "h03", "--reason", "scrapped") // There is no run.
	s.AddRun("acme", v1.Run{ID: 5, Phase: "upgrading", Hosts: []v1.RunHost{
		{Hostname: "h01", Status: "upgrading", Stage: "all", SlotReason: "it is upgrading"},
		{Hostname: "h02", Status: "upgraded", Stage: "all"},
		{Hostname: "h04", Status: "prepared", Stage: "all"},
		{Hostname: "h05", Status: "preparing", Stage: "all"},
		{Hostname: "h06", Status: "pending", Stage: "all"},
		{Hostname: "h07", Status: "skipped", Stage: "all"},
	}})
	do(exitUsage, "Host h01 is being upgraded. Releasing it makes run 5 give it up. To go ahead, add --yes.", "release", "h01", "--reason", "x")
	do(exitUsage, "Host h05 is not upgraded yet. Releasing it makes run 5 give it up. To go ahead, add --yes.", "release", "h05", "--reason", "x")
	do(exitFailed, "holds no slot of run 5", "release", "h07", "--reason", "x") // --yes would not help.
	do(exitUsage, "Host h01 is being upgraded. Deleting it makes run 5 give it up.", "forget", "h01", "--reason", "x")
	do(exitUsage, "This ends run 5: 1 upgraded, 2 being upgraded finish first, 2 not started keep what they have. To go ahead, add --yes.", "abort", "--reason", "x")
	do(exitUsage, "--reason is empty", "abort", "--reason", " ")
	do(exitUsage, `--reason: "" is empty`, "forget", "h01", "--reason", "")
	do(exitOK, "Host h02 of tenant acme is deleted", "forget", "h02", "--reason", "scrapped") // Its upgrade is done.
	do(exitOK, "Host h01 of tenant acme is deleted", "forget", "h01", "--reason", "scrapped", "--yes")
	do(exitOK, "Run 5", "abort", "--reason", "x", "-y")
}

// TestConfirmOnATerminal checks that a person is asked, apart from the output, and
// that only yes is yes.
func TestConfirmOnATerminal(t *testing.T) {
	t.Parallel()
	for answer, code := range map[string]int{"yes\n": exitOK, "YES \n": exitOK, "y\n": exitFailed, "\n": exitFailed, "no\n": exitFailed, "\x04": exitFailed} {
		t.Run(fmt.Sprintf("%q", answer), func(t *testing.T) {
			t.Parallel()
			s := fakeapi.New(t)
			s.AddRun("acme", v1.Run{ID: 5, Phase: "upgrading"})
			person, terminal := openTerminal(t)
			if _, err := person.WriteString(answer); err != nil {
				t.Fatal(err)
			}
			var stdout, stderr bytes.Buffer
			got := Run(context.Background(), "1.2.3", as(t, s.URL, s.Token, "acme", "abort", "--reason", "x", "-o", "json"), terminal, &stdout, &stderr)
			if got != code || !strings.Contains(stderr.String(), "This ends run 5: ") || !strings.Contains(stderr.String(), "Type yes to go ahead: ") {
				t.Errorf("exit code %d:\n%s\n%s", got, stdout.String(), stderr.String())
			}
			if (stdout.Len() == 0) != (code != exitOK) || strings.Contains(stdout.String(), "Type") {
				t.Errorf("the output is %q", stdout.String())
			}
		})
	}
}

// openTerminal opens both ends of a terminal.
func openTerminal(t *testing.T) (person, terminal *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("this machine has no terminals: %v", err)
	}
	t.Cleanup(func() { _ = person.Close() })
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = terminal.Close() })
	return person, terminal
}

// TestCostOfStep checks that an abort says what becomes of a step that is in progress.
func TestCostOfStep(t *testing.T) {
	t.Parallel()
	began := time.Now()
	r := v1.Run{ID: 6, Phase: "upgrading", Stages: []v1.RunStage{{Name: "swact", Phase: "running", Step: &v1.RunStep{Since: &began}}}}
	for now, want := range map[bool]string{false: "; step swact finishes first", true: "; step swact is left as it is"} {
		if got := costOfAbort(r, now); !strings.HasSuffix(got, want) {
			t.Errorf("now %v: %q, not …%q", now, got, want)
		}
	}
}
