package program

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func shell(script string) Command { return Command{Name: "sh", Args: []string{"-c", script}} }

func TestRun(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	var lines []string
	c := shell(`echo one; echo "$LC_ALL $COMMON $EXTRA" >&2; printf 'a:1\nb' >&3; exit 7`)
	c.Env, c.Status = []string{"EXTRA=more"}, func(line string) { lines = append(lines, line) }
	ended, err := System(&out, "COMMON=noninteractive")(t.Context(), c)
	if want := "one\nC.UTF-8 noninteractive more\n"; err != nil || ended.Exit != 7 || ended.Printed != want || out.String() != want {
		t.Errorf("got %+v, %v, copied %q", ended, err, out.String())
	}
	out.Reset()
	if _, err := System(&out)(t.Context(), shell("printf 'half a l'; kill -9 $$")); err == nil || out.String() != "half a l\n" {
		t.Errorf("what is told next begins in the line of a program that was killed: %q, %v", out.String(), err)
	}
	if strings.Join(lines, ",") != "a:1,b" {
		t.Errorf("status lines %q", lines)
	}
	c = shell("echo one; echo two >&2")
	c.Quiet = true
	ended, err = System(&out, "COMMON=noninteractive")(t.Context(), c)
	if err != nil || ended.Stdout != "one\n" || ended.Printed != "one\ntwo\n" || strings.Contains(out.String(), "two") {
		t.Errorf("quiet: %+v, %v", ended, err)
	}
}

func TestRunFails(t *testing.T) {
	t.Parallel()
	if _, err := System(nil)(t.Context(), Command{Name: "/no/such/program"}); err == nil || !strings.Contains(err.Error(), "cannot run /no/such/program") {
		t.Errorf("got %v", err)
	}
	if _, err := System(nil)(t.Context(), shell("kill -9 $$")); err == nil || !strings.Contains(err.Error(), "was ended: signal: killed") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := System(nil)(ctx, shell("sleep 60")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if _, err := System(nil)(t.Context(), shell("yes | head -c 80000000; sleep 60")); err == nil || !strings.Contains(err.Error(), "printed more than") {
		t.Errorf("got %v", err)
	}
}

// TestADaemonHoldsTheOutput starts a process that outlives the command with its output.
func TestADaemonHoldsTheOutput(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	ended, err := System(nil)(t.Context(), shell("sleep 3 & echo done"))
	if err != nil || ended.Printed != "done\n" || time.Since(begun) > 2*time.Second {
		t.Errorf("got %+v, %v after %s", ended, err, time.Since(begun))
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]Command{
		"apt-get update": {Name: "apt-get", Args: []string{"-q", "-o", "A=b", "--x", "update"}},
		"dpkg --audit":   {Name: "dpkg", Args: []string{"--audit"}},
	} {
		if got := c.Describe(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
