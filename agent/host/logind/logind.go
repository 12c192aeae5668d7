// Package logind asks systemd-logind for a reboot over D-Bus, and reads who
// inhibits it.
//
// It decides whether an inhibitor holds the reboot up and when the reboot may be
// asked for again. It never decides that a host reboots, and starts no program.
package logind

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// ErrUnavailable means that logind was not asked, because there is no system bus or
// no logind on it, or that it does not answer.
var ErrUnavailable = errors.New("systemd-logind is not available")

// errLost means that a connection has ended, with or without an effect of the last call.
var errLost = errors.New("the connection to the system bus was lost")

// Options say how to reboot.
type Options struct {
	// Address is the address of the bus; empty means the system bus.
	Address string
	// Override reboots in spite of inhibitors. Otherwise Reboot waits for their end.
	Override bool
	// Wall is the message for the users who are logged in.
	Wall string
	// Waiting is called with the inhibitors that the reboot waits for, whenever they
	// change; it may be nil.
	Waiting func(by []Inhibitor)
}

// Reboot returns nil when logind has accepted the reboot. When ctx ends while the
// reboot waits for inhibitors, the error names them.
func Reboot(ctx context.Context, o Options) error {
	var held []Inhibitor
	o.Waiting = remember(&held, o.Waiting)
	for {
		err := attempt(ctx, o)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil && len(held) > 0:
			return fmt.Errorf("it is inhibited by %s; end that, or start the worker with --inhibitors override", Names(held))
		case errors.Is(err, errLost): // Maybe because the machine goes down: dbus is stopped, too.
		case !errors.Is(err, ErrUnavailable) || len(held) == 0:
			return err
		}
		// The bus or logind is restarted. Another way to reboot would not know of the
		// inhibitors, which logind keeps.
		if wait.Sleep(ctx, reconnect) != nil {
			continue
		}
	}
}

// remember keeps the inhibitors that the reboot last waited for, and calls waiting
// when they change.
func remember(held *[]Inhibitor, waiting func([]Inhibitor)) func([]Inhibitor) {
	return func(by []Inhibitor) {
		if slices.Equal(*held, by) {
			return
		}
		*held = by
		if waiting != nil {
			waiting(by)
		}
	}
}

const (
	// reconnect is the pause before the next attempt after the bus has gone.
	reconnect = time.Second
	// callLimit bounds one call, as sd-bus does.
	callLimit = 25 * time.Second
)

// attempt asks for the reboot over one connection.
func attempt(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m, err := connect(ctx, o.Address)
	if err != nil {
		return err
	}
	defer m.close()
	// A message that nobody can be sent holds no reboot up.
	_ = m.call(ctx, logind, "SetWallMessage", nil, o.Wall, true)
	if o.Override {
		return m.reboot(ctx, skipInhibitors)
	}
	changes, err := m.watch(ctx)
	if err != nil {
		return err
	}
	for {
		by, err := m.inhibitors(ctx)
		if err != nil {
			return err
		}
		if len(by) == 0 {
			refused := m.reboot(ctx, checkInhibitors)
			if !isInhibited(refused) {
				return refused
			}
			// Somebody inhibits it since a moment ago, or logind refuses for another reason.
			if by, err = m.inhibitors(ctx); err != nil || len(by) == 0 {
				return errors.Join(refused, err)
			}
		}
		o.Waiting(by)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case _, open := <-changes:
			if !open {
				return errLost
			}
		}
	}
}

// Inhibitor is what holds a reboot up.
type Inhibitor struct{ Who, Why string }

// Names names inhibitors with their reasons, at most maxNamed of them.
func Names(by []Inhibitor) string {
	var named []string
	for _, one := range by[:min(len(by), maxNamed)] {
		named = append(named, fmt.Sprintf("%s (%s)", one.Who, one.Why))
	}
	if more := len(by) - len(named); more > 0 {
		named = append(named, fmt.Sprintf("%d more", more))
	}
	return strings.Join(named, ", ")
}

const (
	maxNamed = 5
	// maxWord bounds what a program says of itself, in bytes.
	maxWord = 100
)

// inhibitor is one entry of ListInhibitors.
type inhibitor struct {
	What, Who, Why, Mode string
	UID, PID             uint32
}

// holdUp returns the inhibitors that hold a reboot up, in a stable order. Those of
// mode delay do so for some seconds only, which logind itself grants them.
func holdUp(all []inhibitor) []Inhibitor {
	var by []Inhibitor
	for _, one := range all {
		if (one.Mode == "block" || one.Mode == "block-weak") && slices.Contains(strings.Split(one.What, ":"), "shutdown") {
			by = append(by, Inhibitor{Who: word(one.Who, "somebody"), Why: word(one.Why, "no reason given")})
		}
	}
	slices.SortFunc(by, func(a, b Inhibitor) int { return strings.Compare(a.Who+"\x00"+a.Why, b.Who+"\x00"+b.Why) })
	return by
}

// word makes what a program says of itself fit to be shown.
func word(said, otherwise string) string {
	if said = text.Cut(message.CleanText(said), maxWord, "…"); said == "" {
		return otherwise
	}
	return said
}
