package logind_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/logind"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/logindtest"
)

// testTimeout bounds what should happen at once.
const testTimeout = 20 * time.Second

var (
	backup = logindtest.Inhibitor{What: "shutdown:idle", Who: "backup", Why: "copies the database", Mode: "block"}
	update = logindtest.Inhibitor{What: "shutdown", Who: "PackageKit", Why: "", Mode: "block"}
	weak   = logindtest.Inhibitor{What: "shutdown", Who: "desktop", Why: "unsaved work", Mode: "block-weak"}
	delay  = logindtest.Inhibitor{What: "shutdown", Who: "editor", Why: "saves", Mode: "delay"}
	sleep  = logindtest.Inhibitor{What: "sleep", Who: "player", Why: "plays", Mode: "block"}
)

func reboot(t *testing.T, o logind.Options) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	o.Wall = "run 41"
	return logind.Reboot(ctx, o)
}

// TestReboot checks which calls each version of logind gets, and what is made of its
// answer.
func TestReboot(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		logind   *logindtest.Logind
		by       []logindtest.Inhibitor
		override bool
		calls    []string
		want     string
	}{
		"nothing inhibits it":            {&logindtest.Logind{Version: 252}, nil, false, []string{"reboot 1"}, ""},
		"what does not inhibit a reboot": {&logindtest.Logind{Version: 257}, []logindtest.Inhibitor{delay, sleep}, false, []string{"reboot 1"}, ""},
		"an old one":                     {&logindtest.Logind{Version: 241}, nil, false, []string{"reboot"}, ""},
		"overridden":                     {&logindtest.Logind{Version: 257}, []logindtest.Inhibitor{backup}, true, []string{"reboot 16"}, ""},
		"overridden, of bookworm":        {&logindtest.Logind{Version: 252}, []logindtest.Inhibitor{backup}, true, []string{"reboot 16", "reboot 0"}, ""},
		"overridden without polkit": {
			&logindtest.Logind{Version: 257, NoRule: true},
			[]logindtest.Inhibitor{backup},
			true,
			[]string{"reboot 16", "start reboot.target replace-irreversibly"},
			"",
		},
		"overridden, an old one": {&logindtest.Logind{Version: 241}, []logindtest.Inhibitor{backup}, true, []string{"reboot"}, ""},
		"refused": {
			&logindtest.Logind{Version: 252, Refuse: dbus.Error{Name: "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired", Body: []any{"Interactive authentication\x1b required."}}},
			nil, false,
			[]string{"reboot 1"},
			"systemd-logind refuses RebootWithFlags: Interactive authentication required. (org.freedesktop.DBus.Error.InteractiveAuthorizationRequired)",
		},
		"refused for a missing right": {
			&logindtest.Logind{Version: 252, Refuse: dbus.Error{Name: "org.freedesktop.DBus.Error.AccessDenied", Body: []any{"Permission denied"}}}, nil, false,
			[]string{"reboot 1"},
			"systemd-logind refuses RebootWithFlags: Permission denied (org.freedesktop.DBus.Error.AccessDenied)",
		},
		"it goes down already": {&logindtest.Logind{Version: 252, Busy: true, Down: true}, nil, false, []string{"reboot 1"}, ""},
		"it goes to sleep": {
			&logindtest.Logind{Version: 252, Busy: true}, nil, false,
			[]string{"reboot 1"},
			"systemd-logind refuses RebootWithFlags: There's already a shutdown or sleep operation in progress (org.freedesktop.login1.OperationInProgress)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bus := logindtest.StartBus(t)
			row.logind.Inhibit(t, row.by...)
			row.logind.Start(t, bus)
			err := reboot(t, logind.Options{Address: bus.Address, Override: row.override})
			if (err == nil) != (row.want == "") || err != nil && err.Error() != row.want {
				t.Errorf("the error is %v, want %q", err, row.want)
			}
			asked := slices.DeleteFunc(row.logind.Calls(), func(call string) bool { return call == "wall run 41" })
			if !slices.Equal(asked, row.calls) || !slices.Contains(row.logind.Calls(), "wall run 41") {
				t.Errorf("it was called by %q, want %q", row.logind.Calls(), row.calls)
			}
		})
	}
}

// TestWait checks that a reboot waits for each inhibitor, by the signals of logind
// alone, and says which.
func TestWait(t *testing.T) {
	t.Parallel()
	for _, version := range []int{241, 252, 257} {
		bus := logindtest.StartBus(t)
		fake := &logindtest.Logind{Version: version}
		fake.Inhibit(t, backup, update, weak, sleep)
		fake.Start(t, bus)
		var told []string
		rounds := [][]logindtest.Inhibitor{{update, delay}, {update, delay, sleep}, {delay}}
		err := reboot(t, logind.Options{Address: bus.Address, Waiting: func(by []logind.Inhibitor) {
			told = append(told, logind.Names(by))
			for len(rounds) > 0 {
				next := rounds[0]
				rounds = rounds[1:]
				fake.Inhibit(t, next...)
				if len(next) != 3 { // The one that is the same for a reboot is not told.
					break
				}
			}
		}})
		want := []string{"PackageKit (no reason given), backup (copies the database), desktop (unsaved work)", "PackageKit (no reason given)"}
		if err != nil || !slices.Equal(told, want) {
			t.Errorf("version %d: it told %q, %v; want %q", version, told, err, want)
		}
	}
}

// TestInhibitedInTheLastMoment checks that an inhibitor that comes between the look and
// the call is waited for, too.
func TestInhibitedInTheLastMoment(t *testing.T) {
	t.Parallel()
	for _, version := range []int{252, 257} {
		bus := logindtest.StartBus(t)
		fake := &logindtest.Logind{Version: version}
		late := true
		fake.BeforeReboot = func() {
			if late {
				late = false
				fake.Inhibit(t, backup)
			}
		}
		fake.Start(t, bus)
		waited := 0
		err := reboot(t, logind.Options{Address: bus.Address, Waiting: func([]logind.Inhibitor) {
			waited++
			fake.Inhibit(t)
		}})
		if err != nil || waited != 1 {
			t.Errorf("version %d: it waited %d times, %v", version, waited, err)
		}
	}
}

// TestWaitEnds checks that a reboot that is inhibited for too long says by whom.
func TestWaitEnds(t *testing.T) {
	t.Parallel()
	bus := logindtest.StartBus(t)
	fake := (&logindtest.Logind{Version: 252}).Start(t, bus)
	var many []logindtest.Inhibitor
	for range 7 {
		many = append(many, backup)
	}
	many[0].Who, many[0].Why = strings.Repeat("x", 1000), "a\nb\x1b[31m"
	fake.Inhibit(t, many...)
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	err := logind.Reboot(ctx, logind.Options{Address: bus.Address, Waiting: func([]logind.Inhibitor) { cancel() }})
	const each = "backup (copies the database), "
	want := "it is inhibited by " + strings.Repeat(each, 5) + "2 more; end that, or start the worker with --inhibitors override"
	if err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %q", err, want)
	}
	if calls := fake.Calls(); slices.Contains(calls, "reboot 1") {
		t.Errorf("it was called by %q", calls)
	}
}

// TestUnavailable checks that the caller learns that there is no logind to ask.
func TestUnavailable(t *testing.T) {
	t.Parallel()
	if err := reboot(t, logind.Options{Address: "unix:path=/nowhere"}); !errors.Is(err, logind.ErrUnavailable) {
		t.Errorf("without a bus the error is %v", err)
	}
	if err := reboot(t, logind.Options{Address: logindtest.StartBus(t).Address}); !errors.Is(err, logind.ErrUnavailable) {
		t.Errorf("without logind the error is %v", err)
	}
	bus := logindtest.StartBus(t)
	masked := &logindtest.Logind{Version: 252, Refuse: dbus.Error{Name: "org.freedesktop.systemd1.UnitMasked"}}
	masked.Start(t, bus)
	if err := reboot(t, logind.Options{Address: bus.Address}); !errors.Is(err, logind.ErrUnavailable) {
		t.Errorf("when it is masked the error is %v", err)
	}
}

// TestBusRestarts checks that a bus that goes away while the reboot is inhibited does
// not make it go on without logind.
func TestBusRestarts(t *testing.T) {
	t.Parallel()
	bus := logindtest.StartBus(t)
	fake := (&logindtest.Logind{Version: 252}).Start(t, bus)
	fake.Inhibit(t, backup)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	err := logind.Reboot(ctx, logind.Options{Address: bus.Address, Waiting: func([]logind.Inhibitor) { bus.Stop() }})
	if err == nil || errors.Is(err, logind.ErrUnavailable) || !strings.Contains(err.Error(), "inhibited by backup") {
		t.Errorf("the error is %v", err)
	}
}

// TestBusLost checks that a reboot whose answer is lost with the bus is asked for again,
// and that a bus that does not come back is told.
func TestBusLost(t *testing.T) {
	t.Parallel()
	bus := logindtest.StartBus(t)
	fake := &logindtest.Logind{Version: 252, BeforeReboot: bus.Stop}
	fake.Start(t, bus)
	if err := reboot(t, logind.Options{Address: bus.Address}); !errors.Is(err, logind.ErrUnavailable) {
		t.Errorf("the error is %v", err)
	}
	if calls := fake.Calls(); !slices.Contains(calls, "reboot 1") {
		t.Errorf("it was called by %q", calls)
	}
}
