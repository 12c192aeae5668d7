package run

import (
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// TestConsidered checks which window was considered last: of a run by hand that
// of the run before it, also when what stood there was trimmed.
func TestConsidered(t *testing.T) {
	t.Parallel()
	end, window := epoch.Add(time.Hour), epoch.Add(-24*time.Hour)
	opened := func(e message.Event) message.Record {
		e.Event, e.Hosts, e.NotAfter = message.Opened, []string{"h01"}, &end
		return message.Record{Seq: 7, Time: epoch, Kind: message.EventRecord, Body: e.Encode()}
	}
	for name, c := range map[string]struct {
		event message.Event
		want  time.Time
	}{
		"a run of a window":          {message.Event{Window: &window}, window},
		"a run by hand":              {message.Event{Considered: &window}, window},
		"a run of a window, trimmed": {message.Event{Window: &end, Considered: &window}, end},
		"the first run, by hand":     {message.Event{}, time.Time{}},
	} {
		var l Ledger
		if err := l.Fold(opened(c.event)); err != nil || !l.Considered().Equal(c.want) {
			t.Errorf("%s: considered is %s, %v", name, l.Considered(), err)
		}
	}
}
