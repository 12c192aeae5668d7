package worker

import (
	"context"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
)

// outputInterval is how often the output of an action that is in progress is sent.
const outputInterval = time.Minute

// sendOutputs sends what the actions print: when an action has ended, and at intervals
// while it is in progress. It runs beside the loop: neither an action nor its reply
// waits for it. At the start it sends what the run of the journal has printed so far,
// because the machine may have gone down before.
func (w *Worker) sendOutputs(ctx context.Context) error {
	printer, ok := w.Strategy.(strategy.Printer)
	if !ok {
		return nil
	}
	if run := w.written.Load().Run; run != 0 {
		for _, action := range message.OutputActions() {
			w.outputs.Put(actionOf{run, action}, struct{}{})
		}
	}
	sent := map[report.ID]telling{}
	for {
		for _, item := range w.outputs.Take() {
			if err := w.sendOutput(ctx, printer, item.Key, sent); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.outputs.Ready():
		case <-time.After(outputInterval):
			if now := w.current.Load(); now != nil {
				w.outputs.Put(*now, struct{}{})
			}
		}
	}
}

// sendOutput sends what an action has printed, if that has changed since it was sent. It
// returns an error only if the lease is lost.
func (w *Worker) sendOutput(ctx context.Context, printer strategy.Printer, of actionOf, sent map[report.ID]telling) error {
	printed, isCut, err := printer.Output(of.run, of.action, message.MaxOutput)
	if err != nil {
		w.warn(ctx, "cannot read the output of "+of.action, err)
		return nil
	}
	if len(printed) == 0 {
		return nil
	}
	return w.tellOfRun(ctx, sent, report.Report{ID: report.ID{Kind: report.Output, Run: of.run, Part: of.action}, Cut: isCut, Body: printed})
}
