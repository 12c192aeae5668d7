package worker

import (
	"context"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/decide"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
)

// askOutputs asks the site for the outputs of steps that an upgrade gets, and returns what gives them to
// the strategy, or the error; nil if there are none for it. The site may be cut off, and the host become
// busy meanwhile: so it is asked before the last look at that. They are kept in memory only, because
// there may be secrets among them.
func (w *Worker) askOutputs(ctx context.Context) func(context.Context) (map[string]string, error) {
	if !w.usesOutputs() {
		return nil
	}
	outputs, err := within(ctx, w, string(decide.DoUpgrade), w.job(), func(ctx context.Context, _ strategy.Job) (map[string]string, error) {
		return w.stepOutputs(ctx)
	})
	return func(context.Context) (map[string]string, error) { return outputs, err }
}

// stepOutputs returns the outputs of the steps that the run has done.
func (w *Worker) stepOutputs(ctx context.Context) (map[string]string, error) {
	return w.HostLog.Outputs(ctx, w.state.Run)
}

// usesOutputs reports whether the strategy gets outputs of steps in the upgrade of the run.
func (w *Worker) usesOutputs() bool {
	r, may := w.Strategy.(strategy.OutputsUser)
	return w.state.Outputs && w.state.RollsBack == "" && may && r.UsesOutputs()
}
