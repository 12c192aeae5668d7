package worker

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// selfCheckLimit bounds one look of a worker at its own host.
const selfCheckLimit = 30 * time.Second

// self is what the worker found last about its own host.
type self struct {
	looking atomic.Bool
	found   atomic.Pointer[message.SelfReport]
}

// last returns what was found last; nothing before the first look.
func (s *self) last() message.SelfReport {
	if found := s.found.Load(); found != nil {
		return *found
	}
	return message.SelfReport{}
}

// look looks in a goroutine of its own, unless the look before has not ended: a
// folder on a disk that hangs must not delay a heartbeat.
func (s *self) look(ctx context.Context, check func(context.Context) message.SelfReport) {
	if check == nil || !s.looking.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer s.looking.Store(false)
		ctx, cancel := context.WithTimeout(ctx, selfCheckLimit)
		defer cancel()
		report := check(ctx)
		if ctx.Err() == nil {
			s.found.Store(&report)
		}
	}()
}
