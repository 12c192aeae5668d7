package message

import (
	"errors"
	"fmt"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// Outputs are what a step gives to the steps and hosts after it. Whoever runs the step tells their
// values. On the log they are sealed, and only their names can be read.
type Outputs struct {
	// Values are the values by name; nil on the log.
	Values map[string]string `json:"values,omitempty"`
	// Names are the names, sorted, and Sealed are the values as the site keeps them; only on the
	// log.
	Names  []string `json:"names,omitempty"`
	Sealed string   `json:"sealed,omitempty"`
}

// check tells what is wrong with outputs that somebody tells.
func (o *Outputs) check() error {
	size := 0
	for name, value := range o.Values {
		if !rollout.ValidOutput(name) {
			return fmt.Errorf("%.100q is not the name of an output", name)
		}
		size += len(name) + len(value)
	}
	switch {
	case size > rollout.MaxOutputs:
		return fmt.Errorf("the outputs have %d bytes; they may have %d", size, rollout.MaxOutputs)
	case len(o.Names) > 0 || o.Sealed != "":
		return errors.New("its outputs are sealed, which only the site does")
	}
	return nil
}

// checkSealed tells what is wrong with outputs on the log: their values are never there.
func (o *Outputs) checkSealed() error {
	switch {
	case o == nil:
		return nil
	case len(o.Values) > 0:
		return errors.New("outcome: its outputs are not sealed")
	case len(o.Names) == 0 || o.Sealed == "":
		return errors.New("outcome: its outputs are missing")
	}
	return nil
}
