package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/script"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// misuse is an error about what was typed, found before anything was done or
// asked of a server: a command that fails with it ends with exitUsage.
type misuse struct{ error }

// Unwrap lets errors.Is and errors.As see what is wrong.
func (m misuse) Unwrap() error { return m.error }

// misused says that an error is about what was typed; nil stays nil.
func misused(err error) error {
	if err == nil {
		return nil
	}
	return misuse{err}
}

func misusedf(format string, args ...any) error { return misuse{fmt.Errorf(format, args...)} }

// wrongFlags tells of the problems of a request in words of the command line,
// where each field is a flag.
func wrongFlags(problems v1.Problems) error {
	if len(problems) == 0 {
		return nil
	}
	texts := make([]string, len(problems))
	for i, p := range problems {
		field, index, _ := strings.Cut(p.Field, "[")
		if index != "" { // A list of the request is a flag that is repeated.
			p.Field = strings.TrimSuffix(field, "s")
		}
		texts[i] = "--" + p.String()
	}
	return misused(errors.New(strings.Join(texts, "; ")))
}

// checkScripts checks that the folder of scripts, if one is named, exists and is
// safe: the first run that needs a script would find out too late.
func checkScripts(name, dir string) error {
	if dir == "" {
		return nil
	}
	if err := script.CheckFolder(dir); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// checkName checks the name of something, such as a tenant.
func checkName(field, text, what string) error {
	if names.Valid(text) {
		return nil
	}
	return fmt.Errorf("%s: %.200q is not the name of %s; %s", field, text, what, names.Form)
}

// length is a length of time as a flag: written as everywhere in the product,
// such as 1h or 1d, and besides as Go writes one, such as 500ms.
type length time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *length) UnmarshalText(text []byte) error {
	d, err := window.ParseDuration(string(text))
	if err != nil {
		other, otherErr := time.ParseDuration(string(text))
		if otherErr != nil {
			return err
		}
		d = other
	}
	if d < 0 {
		return errors.New(string(text) + " is below 0s")
	}
	*l = length(d)
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (l length) MarshalText() ([]byte, error) { //nolint:unparam // the interface wants an error
	return []byte(l.String()), nil
}

// String is what can be read back as the same.
func (l length) String() string {
	if d := time.Duration(l); d%time.Second != 0 {
		return d.String()
	}
	return window.FormatDuration(time.Duration(l))
}

// readTime reads an instant or a date, which begins at its midnight in the zone.
func readTime(flag, text string, site *time.Location) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	if midnight, err := time.Parse(time.DateOnly, text); err == nil {
		return window.NewClock(site).First(midnight), nil
	}
	return time.Time{}, fmt.Errorf("%s: %.100q is not a time; use RFC 3339 such as 2026-12-01T18:00:00Z, or a date such as 2026-12-01", flag, text)
}

// parseLabels reads labels as they are given to a worker, each key=value.
func parseLabels(texts []string) (map[string]string, error) {
	labels := map[string]string{}
	for _, text := range texts {
		key, value, ok := strings.Cut(text, "=")
		if !ok || !names.ValidLabel(key) || value != "" && !names.ValidLabel(value) {
			return nil, fmt.Errorf("label: %.200q is invalid; use key=value, each %s", text, names.LabelForm)
		}
		if other, twice := labels[key]; twice {
			return nil, fmt.Errorf("label: %q is given twice, as %q and as %q; give each key once", key, other, value)
		}
		labels[key] = value
	}
	if len(labels) > names.MaxLabels {
		return nil, fmt.Errorf("label: %d are too many; use at most %d", len(labels), names.MaxLabels)
	}
	return labels, nil
}

// runID is the id of a run. Id 0 is none: it would mean every run, or a new one.
type runID uint64

// UnmarshalText reads an id from the command line.
func (id *runID) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil || n == 0 {
		return fmt.Errorf("%q is not the id of a run; osupgrade-agent runs lists them", text)
	}
	*id = runID(n)
	return nil
}
