package main

import (
	"fmt"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// labelLetters says what a label may be made of.
const labelLetters = `at most 63 of letters, digits, "-", "_", "." and "/"`

// parseLabels reads labels as they are given to a worker, each key=value.
func parseLabels(texts []string) (map[string]string, error) {
	labels := map[string]string{}
	for _, text := range texts {
		key, value, ok := strings.Cut(text, "=")
		if !ok || !message.ValidLabel(key) || value != "" && !message.ValidLabel(value) {
			return nil, fmt.Errorf("label: %.200q is not possible; use key=value, each %s", text, labelLetters)
		}
		if other, twice := labels[key]; twice {
			return nil, fmt.Errorf("label: %q stands there twice, as %q and as %q; use each key once", key, other, value)
		}
		labels[key] = value
	}
	if len(labels) > message.MaxLabels {
		return nil, fmt.Errorf("label: %d are too many; use at most %d", len(labels), message.MaxLabels)
	}
	return labels, nil
}
