// Package scope moves this process out of the service that started it, into a scope of
// systemd of its own: what it then does outlives a stop of that service, so that an
// upgrade may replace the agent, systemd and D-Bus themselves.
//
// It never decides what is run in the scope.
package scope

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/godbus/dbus/v5"
)

// The names of systemd on the system bus (org.freedesktop.systemd1(5)).
const (
	service   = "org.freedesktop.systemd1"
	object    = "/org/freedesktop/systemd1"
	manager   = "org.freedesktop.systemd1.Manager"
	jobEnded  = manager + ".JobRemoved"
	startUnit = manager + ".StartTransientUnit"
)

// limit bounds the wait for systemd: an action must not fail because of it.
const limit = 10 * time.Second

// running is the folder that exists while systemd is the service manager
// (sd_booted(3)).
const running = "/run/systemd/system"

// Available reports whether this process could have a scope: systemd runs, and the
// process is root's.
func Available() bool {
	info, err := os.Stat(running)
	return err == nil && info.IsDir() && os.Geteuid() == 0
}

// property is a property of a unit, and auxiliary a further unit, as D-Bus has them.
type property struct {
	Name  string
	Value dbus.Variant
}

type auxiliary struct {
	Name       string
	Properties []property
}

// Enter moves this process, and with it all processes that it starts from now on, into a
// scope of its own, and returns once it is there.
func Enter(ctx context.Context, description string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	bus, err := dbus.ConnectSystemBus(dbus.WithContext(ctx))
	if err != nil {
		return fmt.Errorf("cannot connect to the system bus: %w", err)
	}
	return errors.Join(enter(ctx, bus, description), bus.Close())
}

func enter(ctx context.Context, bus *dbus.Conn, description string) error {
	if err := bus.AddMatchSignalContext(ctx, dbus.WithMatchInterface(manager), dbus.WithMatchMember("JobRemoved")); err != nil {
		return fmt.Errorf("cannot wait for systemd: %w", err)
	}
	signals := make(chan *dbus.Signal, 16)
	bus.Signal(signals)
	pid := os.Getpid()
	name := fmt.Sprintf("osupgrade-action-%d.scope", pid)
	properties := []property{
		{"Description", dbus.MakeVariant(description)},
		{"PIDs", dbus.MakeVariant([]uint32{uint32(pid)})}, //nolint:gosec // a process id is positive
		// A scope that failed goes away by itself, too.
		{"CollectMode", dbus.MakeVariant("inactive-or-failed")},
	}
	var job dbus.ObjectPath
	err := bus.Object(service, object).CallWithContext(ctx, startUnit, 0, name, "fail", properties, []auxiliary{}).Store(&job)
	if err != nil {
		return fmt.Errorf("systemd refuses %s: %w", name, err)
	}
	return await(ctx, signals, job, name)
}

// await waits for the end of a job of systemd.
func await(ctx context.Context, signals <-chan *dbus.Signal, job dbus.ObjectPath, name string) error {
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("systemd has not started %s: %w", name, ctx.Err())
		case s, ok := <-signals:
			if !ok {
				return fmt.Errorf("systemd has not started %s: the system bus has ended", name)
			}
			if result, known := ended(s, job); known && result != "done" {
				return fmt.Errorf("systemd has not started %s: %s", name, result)
			} else if known {
				return nil
			}
		}
	}
}

// ended returns the result of a job when a signal tells its end.
func ended(s *dbus.Signal, job dbus.ObjectPath) (result string, known bool) {
	var id uint32
	var path dbus.ObjectPath
	var unit string
	if s.Name != jobEnded || dbus.Store(s.Body, &id, &path, &unit, &result) != nil {
		return "", false
	}
	return result, path == job
}
