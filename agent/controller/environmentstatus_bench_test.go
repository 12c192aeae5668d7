package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/measure"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// BenchmarkEnvironmentStatuses is the status of 1,000 environments, idle after a run and with a run
// under way in each, as the API answers it: it may take 100 ms.
func BenchmarkEnvironmentStatuses(b *testing.B) {
	for _, state := range []string{"idle", "running"} {
		b.Run(state, func(b *testing.B) {
			n := v1.MaxEnvironments
			hosts := max(measure.Size(10_000), n)
			m := newMemory()
			m.obedient, m.rollout = state == "idle", &v1.Rollout{Stages: []v1.Stage{{Name: "all", MaxUnavailable: "100%"}}}
			names := make([]string, n)
			for i := range names {
				names[i] = fmt.Sprintf("e%03d", i)
				_, err := m.PutEnvironment(b.Context(), "acme", names[i], v1.Kept[v1.Environment]{Value: inShop(names[i], "Europe/Berlin")}, store.Revision{})
				must(err)
			}
			c := New(m.options(b))
			ctx, stop := context.WithCancel(b.Context())
			ended := make(chan error, 1)
			go func() { ended <- c.Run(ctx) }()
			changed := m.joinIn(b, c, hosts, names)
			m.night(b, c, names)
			for state == "idle" && underWay(b, c) {
				<-changed
			}
			b.ResetTimer()
			before, size := cpu(), 0
			for b.Loop() {
				all, err := c.EnvironmentStatuses(b.Context())
				if err != nil || len(all) != n+1 {
					b.Fatal(len(all), err)
				}
				text, err := json.Marshal(all)
				must(err)
				size = len(text)
			}
			b.ReportMetric(float64((cpu()-before)/time.Microsecond)/1000/float64(b.N), "cpu-ms/op")
			b.ReportMetric(float64(size)/1024, "KiB")
			stop()
			if err := <-ended; err != nil {
				b.Error(err)
			}
		})
	}
}
