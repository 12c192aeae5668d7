package worker

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy"
)

// outputInterval is how often the output of a step that is in progress is sent.
const outputInterval = time.Minute

// stepOf is a step of a run.
type stepOf struct {
	run  uint64
	step string
}

// sendOutputs sends what the steps print: when a step has ended, and at intervals
// while it is in progress. It runs beside the loop: neither a step nor its reply
// waits for it. At the start it sends what the run of the journal has printed so far,
// because the machine may have gone down before.
func (w *Worker) sendOutputs(ctx context.Context) error {
	printer, ok := w.Strategy.(strategy.Printer)
	if !ok {
		return nil
	}
	if run := w.written.Load().Run; run != 0 {
		for _, step := range message.OutputSteps() {
			w.outputs.Put(stepOf{run, step}, struct{}{})
		}
	}
	sent := map[stepOf][]byte{}
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

// sendOutput sends what a step has printed, if that has changed since it was sent. It
// returns an error only if the lease is lost: nothing depends on an output.
func (w *Worker) sendOutput(ctx context.Context, printer strategy.Printer, of stepOf, sent map[stepOf][]byte) error {
	printed, isCut, err := printer.Output(of.run, of.step, message.MaxOutput)
	if err != nil {
		w.warn(ctx, "cannot read the output of "+of.step, err)
		return nil
	}
	if len(printed) == 0 || bytes.Equal(printed, sent[of]) {
		return nil
	}
	err = w.HostLog.Output(ctx, message.Output{Run: of.run, Step: of.step, Text: printed, Cut: isCut})
	switch {
	case errors.Is(err, log.ErrTaken):
		return err
	case errors.Is(err, log.ErrRefused): // Such as of a run that is not the newest.
		w.Log.Debug("the output was refused", "host", w.Host, "run", of.run, "step", of.step, "error", err)
	case err != nil:
		w.warn(ctx, "cannot send the output of "+of.step, err)
		return nil
	}
	for known := range sent { // Those of one run are kept, which are few.
		if known.run != of.run {
			delete(sent, known)
		}
	}
	sent[of] = printed
	return nil
}
