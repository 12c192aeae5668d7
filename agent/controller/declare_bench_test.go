package controller

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/plan"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// BenchmarkDeclareEnvironments is the declaration of one more environment next to so many, as the API
// makes it for an apply of all of them: it is stored, in effect, and compared with the known hosts. What
// that costs must hardly grow with the others.
func BenchmarkDeclareEnvironments(b *testing.B) {
	for _, others := range []int{100, 300, 900} {
		b.Run(fmt.Sprintf("%d-others", others), func(b *testing.B) {
			m := newMemory()
			declare := func(name string, base store.Revision) store.Revision {
				revision, err := m.PutEnvironment(context.Background(), "acme", name, v1.Kept[v1.Environment]{Value: inShop(name, "Europe/Berlin")}, base)
				must(err)
				return revision
			}
			names := make([]string, others)
			for i := range names {
				names[i] = fmt.Sprintf("e%03d", i)
				declare(names[i], store.Revision{})
			}
			c := New(m.options(b))
			ctx, stop := context.WithCancel(b.Context())
			ended := make(chan error, 1)
			go func() { ended <- c.Run(ctx) }()
			m.joinIn(b, c, 1000, names)
			before, declared := cpu(), 0
			for b.Loop() {
				name := "new"
				revision := declare(name, store.Revision{})
				must(c.Seen(b.Context(), revision.Number))
				_, err := c.Unmatched(b.Context(), plan.Intent{Environments: map[string]v1.Environment{name: inShop(name, "Europe/Berlin")}})
				must(err)
				revision, err = m.DeleteEnvironment(b.Context(), "acme", name, revision)
				must(err)
				must(c.Seen(b.Context(), revision.Number))
				declared++
			}
			b.ReportMetric(float64((cpu()-before)/time.Microsecond)/float64(declared), "cpu-us/op")
			stop()
			if err := <-ended; err != nil {
				b.Error(err)
			}
		})
	}
}
