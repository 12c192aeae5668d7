package decide

import (
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Deferred returns the state in which an upgrade that has not begun waits until the host is idle; false
// if it need not. A worker asks again right before the upgrade begins, of the state before Next: the
// run has not touched the host, and is not kept.
func (s State) Deferred(busy *message.NotNow) (State, bool) {
	next, deferred := s.deferred(busy)
	if !deferred {
		return s, false
	}
	return s.begin(next), true
}

// deferred returns the journal of an upgrade that has not begun and waits until the host
// is idle; false if it need not. One that failed for a reason that passes has to be resumed
// first; if that finds that nothing was done, it waits as well, and is tried anew.
func (j Journal) deferred(busy *message.NotNow) (Journal, bool) {
	if busy == nil || j.Phase != Upgrading || j.Retry.Resume {
		return j, false
	}
	j.Phase, j.Retry = Deferred, Retry{}
	return j, true
}

// undeferred returns the journal of a deferred upgrade that may begin now, or for which it is
// too late; false while it has to wait.
func (j Journal) undeferred(busy *message.NotNow, now time.Time) (Journal, bool) {
	switch {
	case !now.Before(j.NotAfter) && busy != nil:
		return j.fail(strategy.Fail(message.Transient, fmt.Errorf("nothing was upgraded: the host was busy until not-after: %s", busy.Reason))), true
	case !now.Before(j.NotAfter):
		return j.fail(strategy.Fail(message.Transient, fmt.Errorf("nothing was upgraded: the host was busy, and not-after has passed"))), true
	case busy != nil:
		return j, false
	}
	j.Phase = Upgrading
	return j, true
}
