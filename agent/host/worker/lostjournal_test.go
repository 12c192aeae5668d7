package worker

import (
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/decide"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// TestLostJournal loses the journal of a host in the middle of a run and after
// it, and checks that nothing is done twice and nobody waits for an answer.
func TestLostJournal(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.bear()
		r.prepare()
		expect(r, message.Prepare, message.Done)
		r.command(11, message.Upgrade)
		expect(r, message.Upgrade, message.RebootRequired)
		r.forget()
		r.bear()
		r.command(12, message.Reboot)
		expect(r, message.Reboot, unknownPast)
		r.forget()
		r.bear()
		r.life(func() bool { return r.journal().Phase == decide.Answered })
		if up, boots := r.effects("upgrade"), r.effects("reboot"); up != 1 || boots != 0 {
			t.Errorf("the host was upgraded %d times and rebooted %d times", up, boots)
		}
		if n := r.log.lines("level=WARN", "no journal found in a run"); n != 2 {
			t.Errorf("it is told %d times, not 2", n)
		}
	})
}

// TestBlankIsSilent checks that nothing is heard of a host before it has a
// journal, so that no run begins with it.
func TestBlankIsSilent(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.hostLog.slow["newest"] = true
		end := time.Now().Add(time.Minute)
		r.life(func() bool { return time.Now().After(end) })
		if r.hostLog.alive != 0 || len(r.hostLog.reports()) != 0 {
			t.Errorf("%d heartbeats and %d reports came from a host without a journal", r.hostLog.alive, len(r.hostLog.reports()))
		}
		r.hostLog.slow["newest"] = false
		r.bear()
		r.life(func() bool { return r.hostLog.heartbeats() > 0 })
	})
}

// TestBlankRefused checks that a worker that may not ask ends and says why.
func TestBlankRefused(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.hostLog.refused["newest"] = true
		const want = "cannot ask the log where this host, which has no journal, begins: newest: refused by the site"
		if err := r.run(); errorText(err) != want {
			t.Errorf("the error is %v, not %s", err, want)
		}
	})
}
