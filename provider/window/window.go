// Package window has the maintenance windows of Terraform: their model, their validators,
// and the warnings about the next of them.
//
// It decides when two windows have the same meaning, keeps the form in which a person
// wrote them, and decides what deserves a warning. It never fails a plan.
package window

import (
	"fmt"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Key is the canonical form of a window: two windows have the same key exactly if
// they have the same meaning. Order and case of the days, form
// of the duration and an omitted timezone do not matter. A field that our rules
// cannot parse, as another system may send, stays as it is.
func Key(w v1.MaintenanceWindow) string {
	days, start, zone, length := strings.Join(splitDays(w.DaysOfWeek), ", "), w.StartTime, w.Timezone, w.Duration
	if t, err := window.ParseTimeOfDay(start); err == nil {
		start = t.String()
	}
	if z, err := window.ParseZone(zone); err == nil {
		zone = z.String()
	}
	if l, err := window.ParseDuration(length); err == nil {
		length = window.FormatDuration(l)
	}
	return fmt.Sprintf("%s from %s %s for %s", days, start, zone, length)
}

// Same reports whether two lists contain the same windows, in any order.
func Same(a, b []v1.MaintenanceWindow) bool {
	return slices.Equal(Keys(a), Keys(b))
}

// Keys returns the sorted keys of windows.
func Keys(windows []v1.MaintenanceWindow) []string {
	keys := make([]string, 0, len(windows))
	for _, w := range windows {
		keys = append(keys, Key(w))
	}
	slices.Sort(keys)
	return keys
}

// Keep returns the server's windows in the order and form of the state. A window
// that is also in the state keeps its position and form there. Other windows take
// the positions of windows that the server no longer has, or come last.
func Keep(state []Model, server []v1.MaintenanceWindow) []Model {
	left := slices.Clone(server)
	kept := make([]*Model, len(state))
	for i, m := range state {
		key := Key(m.API())
		at := slices.IndexFunc(left, func(w v1.MaintenanceWindow) bool { return Key(w) == key })
		if at >= 0 {
			kept[i] = &state[i]
			left = slices.Delete(left, at, at+1)
		}
	}
	result := make([]Model, 0, len(server))
	for _, m := range kept {
		switch {
		case m != nil:
			result = append(result, *m)
		case len(left) > 0:
			result = append(result, FromAPI(left[0]))
			left = left[1:]
		}
	}
	for _, w := range left {
		result = append(result, FromAPI(w))
	}
	return result
}

// Duplicate returns the first window with the same meaning as an earlier one.
func Duplicate(windows []v1.MaintenanceWindow) (earlier, later int, found bool) {
	seen := map[string]int{}
	for i, w := range windows {
		if first, ok := seen[Key(w)]; ok {
			return first, i, true
		}
		seen[Key(w)] = i
	}
	return 0, 0, false
}

// splitDays splits a list of days into sorted names. If our rules cannot parse
// the list, its elements stay as they are.
func splitDays(text string) []string {
	if days, err := window.ParseDays(text); err == nil {
		return days.Names()
	}
	var days []string
	for day := range strings.SplitSeq(text, ",") {
		if day = strings.TrimSpace(day); day != "" {
			days = append(days, day)
		}
	}
	slices.Sort(days)
	return slices.Compact(days)
}
