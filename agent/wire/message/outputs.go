package message

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

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

// OutputsPurpose is what the outputs of the step of a stage are sealed for.
func OutputsPurpose(tenant, stage string) string {
	return "outputs of step " + stage + " of tenant " + tenant
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

// ParseOutputs reads what a step has written as its outputs: lines NAME=VALUE, one for each name that
// it gives. The error names no value.
func ParseOutputs(written []byte, gives []string) (map[string]string, error) {
	if len(written) > rollout.MaxOutputs {
		return nil, fmt.Errorf("its outputs have more than %d bytes", rollout.MaxOutputs)
	}
	values, number := map[string]string{}, 0
	for line := range bytes.Lines(written) {
		number++
		line = bytes.TrimSuffix(line, []byte("\n"))
		if len(line) == 0 {
			continue
		}
		name, value, found := strings.Cut(string(line), "=")
		switch _, twice := values[name]; {
		case !found || !utf8.Valid(line):
			return nil, fmt.Errorf("line %d of its outputs is not NAME=VALUE", number)
		case !slices.Contains(gives, name):
			return nil, fmt.Errorf("line %d of its outputs has a name that gives does not list; list it, or write no such line", number)
		case twice:
			return nil, fmt.Errorf("line %d of its outputs has output %s for the second time", number, name)
		}
		values[name] = value
	}
	return values, CheckOutputs(values, gives)
}

// CheckOutputs tells which outputs are missing, or too many, of a step that gives some.
func CheckOutputs(values map[string]string, gives []string) error {
	for _, name := range gives {
		if _, given := values[name]; !given {
			return fmt.Errorf("its output %s is missing; write a line %s=VALUE to descriptor 3", name, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(gives, name) {
			return fmt.Errorf("its output %.100q is not one that gives lists", name)
		}
	}
	return nil
}
