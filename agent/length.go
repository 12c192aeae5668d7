package main

import (
	"errors"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

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
