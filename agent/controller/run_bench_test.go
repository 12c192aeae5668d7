package controller

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/measure"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// BenchmarkRun is a whole run of hosts that may all go at once and answer at
// once, over a log in memory; its time per host must not grow with their
// number.
func BenchmarkRun(b *testing.B) {
	for _, n := range measure.Sizes(1000, 10_000) {
		b.Run(fmt.Sprintf("%d-hosts", n), func(b *testing.B) {
			m := newMemory()
			m.obedient, m.rollout = true, &v1.Rollout{Stages: []v1.Stage{{Name: "all", MaxUnavailable: "100%"}}}
			c := New(m.options(b))
			ctx, stop := context.WithCancel(b.Context())
			ended := make(chan error, 1)
			go func() { ended <- c.Run(ctx) }()
			changed := m.join(b, c, n, n)
			for b.Loop() {
				finished(b, c, changed)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/host")
			stop()
			if err := <-ended; err != nil {
				b.Error(err)
			}
		})
	}
}

// join has so many hosts be heard of, waits until so many are known, and returns what tells of
// changes.
func (m *memory) join(b *testing.B, c *Controller, n, known int) <-chan struct{} {
	b.Helper()
	changed, _, err := c.Watch(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	for i := range n {
		c.session().telemetry.Change(fmt.Sprintf("h%05d", i), func(l *telemetry) { l.alive, l.aliveAt = message.Alive{Application: "app"}, time.Now() })
	}
	for {
		hosts, err := ask(b.Context(), c, func(s *state) int { return len(s.hosts.known) })
		if err != nil {
			b.Fatal(err)
		}
		if hosts == known {
			return changed
		}
		<-changed
	}
}

// finished starts a run and returns once it has ended.
func finished(b *testing.B, c *Controller, changed <-chan struct{}) {
	b.Helper()
	r, err := c.Start(b.Context(), "test", start)
	for err == nil && !r.Finished() {
		<-changed
		var over bool
		over, err = ask(b.Context(), c, func(s *state) bool { return s.ledger.Current() == nil })
		if over && err == nil {
			r, err = c.Find(b.Context(), r.ID)
		}
	}
	if err != nil || r.Result != "completed" {
		b.Fatalf("the run ended as %s: %s, %v", r.Result, r.Reason, err)
	}
}
