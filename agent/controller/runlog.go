package controller

import (
	"log/slog"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

// runLog is what the log of the site has of the newest run: each run's start, stages,
// failures and end are one line each.
type runLog struct {
	run    uint64
	begun  bool
	stages map[string]bool
	failed map[string]bool
}

// logRun logs what a record has changed of a run. Records that were there at the start
// were logged when they came.
func (s *state) logRun(r *run.State, record message.Decoded) {
	if s.runLog.run != r.OpenedSeq {
		s.runLog = runLog{run: r.OpenedSeq, stages: map[string]bool{}, failed: map[string]bool{}}
	}
	live := s.active && record.Seq > s.startedAt
	logger := func() *slog.Logger { return s.Logger.With("tenant", s.Tenant, "run", r.Key()) }
	if !s.runLog.begun && r.ID != 0 {
		if s.runLog.begun = true; live {
			logger().Info("run begins", "trigger", r.Trigger, "by", r.By, "reason", r.Why, "hosts", r.Size(), "not-after", r.NotAfter.UTC())
		}
	}
	if len(s.runLog.stages) < r.Begun() {
		for _, g := range r.Stages(record.Time) {
			if g.Begun && !s.runLog.stages[g.Name] {
				if s.runLog.stages[g.Name] = true; live {
					logger().Info("stage begins", "stage", g.Name, "hosts", g.Size)
				}
			}
		}
	}
	if len(s.runLog.failed) < r.Count(run.HostFailed) {
		for _, name := range record.Hosts() {
			if h, member := r.Host(name); member && h.Status == run.HostFailed && !s.runLog.failed[name] {
				if s.runLog.failed[name] = true; live {
					logger().Warn("host failed", "host", name, "stage", h.Stage, "error", h.Error)
				}
			}
		}
	}
	if live && r.Over() && record.Seq == r.EndedSeq {
		took := window.FormatDuration(r.EndedAt.Sub(r.OpenedAt).Round(time.Second))
		say := logger().Warn
		if r.Result == run.Completed {
			say = logger().Info
		}
		say("run has ended", "result", r.Result, "reason", r.Reason, "took", took)
	}
}
