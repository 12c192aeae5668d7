package run

import (
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// TestReplyOfAnotherWorker checks that "done" of another worker than the one that
// was prepared is no proof of what that one did: somebody has to look. In one
// epoch, and where there are no epochs, a reply counts as it is.
func TestReplyOfAnotherWorker(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepared, answered uint64
		status             Status
		owes               message.Debt
	}{
		"no epochs":        {0, 0, Upgraded, message.Debt{}},
		"one worker":       {7, 7, Upgraded, message.Debt{}},
		"a later worker":   {7, 8, HostFailed, message.Debt{Look: true}},
		"a former worker":  {8, 7, HostFailed, message.Debt{Look: true}},
		"nobody says whom": {7, 0, HostFailed, message.Debt{Look: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlayer(t)
			p.line([]string{"open", "h01"}, "open h01")
			run := p.in().Newest()
			reply := func(action message.Action, epoch uint64) {
				body := message.Reply{Action: action, Result: message.Result{Outcome: message.Done}}.Encode()
				p.append(message.Record{Kind: message.ReplyRecord, Run: run.ID, Host: "h01", Action: action, Epoch: epoch, Body: body})
				p.drive()
			}
			reply(message.Prepare, c.prepared)
			if run.Epoch("h01") != c.prepared || run.Epoch("h77") != 0 {
				t.Errorf("h01 was prepared in epoch %d", run.Epoch("h01"))
			}
			reply(message.Upgrade, c.answered)
			h, _ := run.Host("h01")
			if h.Status != c.status || run.members[0].Owes() != c.owes || c.owes.Look != strings.Contains(h.Error, "another worker") {
				t.Errorf("h01 is %s, owes %+v: %s", h.Status, run.members[0].Owes(), h.Error)
			}
		})
	}
}
