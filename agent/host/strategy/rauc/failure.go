package rauc

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/godbus/dbus/v5"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/remedy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// reasons are the words by which an error of RAUC is classed. The first that occurs
// counts.
var reasons = []struct {
	words string
	class message.Class
}{
	{"already processing a different method", message.Lock},
	{"no space left on device", message.Space},
	{"too small", message.Space}, // The slot is smaller than the image.
	{"signature", message.Artifact},
	{"invalid bundle format", message.Artifact},
	{"compatible mismatch", message.Artifact},
	{"manifest", message.Artifact},
	{"version limit", message.Artifact},
	{"rauc info error", message.Artifact},
}

// classOf returns the class of an error of RAUC.
func classOf(said string) message.Class {
	lower := strings.ToLower(said)
	for _, r := range reasons {
		if strings.Contains(lower, r.words) {
			return r.class
		}
	}
	return message.Install
}

// failure returns what RAUC says as an error with its class.
func failure(said string) error {
	said = message.CleanText(text.Fit(said, message.MaxText/2, "..."))
	return strategy.Fail(classOf(said), fmt.Errorf("RAUC: %s", said))
}

// explain gives an error of a call its class, and words that help. The error of D-Bus
// stays in it.
func explain(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	e, ok := errors.AsType[dbus.Error](err)
	if !ok {
		return strategy.Fail(message.Transient, fmt.Errorf("the system bus does not answer: %w", err))
	}
	switch strings.TrimPrefix(e.Name, "org.freedesktop.DBus.Error.") {
	case "ServiceUnknown", "Spawn.ServiceNotFound":
		return fmt.Errorf("RAUC's service is not there (%w); %s", err, remedy.RAUCService)
	case "NoReply", "TimedOut", "Disconnected", "LimitsExceeded", "NameHasNoOwner":
		return strategy.Fail(message.Transient, fmt.Errorf("RAUC's service does not answer: %w", err))
	case "AccessDenied":
		return fmt.Errorf("the system bus refuses the call: %w; the worker must run as root", err)
	case "UnknownMethod", "UnknownProperty", "InvalidArgs", "UnknownInterface":
		return err
	}
	if strings.HasPrefix(e.Name, "org.freedesktop.DBus.Error.Spawn.") {
		return strategy.Fail(message.Transient, fmt.Errorf("RAUC's service does not start: %w; systemctl status rauc shows why", err))
	}
	return strategy.Fail(classOf(err.Error()), errorOfRAUC{err})
}

// errorOfRAUC is an error that RAUC returned.
type errorOfRAUC struct{ err error }

func (e errorOfRAUC) Error() string {
	return "RAUC: " + message.CleanText(text.Fit(e.err.Error(), message.MaxText/2, "..."))
}

func (e errorOfRAUC) Unwrap() error { return e.err }
