package worker

import (
	"context"
	"math/rand/v2"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
)

// answerAsks sends what somebody who looks asks for: what the action in progress has printed so
// far, or what an upgrade would change by what there is to install now.
func (w *Worker) answerAsks(ctx context.Context) error {
	return w.HostLog.Asked(ctx, func(a log.Ask) {
		switch a.Kind {
		case report.Output:
			if now := w.current.Load(); now != nil {
				w.outputs.Put(*now, struct{}{})
			}
		case report.Offer:
			if a.ByRelease {
				w.offerBy(ctx, a)
				return
			}
			go w.lookAnew(ctx, a)
		}
	})
}

// lookAnew has the host fetch what there is to install, and plan anew. A look that is asked for
// while another is due is that one.
func (w *Worker) lookAnew(ctx context.Context, a log.Ask) {
	if !w.looking.CompareAndSwap(false, true) {
		return
	}
	defer w.looking.Store(false)
	if a.Within > 0 && wait.Sleep(ctx, rand.N(a.Within)) != nil {
		return
	}
	w.fetches.Store(true)
	w.offerDue.Set()
}
