package controller

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/trace"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// resendFor is for how long after its end the spans of a run are sent again by a
// controller that starts: the process before may have ended before it had sent them.
const resendFor = time.Hour

// traces sends the spans of a run as they end.
type traces struct {
	exporter trace.Exporter
	spans    *trace.Run
	// read are the spans of the run that had ended when the controller started,
	// as far as the log was read.
	read []trace.Span
}

func newTraces(o Options) *traces {
	if o.Traces == nil {
		return &traces{}
	}
	return &traces{exporter: o.Traces, spans: trace.NewRun(o.Tenant, o.Traces.Samples)}
}

// record sends the spans that a record has ended.
func (t *traces) record(r *run.State, record message.Decoded, live bool) {
	if t.exporter == nil {
		return
	}
	switch ended := t.spans.Record(r, record); {
	case live:
		t.exporter.Put(ended...)
	default:
		t.read = append(t.read, ended...)
	}
}

// started sends the spans of the run that was under way when the process before ended, or
// had ended shortly before. Some of them may have been sent: their ids are the same.
func (t *traces) started(newest *run.State, now time.Time) {
	if t.exporter != nil && (!newest.Over() || now.Sub(newest.EndedAt) < resendFor) {
		t.exporter.Put(t.read...)
	}
	t.read = nil
}
