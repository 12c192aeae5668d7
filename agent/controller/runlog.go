package controller

import (
	"log/slog"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// runLog is what the log of the site has of the newest run: each run's start, stages,
// failures and end are one line each.
type runLog struct {
	tenant string
	// environment is empty for the default one.
	environment string
	logger      *slog.Logger
	begun       bool
	stages      map[string]bool
	failed      map[string]bool
}

func newRunLog(o Options, environment string) *runLog {
	return &runLog{tenant: o.Tenant, environment: environment, logger: o.Logger, stages: map[string]bool{}, failed: map[string]bool{}}
}

// record logs what a record has changed of a run. Records that were there at the start
// were logged when they came.
func (l *runLog) record(r *run.State, record message.Decoded, live bool) {
	logger := func() *slog.Logger {
		if l.environment == "" {
			return l.logger.With("tenant", l.tenant, "run", r.Key())
		}
		return l.logger.With("tenant", l.tenant, "environment", l.environment, "run", r.Key())
	}
	if !l.begun && r.ID != 0 {
		if l.begun = true; live {
			logger().Info("run begins", "trigger", r.Trigger, "by", r.By, "reason", r.Why, "hosts", r.Size(), "not-after", r.NotAfter.UTC())
		}
	}
	if len(l.stages) < r.Begun() {
		for _, g := range r.Stages(record.Time) {
			if g.Begun && !l.stages[g.Name] {
				if l.stages[g.Name] = true; live {
					logger().Info("stage begins", "stage", g.Name, "hosts", g.Size)
				}
			}
		}
	}
	if ran, is := record.Event.(message.Ran); is && ran.Outcome.Kind.OfStage() && live {
		if o := ran.Outcome; o.OK {
			logger().Info(string(o.Kind)+" done", "stage", o.Stage, "host", o.Host)
		} else {
			logger().Warn(string(o.Kind)+" failed", "stage", o.Stage, "host", o.Host, "error", o.Text)
		}
	}
	if len(l.failed) < r.Count(run.HostFailed) {
		for _, name := range record.Hosts() {
			if h, member := r.Host(name); member && h.Status == run.HostFailed && !l.failed[name] {
				if l.failed[name] = true; live {
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
