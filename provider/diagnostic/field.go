package diagnostic

import (
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
)

// Locate finds the attribute that a field of the API stands for, such as
// maintenance_windows[0].start_time for "maintenance-windows[0].start-time".
type Locate func(field string) (path.Path, bool)

// Field is the plain Locate: hyphens become underscores, indexes those of a
// list. It reports false for a text that is not the path of a field.
func Field(field string) (path.Path, bool) {
	at := path.Empty()
	for step := range strings.SplitSeq(field, ".") {
		name, indexes, indexed := strings.Cut(step, "[")
		if !isName(name) || indexed && indexes == "" {
			return path.Empty(), false
		}
		at = at.AtName(strings.ReplaceAll(name, "-", "_"))
		for indexes != "" {
			index, rest, closed := strings.Cut(indexes, "]")
			i, err := strconv.ParseUint(index, 10, 31)
			next, another := strings.CutPrefix(rest, "[")
			if err != nil || !closed || another == (next == "") {
				return path.Empty(), false
			}
			at = at.AtListIndex(int(i))
			indexes = next
		}
	}
	return at, true
}

func isName(text string) bool {
	for _, r := range text {
		if r != '-' && (r < 'a' || r > 'z') {
			return false
		}
	}
	return text != ""
}
