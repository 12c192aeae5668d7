package exec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/script"
)

// progress is what one line of output tells; percent is negative and message
// empty where it tells nothing of the kind.
type progress struct {
	percent int
	message string
}

// parseLine reads one line: a progress object, or text. An object that is
// almost one is text with a note of what is wrong.
func parseLine(line []byte) progress {
	object := map[string]json.RawMessage{}
	if !bytes.HasPrefix(bytes.TrimSpace(line), []byte("{")) || json.Unmarshal(line, &object) != nil {
		return progress{-1, script.Clean(line)}
	}
	p, err := readProgress(object)
	if err != nil {
		return progress{-1, script.Shortened(fmt.Sprintf("%s (%s)", script.Shortened(script.Clean(line), script.MaxText/2), err), script.MaxText)}
	}
	return p
}

func readProgress(object map[string]json.RawMessage) (progress, error) {
	p := progress{percent: -1}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		value := object[key]
		switch key {
		case "progress":
			var percent *float64
			if json.Unmarshal(value, &percent) != nil || percent == nil || *percent < 0 || *percent > 100 {
				return p, fmt.Errorf("no progress: \"progress\" is %s; use 0 to 100", script.Shortened(script.Clean(value), 50))
			}
			p.percent = int(*percent)
		case "message":
			var message *string
			if json.Unmarshal(value, &message) != nil || message == nil {
				return p, fmt.Errorf("no progress: \"message\" is %s; use a string", script.Shortened(script.Clean(value), 50))
			}
			p.message = script.Clean([]byte(*message))
		default:
			return p, fmt.Errorf("no progress: unknown key %q; use \"progress\" and \"message\"", script.Shortened(script.Clean([]byte(key)), 50))
		}
	}
	return p, nil
}
