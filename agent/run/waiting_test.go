package run

import (
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// TestWaitingBeforeTheNextCommand checks what a run waits for between the answer
// of a host and its next command: for that command, and not for somebody who
// frees the slot of the host.
func TestWaitingBeforeTheNextCommand(t *testing.T) {
	t.Parallel()
	p := newPlayer(t)
	p.line([]string{"open", "h01", "h02"}, "open h01 h02")
	p.line([]string{"all", "prepare", "done"}, "all prepare done")
	p.stopped = true
	run := p.in().Newest()
	p.reply(run.ID, "h01", "upgrade", message.Reply{Action: message.Upgrade, Result: message.Result{Outcome: message.RebootRequired}}.Encode())
	if w, waits := run.Waiting(p.now); !waits || w.text() != "h01 to be sent reboot" || !w.Sending {
		t.Errorf("the run waits for %+v, %t", w, waits)
	}
}
