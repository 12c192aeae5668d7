package rauc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/remedy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// The names of RAUC's service on the system bus, which D-Bus starts when it is called.
const (
	busName   = "de.pengutronix.rauc"
	installer = "de.pengutronix.rauc.Installer"
	busPath   = dbus.ObjectPath("/")
)

// service is RAUC's service.
type service struct {
	conn   *dbus.Conn
	object dbus.BusObject
}

// connect connects to RAUC's service. address is that of the bus; empty for the
// system's.
func connect(address string) (*service, error) {
	// Signals are taken in the order in which they are sent: the last one ends an
	// installation. Each call has the context, and the connection none: it would be
	// closed under a call, whose error would blame the bus.
	options := []dbus.ConnOption{dbus.WithSignalHandler(dbus.NewSequentialSignalHandler())}
	var conn *dbus.Conn
	var err error
	if address == "" {
		conn, err = dbus.ConnectSystemBus(options...)
	} else {
		conn, err = dbus.Connect(address, options...)
	}
	if err != nil {
		return nil, strategy.Fail(message.Transient, fmt.Errorf("cannot reach the system bus: %w; RAUC is called over D-Bus", err))
	}
	return &service{conn, conn.Object(busName, busPath)}, nil
}

func (s *service) close() { _ = s.conn.Close() } // Nothing is lost: each call was answered.

// call calls a method and stores what it returns.
func (s *service) call(ctx context.Context, method string, args, results []any) error {
	call := s.object.CallWithContext(ctx, method, 0, args...)
	if call.Err != nil {
		return explain(call.Err)
	}
	return call.Store(results...)
}

func (s *service) property(ctx context.Context, name string, into any) error {
	var v dbus.Variant
	if err := s.call(ctx, "org.freedesktop.DBus.Properties.Get", []any{installer, name}, []any{&v}); err != nil {
		return err
	}
	return v.Store(into)
}

// system asks for all that decisions take.
func (s *service) system(ctx context.Context) (system, error) {
	var all system
	if err := s.property(ctx, "Compatible", &all.compatible); err != nil {
		return all, fmt.Errorf("cannot ask RAUC for the kind of this machine: %w", err)
	}
	// Older services do not have it.
	if err := s.property(ctx, "SystemVersion", &all.version); err != nil && ctx.Err() != nil {
		return all, ctx.Err()
	}
	all.version = message.CleanText(text.Fit(all.version, message.MaxPlanName, "..."))
	var slots []struct {
		Name   string
		Status map[string]dbus.Variant
	}
	if err := s.call(ctx, installer+".GetSlotStatus", nil, []any{&slots}); err != nil {
		return all, fmt.Errorf("cannot ask RAUC for its slots: %w", err)
	}
	for _, one := range slots {
		all.slots = append(all.slots, readSlot(one.Name, one.Status))
	}
	if err := s.call(ctx, installer+".GetPrimary", nil, []any{&all.primary}); err != nil {
		// A boot loader that has tried each slot names none, and RAUC answers so.
		if _, answered := errors.AsType[errorOfRAUC](err); !answered || strategy.ClassOf(err).Passes() {
			return all, fmt.Errorf("cannot ask RAUC which slot starts next: %w", err)
		}
	}
	return all, nil
}

// readSlot reads what RAUC says about a slot. What is missing or no text is empty: an
// older RAUC says less.
func readSlot(name string, status map[string]dbus.Variant) slot {
	get := func(key string) string {
		value, _ := status[key].Value().(string)
		return message.CleanText(text.Fit(value, message.MaxPlanName, "..."))
	}
	// A slot without a time was never activated by RAUC.
	activated, _ := time.Parse(time.RFC3339, get("activated.timestamp"))
	return slot{
		name: name, class: get("class"), bootname: get("bootname"), parent: get("parent"), state: get("state"),
		boot: get("boot-status"), status: get("status"), version: get("bundle.version"), activated: activated,
	}
}

// bundle is what RAUC says about a bundle whose signature it trusts.
type bundle struct{ compatible, version string }

// inspect checks the signature of a bundle and returns what it is.
func (s *service) inspect(ctx context.Context, path string) (b bundle, err error) {
	var info map[string]dbus.Variant
	err = s.call(ctx, installer+".InspectBundle", []any{path, map[string]dbus.Variant{}}, []any{&info})
	if err == nil {
		return readBundle(info), nil
	}
	if e, ok := errors.AsType[dbus.Error](err); !ok || e.Name != "org.freedesktop.DBus.Error.UnknownMethod" {
		return b, err
	}
	// RAUC 1.8 and older. It does not tell what is wrong.
	if err = s.call(ctx, installer+".Info", []any{path}, []any{&b.compatible, &b.version}); err != nil {
		err = fmt.Errorf("%w; %s", err, remedy.RAUCInfo.With(path))
	}
	return b, err
}

// readBundle reads the answer of InspectBundle.
func readBundle(info map[string]dbus.Variant) bundle {
	update := info["update"].Value()
	if v, ok := update.(dbus.Variant); ok { // It is a variant in a variant.
		update = v.Value()
	}
	members, _ := update.(map[string]dbus.Variant)
	get := func(key string) string {
		value, _ := members[key].Value().(string)
		return value
	}
	return bundle{get("compatible"), get("version")}
}

// mark changes what starts.
func (s *service) mark(ctx context.Context, m mark) error {
	var slot, said string
	if err := s.call(ctx, installer+".Mark", []any{m.state, m.slot}, []any{&slot, &said}); err != nil {
		return fmt.Errorf("cannot mark slot %s as %s: %w", m.slot, m.state, err)
	}
	return nil
}

// pause waits until the next choice of a slot is told apart from the last one of a
// system, unless its clock was set back too far for that.
func pause(ctx context.Context, now system) error {
	for d := now.pause(time.Now()); d > 0 && d <= longestPause; d = now.pause(time.Now()) {
		if err := wait.Sleep(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// apply makes marks of a system and syncs what the boot loader reads.
func (s *service) apply(ctx context.Context, now system, marks []mark) error {
	for _, m := range marks {
		if m.state == "active" {
			if err := pause(ctx, now); err != nil {
				return err
			}
		}
		if err := s.mark(ctx, m); err != nil {
			return err
		}
	}
	if len(marks) > 0 {
		unix.Sync()
	}
	return nil
}

// watch listens to the service until the function that it returns is called.
func (s *service) watch(ctx context.Context) (signals <-chan *dbus.Signal, stop func(), err error) {
	rules := [][]dbus.MatchOption{
		{dbus.WithMatchInterface(installer), dbus.WithMatchObjectPath(busPath)},
		{dbus.WithMatchInterface("org.freedesktop.DBus.Properties"), dbus.WithMatchObjectPath(busPath), dbus.WithMatchSender(busName)},
		{dbus.WithMatchInterface("org.freedesktop.DBus"), dbus.WithMatchMember("NameOwnerChanged"), dbus.WithMatchArg(0, busName)},
	}
	heard := make(chan *dbus.Signal, 16)
	s.conn.Signal(heard)
	for _, rule := range rules {
		if err := s.conn.AddMatchSignalContext(ctx, rule...); err != nil {
			return nil, nil, explain(err)
		}
	}
	// The connection is of this action alone and takes the rules with it.
	return heard, func() { s.conn.RemoveSignal(heard) }, nil
}

// install installs a bundle and waits for the end. The installation continues in the
// service when ctx ends.
func (s *service) install(ctx context.Context, path, transaction string, tell func(percent int, message string)) error {
	signals, stop, err := s.watch(ctx)
	if err != nil {
		return err
	}
	defer stop()
	args := map[string]dbus.Variant{"transaction-id": dbus.MakeVariant(transaction)}
	err = s.call(ctx, installer+".InstallBundle", []any{path, args}, nil)
	if err != nil && strings.Contains(err.Error(), "Unsupported key") {
		// RAUC 1.9 and older. It names no transaction at all.
		err = s.call(ctx, installer+".InstallBundle", []any{path, map[string]dbus.Variant{}}, nil)
	}
	if err != nil {
		return err
	}
	return s.await(ctx, signals, tell)
}

// idle waits until the service does nothing.
func (s *service) idle(ctx context.Context, tell func(percent int, message string)) error {
	signals, stop, err := s.watch(ctx)
	if err != nil {
		return err
	}
	defer stop()
	var operation string
	if err := s.property(ctx, "Operation", &operation); err != nil || operation == "idle" {
		return err
	}
	tell(-1, "RAUC still installs")
	if err := s.await(ctx, signals, tell); ctx.Err() != nil {
		return err
	}
	return nil // How it ended shows in the slots.
}

// await waits for the end of an installation.
func (s *service) await(ctx context.Context, signals <-chan *dbus.Signal, tell func(percent int, message string)) error {
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("the installation continues in RAUC's service: %w", ctx.Err())
		case signal, open := <-signals:
			if !open {
				return strategy.Fail(message.Transient, errors.New("the system bus has closed the connection while RAUC installed"))
			}
			switch happened := read(signal); {
			case happened.gone:
				return strategy.Fail(message.Transient, errors.New("RAUC's service ended while it installed; journalctl -u rauc shows why"))
			case happened.ended && happened.result == 0:
				return nil
			case happened.ended:
				return s.lastError(ctx, happened.result)
			case happened.message != "":
				tell(happened.percent, happened.message)
			}
		}
	}
}

// lastError returns why an installation failed.
func (s *service) lastError(ctx context.Context, result int32) error {
	var said string
	if err := s.property(ctx, "LastError", &said); err != nil || said == "" {
		return strategy.Fail(message.Install, errors.Join(fmt.Errorf("RAUC failed with %d and gave no reason", result), err))
	}
	return failure(said)
}

// happened is what a signal says.
type happened struct {
	gone    bool // The service has ended.
	ended   bool // The installation has ended, with result.
	result  int32
	percent int
	message string
}

func read(signal *dbus.Signal) (h happened) {
	switch signal.Name {
	case "org.freedesktop.DBus.NameOwnerChanged":
		if len(signal.Body) == 3 && signal.Body[0] == busName {
			h.gone = signal.Body[1] != "" && signal.Body[2] != signal.Body[1]
		}
	case installer + ".Completed":
		if len(signal.Body) == 1 {
			h.result, h.ended = signal.Body[0].(int32)
		}
	case "org.freedesktop.DBus.Properties.PropertiesChanged":
		if len(signal.Body) >= 2 {
			changed, _ := signal.Body[1].(map[string]dbus.Variant)
			h.percent, h.message = readProgress(changed["Progress"])
		}
	}
	return h
}

// readProgress reads a percentage, a message and the depth of nesting.
func readProgress(v dbus.Variant) (int, string) {
	members, _ := v.Value().([]any)
	if len(members) != 3 {
		return -1, ""
	}
	percent, ok1 := members[0].(int32)
	said, ok2 := members[1].(string)
	if !ok1 || !ok2 {
		return -1, ""
	}
	return int(min(max(percent, 0), 100)), message.CleanText(text.Fit(said, message.MaxText, "..."))
}
