package run

import (
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// TestPauseOnFailure leaves the pause of a person as it is, for that person sees the
// failure before resuming the run.
func TestPauseOnFailure(t *testing.T) {
	t.Parallel()
	for paused, want := range map[string]string{"": ByPolicy, "ann": "ann", message.ByRollout: ByPolicy, message.ByAgent: ByPolicy} {
		var c Control
		if paused != "" {
			c.Paused = &Pausing{By: paused}
		}
		c.pauseOnFailure("h01 failed", epoch)
		if c.Paused.By != want {
			t.Errorf("a run that was paused by %q is paused by %q, want %q", paused, c.Paused.By, want)
		}
	}
}

// TestTellHold leaves alone what somebody has paused or aborted.
func TestTellHold(t *testing.T) {
	t.Parallel()
	hold := Seen{Hold: &message.Paused{By: message.ByRollout}}
	byRollout, byAnn := &Pausing{By: message.ByRollout}, &Pausing{By: "ann"}
	cases := map[string]struct {
		control Control
		seen    Seen
		want    message.Event
	}{
		"a hold":                      {Control{}, hold, *hold.Hold},
		"a hold that is known":        {Control{Paused: byRollout}, hold, nil},
		"no hold any more":            {Control{Paused: byRollout}, Seen{}, message.Resumed{By: message.ByRollout}},
		"a person has paused the run": {Control{Paused: byAnn}, Seen{}, nil},
		"a hold of an aborted run":    {Control{aborted: byAnn}, hold, nil},
	}
	for name, c := range cases {
		if e := c.control.tellHold(&c.seen); e != c.want {
			t.Errorf("%s: %v, want %v", name, e, c.want)
		}
	}
}
