// Package window is Terraform's side of a maintenance window: its attributes,
// its model, and when two windows are the same though spelt differently.
//
// It decides equality and keeps a person's spelling. It makes no request.
package window

import (
	"fmt"
	"slices"
	"strings"

	rules "github.com/osupgrade/terraform-provider-osupgrade/agent/window"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// Key is the same text for two windows exactly when they mean the same: the
// order and case of the days, the spelling of the duration and an omitted
// timezone do not matter (AV-16 to AV-19). What our rules cannot read, as
// another system may send, is compared as it is written.
func Key(w v1.MaintenanceWindow) string {
	days, start, zone, length := strings.Join(splitDays(w.DaysOfWeek), ", "), w.StartTime, w.Timezone, w.Duration
	if t, err := rules.ParseTimeOfDay(start); err == nil {
		start = t.String()
	}
	if z, err := rules.ParseZone(zone); err == nil {
		zone = z.String()
	}
	if l, err := rules.ParseDuration(length); err == nil {
		length = rules.FormatDuration(l)
	}
	return fmt.Sprintf("%s from %s %s for %s", days, start, zone, length)
}

// Same reports whether two lists hold the same windows, in any order.
func Same(a, b []v1.MaintenanceWindow) bool {
	return slices.Equal(Keys(a), Keys(b))
}

// Keys lists the keys of windows in their order as text.
func Keys(windows []v1.MaintenanceWindow) []string {
	keys := make([]string, 0, len(windows))
	for _, w := range windows {
		keys = append(keys, Key(w))
	}
	slices.Sort(keys)
	return keys
}

// Keep orders and spells the server's windows as those in state: an equal one
// stays as it stands there, another takes the place of one that is gone, and
// what is left comes last. The result means the same as server.
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

// Duplicate finds the first window that means the same as an earlier one.
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

// splitDays takes the text of days apart, in the order of the week. Days that
// our rules cannot read stay as they are written, as a set.
func splitDays(text string) []string {
	if days, err := rules.ParseDays(text); err == nil {
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
