package message_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// TestUntilBeat checks that heartbeats of any two hosts fall together, and that
// none comes later than after Heartbeat, or much sooner.
func TestUntilBeat(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		now := time.Unix(0, rapid.Int64Range(0, 1<<62).Draw(rt, "now"))
		wait := message.UntilBeat(now)
		if wait > message.Heartbeat || wait <= message.Heartbeat-5*time.Second {
			rt.Errorf("at %s the wait is %s", now, wait)
		}
		if at := now.Add(wait); at.Second()%5 != 0 || at.Nanosecond() != 0 {
			rt.Errorf("the heartbeat is at %s", at)
		}
	})
}
