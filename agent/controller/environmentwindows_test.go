package controller

import (
	"testing"
	"time"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestLastNeeded checks until when windows of one more environment are looked for.
func TestLastNeeded(t *testing.T) {
	t.Parallel()
	from := time.Unix(1000, 0)
	at := func(seconds ...int64) (found []v1.Window) {
		for _, s := range seconds {
			found = append(found, v1.Window{Start: time.Unix(s, 0)})
		}
		return found
	}
	to := from.Add(time.Hour)
	for name, row := range map[string]struct {
		found []v1.Window
		count int
		want  time.Time
	}{
		"all are wanted":         {at(1100, 1200), 0, to},
		"too few yet":            {at(1100), 2, to},
		"enough":                 {at(1100, 1200), 2, time.Unix(1200, 0)},
		"enough that began then": {at(800, 900), 2, from.Add(1)},
		"the last is late":       {at(1100, 9000), 2, to},
	} {
		if got := lastNeeded(row.found, from, to, row.count); !got.Equal(row.want) {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
	}
}
