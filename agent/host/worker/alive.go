package worker

import (
	"context"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

func (w *Worker) heartbeat(ctx context.Context) error {
	w.sendAlive()
	for {
		w.self.look(ctx, w.SelfCheck)
		if len(w.written.Load().Boots.Waits()) > 0 {
			w.passDue.Set() // The loop sees what a person has accepted.
		}
		if err := wait.Sleep(ctx, message.UntilBeat(time.Now())); err != nil {
			return err
		}
		w.sendAlive()
	}
}

func (w *Worker) answerPings(ctx context.Context) error {
	return w.HostLog.Pings(ctx, w.sendAlive)
}

func (w *Worker) sendAlive() {
	by := w.goal.Load()
	alive := message.Alive{
		Application: w.Application, AgentVersion: w.Version, Worker: w.identity, Role: w.Role, Labels: w.currentLabels(),
		At: w.Now().UTC(), SelfReport: w.self.last(), Seen: w.written.Load().Position(), RolledBack: w.toldRejected(),
		Busy: w.notNow(), Changes: w.changes.Load().of(by), Release: by.digest(), Releases: w.releases(), Rollbacks: w.canRollBack(),
	}
	if err := w.HostLog.Alive(alive); err != nil {
		w.Log.Warn("cannot send heartbeat", "host", w.Host, "error", err)
	}
}
