package view

import (
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// TestLongStory checks that a story keeps what people did and how the run
// ended, however much happened before.
func TestLongStory(t *testing.T) {
	t.Parallel()
	var s Story
	tell := func(e message.Event) {
		s.Add(message.Record{Kind: message.EventRecord, Body: message.EncodeEvent(e)}.Decode())
	}
	for range maxEvents + 5 {
		tell(message.Ran{Outcome: message.Outcome{Run: 2, Kind: message.Fleet}})
	}
	tell(message.Aborted{By: "ann", Why: "enough"})
	tell(message.Ran{Outcome: message.Outcome{Run: 2, Kind: message.Fleet}})
	tell(message.Finished{Result: string(run.IsAborted)})
	if n := len(s.events); n != maxEvents+2 || s.events[n-2].By != "ann" || s.events[n-1].Event != "finished" {
		t.Errorf("of %d events the last ones are %+v", n, s.events[n-2:])
	}
	for range 2 * maxAsks {
		tell(message.Paused{By: "ann"})
	}
	if n := len(s.events); n != maxEvents+maxAsks {
		t.Errorf("there are %d events", n)
	}
}
