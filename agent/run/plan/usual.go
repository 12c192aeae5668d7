package plan

import (
	"slices"
	"time"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// UsualOf returns how long the work of a run took; false when no host of it was
// upgraded. The run must have its hosts and events.
func UsualOf(r v1.Run) (v1.Usual, bool) {
	var took []int
	for _, h := range r.Hosts {
		if h.Status == "upgraded" && h.Seconds > 0 {
			took = append(took, h.Seconds)
		}
	}
	if len(took) == 0 {
		return v1.Usual{}, false
	}
	slices.Sort(took)
	return v1.Usual{Run: r.ID, PrepareSeconds: int(prepareOf(r) / time.Second), HostSeconds: took[(len(took)*9+9)/10-1]}, true
}

// prepareOf returns how long it took until the last host had answered prepare, or the run
// began without those that had not.
func prepareOf(r v1.Run) time.Duration {
	var asked, answered time.Time
	for _, e := range r.Events {
		switch e.Event {
		case "prepare":
			asked = e.At
		case "answered prepare":
			answered = e.At
		case "late":
			return max(0, e.At.Sub(asked))
		}
	}
	if asked.IsZero() {
		return 0
	}
	return max(0, answered.Sub(asked))
}
