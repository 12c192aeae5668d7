package decide

import (
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// TestDeferred checks which upgrade waits for a busy host, and what comes of it.
func TestDeferred(t *testing.T) {
	t.Parallel()
	busy := backup(later)
	upgrading := Journal{Run: 10, NotAfter: later, Seq: 11, Action: message.Upgrade, Phase: Upgrading}
	waits, deferred := upgrading.deferred(busy)
	if !deferred || waits.Phase != Deferred || waits.check() != nil {
		t.Fatalf("an upgrade of a busy host: %+v, %v", waits, waits.check())
	}
	tried := upgrading
	tried.Retry = Retry{Tries: 1, Since: now, Due: now, Resume: true}
	undone := tried
	undone.Retry.Resume = false
	if next, deferred := undone.deferred(busy); !deferred || next.Retry != (Retry{}) {
		t.Errorf("an upgrade of which nothing was done: %+v", next)
	}
	prepares := upgrading
	prepares.Phase = Preparing
	for name, j := range map[string]Journal{"an upgrade that is to be resumed": tried, "a prepare": prepares} {
		if _, deferred := j.deferred(busy); deferred {
			t.Errorf("%s is held up", name)
		}
	}
	if _, deferred := upgrading.deferred(nil); deferred {
		t.Error("an idle host is held up")
	}
	for _, fresh := range []bool{true, false} { // Nothing was begun: a restart changes nothing.
		if do := waits.next(fresh, "", now); do != DoAwaitIdle || waits.begun(do) {
			t.Errorf("next it does %s", do)
		}
	}
	if do := waits.allow(DoAwaitIdle, Held, true); do != DoTakeOver {
		t.Errorf("after another worker has held the lease it does %s", do)
	}
	if _, some := waits.undeferred(busy, now); some {
		t.Error("it begins while the host is busy")
	}
	if next, some := waits.undeferred(nil, now); !some || next.Phase != Upgrading {
		t.Errorf("an idle host: %+v", next)
	}
	for want, said := range map[string]*message.NotNow{
		"nothing was upgraded: the host was busy until not-after: backup":   busy,
		"nothing was upgraded: the host was busy, and not-after has passed": nil,
	} {
		if next, some := waits.undeferred(said, later); !some || next.Phase != Answering || next.Result != message.NotDone(message.Failed, message.Transient, want) {
			t.Errorf("at not-after: %+v", next)
		}
	}
}

func backup(until time.Time) *message.NotNow {
	said := message.NewNotNow("backup", until)
	return &said
}
