package controller

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/measure"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// BenchmarkEnvironments is a night of hosts in so many environments, whose runs are opened at the
// same instant, over a log in memory; hosts may all go at once and answer at once, but for the
// disruption budgets. What a record costs must hardly grow with the number of environments, nor with
// the hosts that wait for a place. The last run has its first command after ms/first-command, of which
// cpu-ms/first-command are processor time.
func BenchmarkEnvironments(b *testing.B) {
	hosts := max(measure.Size(6000), 60) // At least one in each.
	for _, c := range []struct {
		name         string
		environments int
		budget       *v1.Budget
	}{
		{"1-environments", 1, nil},
		{"60-environments", 60, nil},
		// Each rack has hosts of all environments.
		{"60-environments-and-racks", 60, &v1.Budget{Per: "rack", MaxUnavailable: "10"}},
		{"1-environments-in-one-cell", 1, &v1.Budget{MaxUnavailable: "1"}},
	} {
		n := c.environments
		b.Run(c.name, func(b *testing.B) {
			m := newMemory()
			if c.budget != nil {
				m.budget("some", c.budget)
			}
			m.obedient, m.rollout = true, &v1.Rollout{Stages: []v1.Stage{{Name: "all", MaxUnavailable: "100%"}}}
			names := make([]string, n)
			for i := range names {
				names[i] = fmt.Sprintf("e%02d", i)
				e := inShop(names[i], "")
				_, err := m.PutEnvironment(b.Context(), "acme", names[i], v1.Kept[v1.Environment]{Value: e}, store.Revision{})
				must(err)
			}
			c := New(m.options(b))
			ctx, stop := context.WithCancel(b.Context())
			ended := make(chan error, 1)
			go func() { ended <- c.Run(ctx) }()
			changed := m.joinIn(b, c, hosts, names)
			var used, first, usedByFirst time.Duration
			records := uint64(0)
			for b.Loop() {
				before, last := cpu(), m.lastSeq()
				first += m.night(b, c, names)
				usedByFirst += cpu() - before
				for underWay(b, c) {
					<-changed
				}
				used, records = used+cpu()-before, records+m.lastSeq()-last
			}
			b.ReportMetric(float64(used.Microseconds())/float64(records), "cpu-us/record")
			b.ReportMetric(float64(first.Milliseconds())/float64(b.N), "ms/first-command")
			b.ReportMetric(float64(usedByFirst.Milliseconds())/float64(b.N), "cpu-ms/first-command")
			stop()
			if err := <-ended; err != nil {
				b.Error(err)
			}
		})
	}
}

// night starts a run of each environment at once, and returns after how long the last one had
// its prepare on the log.
func (m *memory) night(b *testing.B, c *Controller, names []string) time.Duration {
	b.Helper()
	var all sync.WaitGroup
	begun := time.Now()
	for _, name := range names {
		all.Go(func() {
			if _, err := c.Start(b.Context(), "test", startIn(name)); err != nil {
				b.Error(err)
			}
		})
	}
	all.Wait()
	return time.Since(begun)
}

func underWay(b *testing.B, c *Controller) bool {
	b.Helper()
	some, err := ask(b.Context(), c, func(s *state) bool { return len(s.ledger.UnderWay()) > 0 })
	if err != nil {
		b.Fatal(err)
	}
	return some
}

// joinIn is join of hosts that are in environments, as many in each.
func (m *memory) joinIn(b *testing.B, c *Controller, n int, names []string) <-chan struct{} {
	b.Helper()
	for i := range n {
		a := message.Alive{Application: "app", Labels: map[string]string{"shop": names[i%len(names)], "rack": fmt.Sprint(i / len(names) % 20)}}
		c.session().telemetry.Change(fmt.Sprintf("h%05d", i), func(l *telemetry) { l.alive, l.aliveAt = a, time.Now() })
	}
	return m.join(b, c, 0, n)
}

// lastSeq is the sequence of the last record: the log may be trimmed.
func (m *memory) lastSeq() uint64 {
	last, err := m.log.Last(context.Background())
	must(err)
	return last
}

// cpu is the processor time that this process has used.
func cpu() time.Duration {
	var used syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
