// Package logindtest is a logind for tests: on a bus of its own, with the state and
// the manners of one of several versions of systemd. It reboots nothing.
package logindtest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/godbus/dbus/v5"
)

// Inhibitor is an entry of ListInhibitors.
type Inhibitor struct {
	What, Who, Why, Mode string
	UID, PID             uint32
}

const (
	name      = "org.freedesktop.login1"
	path      = "/org/freedesktop/login1"
	managerOf = name + ".Manager"
)

// Bus is a message bus of its own.
type Bus struct {
	// Address is the address of the bus.
	Address string
	daemon  *exec.Cmd
}

const config = `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path=%s</listen><auth>EXTERNAL</auth>
<policy context="default"><allow user="*"/><allow own="*"/><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/></policy></busconfig>
`

// StartBus starts a bus, which ends with the test. Without dbus-daemon the test is
// skipped.
func StartBus(t *testing.T) *Bus {
	t.Helper()
	if _, err := exec.LookPath("dbus-daemon"); err != nil {
		t.Skip("SKIPPED: dbus-daemon is not installed, so nothing of logind is tested")
	}
	// The path of a socket must be short.
	dir, err := os.MkdirTemp("", "bus") //nolint:usetesting // t.TempDir is too long for a socket.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	file := filepath.Join(dir, "config")
	if err := os.WriteFile(file, fmt.Appendf(nil, config, filepath.Join(dir, "socket")), 0o600); err != nil {
		t.Fatal(err)
	}
	bus := &Bus{daemon: exec.Command("dbus-daemon", "--nofork", "--nosyslog", "--print-address", "--config-file="+file)}
	printed, err := bus.daemon.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := bus.daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(bus.Stop)
	line, err := bufio.NewReader(printed).ReadString('\n')
	if err != nil {
		t.Fatalf("dbus-daemon prints no address: %v", err)
	}
	bus.Address = strings.TrimSpace(line)
	return bus
}

// Stop ends the bus.
func (b *Bus) Stop() {
	_ = b.daemon.Process.Kill()
	_ = b.daemon.Wait()
}

// Logind is the fake.
type Logind struct {
	// Version is the version of systemd whose manners it has.
	Version int
	// Refuse is the error of each reboot, by name and text; none if the name is empty.
	Refuse dbus.Error
	// Busy has it say that an operation is in progress, Down that the machine goes down.
	Busy, Down bool
	// NoRule has it refuse to skip inhibitors, as a system without polkit does since 257.
	NoRule bool
	// BeforeReboot is called when a reboot is asked for, before anything is decided.
	BeforeReboot func()

	mu         sync.Mutex
	inhibitors []Inhibitor
	calls      []string
	conn       *dbus.Conn
}

// Start puts the fake on the bus.
func (l *Logind) Start(t *testing.T, bus *Bus) *Logind {
	t.Helper()
	conn, err := dbus.Connect(bus.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	l.conn = conn
	methods := map[string]any{"ListInhibitors": l.list, "Reboot": l.reboot, "SetWallMessage": l.wall}
	if l.Version >= 248 {
		methods["RebootWithFlags"] = l.rebootWithFlags
	}
	if err := conn.ExportMethodTable(methods, path, managerOf); err != nil {
		t.Fatal(err)
	}
	if err := conn.ExportMethodTable(map[string]any{"Get": l.get}, path, "org.freedesktop.DBus.Properties"); err != nil {
		t.Fatal(err)
	}
	if err := conn.ExportMethodTable(map[string]any{"StartUnit": l.startUnit}, "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"); err != nil {
		t.Fatal(err)
	}
	for _, owned := range []string{name, "org.freedesktop.systemd1"} {
		if reply, err := conn.RequestName(owned, dbus.NameFlagDoNotQueue); err != nil || reply != dbus.RequestNameReplyPrimaryOwner {
			t.Fatalf("cannot take the name: %v, %v", reply, err)
		}
	}
	return l
}

// Inhibit replaces the inhibitors and tells it, as logind does.
func (l *Logind) Inhibit(t *testing.T, by ...Inhibitor) {
	t.Helper()
	l.mu.Lock()
	l.inhibitors = by
	l.mu.Unlock()
	if l.conn == nil {
		return
	}
	changed := map[string]dbus.Variant{"BlockInhibited": dbus.MakeVariant("shutdown")}
	if err := l.conn.Emit(path, "org.freedesktop.DBus.Properties.PropertiesChanged", managerOf, changed, []string{}); err != nil {
		t.Error(err)
	}
}

// Calls returns what was asked for so far: "wall TEXT", "reboot", "reboot FLAGS" and
// "start UNIT MODE", which is asked of systemd.
func (l *Logind) Calls() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.calls)
}

func (l *Logind) called(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, what)
}

func (l *Logind) list() ([]Inhibitor, *dbus.Error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Inhibitor{}, l.inhibitors...), nil
}

func (l *Logind) wall(text string, _ bool) *dbus.Error {
	l.called("wall " + text)
	return nil
}

func (l *Logind) get(_, property string) (dbus.Variant, *dbus.Error) {
	if property != "PreparingForShutdown" {
		return dbus.Variant{}, dbus.NewError("org.freedesktop.DBus.Error.UnknownProperty", nil)
	}
	return dbus.MakeVariant(l.Down), nil
}

func (l *Logind) startUnit(unit, mode string) (dbus.ObjectPath, *dbus.Error) {
	l.called("start " + unit + " " + mode)
	return "/org/freedesktop/systemd1/job/1", nil
}

func (l *Logind) reboot(bool) *dbus.Error {
	l.called("reboot")
	return l.decide(0)
}

func (l *Logind) rebootWithFlags(flags uint64) *dbus.Error {
	l.called(fmt.Sprint("reboot ", flags))
	if flags&^1 != 0 && l.Version < 257 {
		return dbus.NewError("org.freedesktop.DBus.Error.InvalidArgs", []any{"Invalid flags parameter"})
	}
	return l.decide(flags)
}

// decide decides on a reboot that root asks for.
func (l *Logind) decide(flags uint64) *dbus.Error {
	if l.BeforeReboot != nil {
		l.BeforeReboot()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	blocked := slices.ContainsFunc(l.inhibitors, func(i Inhibitor) bool {
		return strings.HasPrefix(i.Mode, "block") && slices.Contains(strings.Split(i.What, ":"), "shutdown")
	})
	switch check, skip := flags&1 != 0, flags&16 != 0; {
	case l.Refuse.Name != "":
		return &l.Refuse
	case l.Busy:
		return dbus.NewError(name+".OperationInProgress", []any{"There's already a shutdown or sleep operation in progress"})
	case blocked && l.Version < 257 && check:
		return dbus.NewError("org.freedesktop.DBus.Error.AccessDenied", []any{"Access denied to root due to active block inhibitor"})
	case blocked && skip && l.NoRule:
		return dbus.NewError("org.freedesktop.DBus.Error.AccessDenied", []any{"Permission denied"})
	case blocked && l.Version >= 257 && !skip:
		return dbus.NewError(name+".BlockedByInhibitorLock", []any{"Operation denied due to active block inhibitor"})
	}
	return nil
}
