package check

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// withFailed returns a runner of a host and a function that sets what its systemctl
// lists as failed.
func withFailed(t *testing.T) (*Runner, func(units ...string)) {
	t.Helper()
	list := filepath.Join(t.TempDir(), "list")
	set := func(units ...string) {
		t.Helper()
		text := ""
		for _, unit := range units {
			text += unit + " loaded failed failed A unit of a test\n"
		}
		if err := os.WriteFile(list, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set()
	program := install(t, `[ "$*" = "`+listFailed+`" ] && exec cat `+list+"; echo $*; exit 3")
	return &Runner{State: t.TempDir(), Systemctl: filepath.Join(program, "it")}, set
}

// units is a task of run 41 with a check of units.
func units(ignore ...string) message.Task {
	return single(rollout.Check{Type: rollout.Units, Ignore: ignore})
}

// TestUnits checks that a unit that had failed before the upgrade of the run does not
// count, and that every other one does, also when the worker was restarted meanwhile.
func TestUnits(t *testing.T) {
	t.Parallel()
	r, set := withFailed(t)
	task := units("motd.service")
	check(t, r, task, "")
	set("old.service", "motd.service")
	check(t, r, task, fails("1 unit has failed: old.service"))
	if err := r.Baseline(t.Context(), task.Run); err != nil {
		t.Fatal(err)
	}
	set("old.service", "new.service", "dev-sda1.mount")
	if err := r.Baseline(t.Context(), task.Run); err != nil { // An upgrade that is begun again.
		t.Fatal(err)
	}
	again := &Runner{State: r.State, Systemctl: r.Systemctl}
	check(t, again, task, fails("2 units have failed since the upgrade: dev-sda1.mount, new.service"))
	set("old.service")
	check(t, again, task, "")
	next := task
	next.Run++ // Its upgrade has not begun.
	check(t, again, next, fails("1 unit has failed: old.service"))
	check(t, &Runner{Systemctl: r.Systemctl}, task, fails("1 unit has failed: old.service"))
}

// TestUnitsFail checks what a check of units says that cannot be made.
func TestUnitsFail(t *testing.T) {
	t.Parallel()
	r, set := withFailed(t)
	set(strings.Split(strings.Repeat("a.service ", maxUnits+1), " ")[:maxUnits+1]...)
	check(t, r, units(), fails("1001 units have failed, which is more than can be compared; use at most 1000"))
	set("nonsense")
	check(t, r, units(), fails(`cannot list the failed units: systemctl prints "nonsense", which is not the name of a unit`))
	if err := r.Baseline(t.Context(), 41); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("the error is %v", err)
	}
	set()
	if err := os.WriteFile(r.baselineFile(), []byte(`{"format": 9, "run": 41}`), 0o600); err != nil {
		t.Fatal(err)
	}
	check(t, r, units(), fails("cannot read "+r.baselineFile()+": written by format 9, this version reads 1"))
	broken := &Runner{Systemctl: filepath.Join(install(t, "echo Failed to connect to bus >&2; exit 1"), "it")}
	check(t, broken, units(), fails("cannot list the failed units: exit status 1 Failed to connect to bus"))
	endless := &Runner{Systemctl: filepath.Join(install(t, "while :; do echo a.service; done"), "it")}
	task := units()
	task.Checks[0].Timeout = span(time.Second)
	if got := endless.Run(t.Context(), task); got.OK || !strings.Contains(got.Text, "it did not answer in time") {
		t.Errorf("the outcome is %+v", got)
	}
}

// TestRealFailedUnits reads what a real systemctl prints.
func TestRealFailedUnits(t *testing.T) {
	realhost.Need(t, realhost.Quick)
	t.Parallel()
	c := realhost.NewContainer(t, realhost.ContainerOptions{})
	c.Start()
	before, err := parseUnits(c.Must("systemctl " + listFailed))
	if err != nil {
		t.Fatal(err)
	}
	c.Must(`systemd-run --quiet --unit='odd\x2dname@1' false; until systemctl is-failed --quiet 'odd\x2dname@1'; do sleep 0.05; done`)
	after, err := parseUnits(c.Must("systemctl " + listFailed))
	want := append(before, `odd\x2dname@1.service`)
	slices.Sort(want)
	if err != nil || !slices.Equal(after, want) {
		t.Errorf("failed are %q, %v; want %q", after, err, want)
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"6.00 9.00 9.00 1/99 7\n": "",
		"6.04 0.00 0.00 1/99 7\n": fails("the load of the last minute is 6.04, which is 151% of 4 processors; it should be at most 150%"),
		"":                        fails(`cannot read the load: FILE begins with "", which is not a number`),
	} {
		file := filepath.Join(t.TempDir(), "loadavg")
		if err := os.WriteFile(file, []byte(said), 0o600); err != nil {
			t.Fatal(err)
		}
		check(t, &Runner{loadavg: file, processors: 4}, single(rollout.Check{Type: rollout.Load, MaxLoad: 150}), strings.ReplaceAll(want, "FILE", file))
	}
	check(t, &Runner{}, single(rollout.Check{Type: rollout.Load, MaxLoad: 100_000}), "")
}

func TestTimeSync(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		clock unix.Timex
		state int
		err   error
		most  rollout.Span
		want  string
	}{
		"synchronised":     {unix.Timex{Maxerror: 15e6}, unix.TIME_OK, nil, "", ""},
		"a leap second":    {unix.Timex{}, unix.TIME_INS, nil, "", ""},
		"not synchronised": {unix.Timex{Status: unix.STA_UNSYNC}, unix.TIME_ERROR, nil, "", fails("the clock is not synchronised; timedatectl shows by what it should be")},
		"exact enough":     {unix.Timex{Maxerror: 1e6}, unix.TIME_OK, nil, "1s", ""},
		"not exact enough": {unix.Timex{Maxerror: 1500e3}, unix.TIME_OK, nil, "1s", fails("the clock may be wrong by 1.5s; it should be by at most 1s")},
		"not allowed to be read": {
			unix.Timex{},
			0, syscall.EPERM, "",
			fails("cannot read whether the clock is synchronised: operation not permitted; allow the worker adjtimex(2), in a unit without ProtectClock"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &Runner{adjtimex: func(clock *unix.Timex) (int, error) {
				if clock.Modes != 0 {
					t.Errorf("it sets the clock: %b", clock.Modes)
				}
				*clock = row.clock
				return row.state, row.err
			}}
			check(t, r, single(rollout.Check{Type: rollout.TimeSync, MaxError: row.most}), row.want)
		})
	}
	var clock unix.Timex
	state, err := unix.Adjtimex(&clock)
	got := (&Runner{}).Run(t.Context(), single(rollout.Check{Type: rollout.TimeSync}))
	if synced := err == nil && state != unix.TIME_ERROR && clock.Status&unix.STA_UNSYNC == 0; got.OK != synced {
		t.Errorf("of this machine the outcome is %+v, and adjtimex says %d, %v", got, state, err)
	}
}

// FuzzParseUnits checks that what systemctl prints is read as names of units, or refused.
func FuzzParseUnits(f *testing.F) {
	f.Add("a.service loaded failed failed A\nb@1.service loaded failed failed\n")
	f.Add("\x1b[31m* a.service\n")
	f.Fuzz(func(t *testing.T, list string) {
		units, err := parseUnits(list)
		if err != nil {
			return
		}
		if len(units) > maxUnits || !slices.IsSorted(units) {
			t.Errorf("%d units, %q", len(units), units)
		}
		for _, unit := range units {
			if !rollout.ValidUnit(unit) {
				t.Errorf("%q is let through", unit)
			}
		}
	})
}
