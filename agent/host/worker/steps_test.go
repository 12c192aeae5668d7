package worker

import (
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// TestStepsFollowOneAnother checks that a step which is asked for again, because nobody waited any
// longer for it, does not begin before it has ended; and that a check beside it does.
func TestStepsFollowOneAnother(t *testing.T) {
	t.Parallel()
	s := newTasks()
	first := message.Task{Run: 7, Kind: message.Step, Stage: "swact", Host: "h01"}
	again, check := first, message.Task{Run: 7, Kind: message.AfterHost, Host: "h01"}
	again.Attempt = 1
	take := func(task message.Task) verdict {
		v, _ := s.take(task, "h01", 7)
		return v
	}
	if v := take(first); v != runTask {
		t.Fatalf("the first one: %v", v)
	}
	if v := take(again); v != laterTask {
		t.Errorf("the second one beside it: %v", v)
	}
	if v := take(check); v != runTask {
		t.Errorf("a check beside it: %v", v)
	}
	s.finish(first.Outcome(true, ""))
	if v := take(again); v != runTask {
		t.Errorf("the second one after it: %v", v)
	}
	if v := take(first); v != answerTask {
		t.Errorf("the first one again: %v", v)
	}
}
