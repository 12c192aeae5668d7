package logind

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// The flags of RebootWithFlags.
const (
	// checkInhibitors has root held up by inhibitors, too (SD_LOGIND_ROOT_CHECK_INHIBITORS).
	checkInhibitors uint64 = 1 << 0
	// skipInhibitors ignores them (SD_LOGIND_SKIP_INHIBITORS). Before it existed,
	// inhibitors did not hold up root.
	skipInhibitors uint64 = 1 << 4
)

const (
	service  = "org.freedesktop.login1"
	path     = "/org/freedesktop/login1"
	property = "org.freedesktop.DBus.Properties"
	busError = "org.freedesktop.DBus.Error."
)

// target is an interface of an object of a service.
type target struct {
	service   string
	path      dbus.ObjectPath
	of        string
	forPeople string
}

var (
	logind     = target{service, path, service + ".Manager", "systemd-logind"}
	properties = target{service, path, property, "systemd-logind"}
	systemd    = target{"org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager", "systemd"}
)

// manager is a connection to the Manager of logind.
type manager struct {
	conn *dbus.Conn
	end  context.CancelFunc
}

func (m manager) close() {
	_ = m.conn.Close()
	m.end()
}

// connect returns a connection that ends with ctx. The library waits for a greeting of
// the bus without a limit of its own.
func connect(ctx context.Context, address string) (manager, error) {
	ctx, cancel := context.WithCancel(ctx)
	hung := time.AfterFunc(callLimit, cancel)
	defer hung.Stop()
	dial := func() (*dbus.Conn, error) { return dbus.ConnectSystemBus(dbus.WithContext(ctx)) }
	if address != "" {
		dial = func() (*dbus.Conn, error) { return dbus.Connect(address, dbus.WithContext(ctx)) }
	}
	conn, err := dial()
	if err != nil {
		cancel()
		return manager{}, fmt.Errorf("%w: cannot connect to the system bus: %w", ErrUnavailable, err)
	}
	return manager{conn, cancel}, nil
}

// call calls a method, and stores its result if into is not nil.
func (m manager) call(ctx context.Context, on target, method string, into any, arguments ...any) error {
	limited, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	call := m.conn.Object(on.service, on.path).CallWithContext(limited, on.of+"."+method, 0, arguments...)
	err := call.Err
	if err == nil && into != nil {
		err = call.Store(into)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil || isUnavailable(errorName(err)):
		return fmt.Errorf("%w: %s: %w", ErrUnavailable, method, plain(err))
	case errorName(err) == "":
		return fmt.Errorf("%w during %s: %w", errLost, method, err)
	}
	return fmt.Errorf("%s refuses %s: %w", on.forPeople, method, plain(err))
}

// watch returns a channel that has something after each change of the inhibitors and
// is closed when the connection ends.
func (m manager) watch(ctx context.Context) (<-chan *dbus.Signal, error) {
	limited, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	signals := make(chan *dbus.Signal, 16)
	m.conn.Signal(signals)
	for _, match := range [][]dbus.MatchOption{
		// BlockInhibited and NCurrentInhibitors are told at each change, also when the new
		// value is the old one.
		{dbus.WithMatchSender(service), dbus.WithMatchObjectPath(path), dbus.WithMatchInterface(property), dbus.WithMatchMember("PropertiesChanged")},
		// logind is restarted.
		{dbus.WithMatchSender("org.freedesktop.DBus"), dbus.WithMatchMember("NameOwnerChanged"), dbus.WithMatchArg(0, service)},
	} {
		if err := m.conn.AddMatchSignalContext(limited, match...); err != nil {
			return nil, fmt.Errorf("%w: cannot watch the inhibitors: %w", ErrUnavailable, plain(err))
		}
	}
	return signals, nil
}

// inhibitors returns what holds a reboot up.
func (m manager) inhibitors(ctx context.Context) ([]Inhibitor, error) {
	var all []inhibitor
	if err := m.call(ctx, logind, "ListInhibitors", &all); err != nil {
		return nil, err
	}
	return holdUp(all), nil
}

// reboot asks for the reboot in the way that this version of logind knows.
func (m manager) reboot(ctx context.Context, flags uint64) error {
	err := m.call(ctx, logind, "RebootWithFlags", nil, flags)
	if flags == skipInhibitors && isNamed(err, busError+"InvalidArgs") {
		err = m.call(ctx, logind, "RebootWithFlags", nil, uint64(0))
	}
	if isNamed(err, busError+"UnknownMethod") { // Before systemd 248.
		err = m.call(ctx, logind, "Reboot", nil, false)
	}
	if flags == skipInhibitors && (isNamed(err, busError+"AccessDenied") || isNamed(err, busError+"InteractiveAuthorizationRequired")) {
		// Since systemd 257 even root needs a rule of polkit for it, and without polkit
		// nobody may. To start the target is what logind would do.
		err = m.call(ctx, systemd, "StartUnit", nil, "reboot.target", "replace-irreversibly")
	}
	if isNamed(err, service+".OperationInProgress") && m.goesDown(ctx) {
		return nil // The worker before this one has asked for it.
	}
	return err
}

// goesDown reports whether the machine is already on its way down.
func (m manager) goesDown(ctx context.Context) bool {
	var down bool
	err := m.call(ctx, properties, "Get", &down, logind.of, "PreparingForShutdown")
	return err == nil && down
}

// isInhibited reports whether a reboot was refused because of an inhibitor, as far as
// the name of the error tells: before systemd 257 it was that of a missing right.
func isInhibited(err error) bool {
	return isNamed(err, service+".BlockedByInhibitorLock") || isNamed(err, busError+"AccessDenied")
}

func isNamed(err error, name string) bool { return errorName(err) == name }

func errorName(err error) string {
	var named dbus.Error
	if errors.As(err, &named) {
		return named.Name
	}
	return ""
}

// isUnavailable reports whether an error of this name means that logind does not run,
// cannot be started, or does not answer.
func isUnavailable(name string) bool {
	switch name {
	case busError + "ServiceUnknown", busError + "NameHasNoOwner", busError + "NoReply", busError + "Timeout", busError + "TimedOut", busError + "Disconnected":
		return true
	}
	return strings.HasPrefix(name, busError+"Spawn.") || strings.HasPrefix(name, "org.freedesktop.systemd1.")
}

// plain makes the text of an error of the bus fit to be shown: any program may have
// sent it.
func plain(err error) error {
	var named dbus.Error
	if !errors.As(err, &named) {
		return err
	}
	return cleaned{named}
}

// cleaned is an error of the bus with a clean text.
type cleaned struct{ cause dbus.Error }

func (e cleaned) Error() string {
	said := message.CleanText(e.cause.Error())
	if said == e.cause.Name {
		return said
	}
	return said + " (" + e.cause.Name + ")"
}

func (e cleaned) Unwrap() error { return e.cause }
