package worker

import (
	"context"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// receiving is a strategy that asks for the outputs of steps.
type receiving struct {
	strategy.Strategy
	got []string
}

func (s *receiving) UsesOutputs() bool { return true }

func (s *receiving) Upgrade(ctx context.Context, job strategy.Job) (strategy.Outcome, error) {
	if job.Outputs == nil {
		s.got = append(s.got, "none")
		return s.Strategy.Upgrade(ctx, job)
	}
	outputs, err := job.Outputs(ctx)
	if err != nil {
		return 0, err
	}
	s.got = append(s.got, outputs["JOIN"])
	return s.Strategy.Upgrade(ctx, job)
}

// TestOutputsOfSteps checks that a strategy gets the outputs of steps if the command to upgrade says
// that there are some, and only then.
func TestOutputsOfSteps(t *testing.T) {
	t.Parallel()
	for want, outputs := range map[string]bool{"none": false, "secret of run 10": true} {
		inBubble(t, func(r *rig) {
			s := &receiving{}
			r.change = func(o *Options) { s.Strategy, o.Strategy = o.Strategy, s }
			r.bear()
			r.prepare()
			r.until(message.Prepare)
			c := message.Command{Action: message.Upgrade, Host: "h01"}
			r.hostLog.send(message.Record{Seq: 11, Kind: message.CommandHost, Run: 10, Outputs: outputs, Body: c.Encode()})
			r.until(message.Upgrade)
			if len(s.got) != 1 || s.got[0] != want {
				t.Errorf("the strategy has got %q, not %q", s.got, want)
			}
		})
	}
}
