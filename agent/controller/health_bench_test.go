package controller

import (
	"context"
	"fmt"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/measure"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// answering has the hosts of a memory pass at once what they are asked.
type answering struct{ *memory }

func (a answering) Send(t message.Task) error {
	a.Outcome(t.Host, t.Checked(make([]error, len(t.Checks))))
	return nil
}

// BenchmarkHealth is a request for the health of hosts that answer at once; its time per host must not
// grow with their number.
func BenchmarkHealth(b *testing.B) {
	for _, n := range measure.Sizes(1000, 10_000) {
		b.Run(fmt.Sprintf("%d-hosts", n), func(b *testing.B) {
			m := newMemory()
			m.rollout = &v1.Rollout{Checks: &v1.RolloutChecks{Start: []v1.StartCheck{{Check: v1.Check{Name: "disk", Type: "exec", Script: "disk"}, Match: &v1.Match{}}}}}
			o := m.options(b)
			o.HostEvents = answering{m}
			c := New(o)
			ctx, stop := context.WithCancel(b.Context())
			ended := make(chan error, 1)
			go func() { ended <- c.Run(ctx) }()
			m.join(b, c, n, n)
			for b.Loop() {
				r, err := c.Health(b.Context(), v1.AskHealth{})
				if err != nil || !r.OK || len(r.Checks) != n {
					b.Fatalf("of %d checks %d have yet to come out, %v", len(r.Checks), r.Waiting, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/host")
			stop()
			if err := <-ended; err != nil {
				b.Error(err)
			}
		})
	}
}
